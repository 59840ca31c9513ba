/* stat, latency. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands/commands.h"

enum { LATENCY_COUNT_DEFAULT = 200, LATENCY_COUNT_MAX = 100000, BLOCK_BYTES = 4096 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* In steps, because an interrupt does not end a step everywhere. */
static void pause_s(uint64_t seconds)
{
    const struct timespec t = {1, 0};

    for (uint64_t s = 0; s < seconds && !interrupted; s++)
        nanosleep(&t, NULL);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool take_interval(struct cli *c, uint64_t *seconds, uint64_t *count)
{
    bool ok = true;

    take_number(c, "-i", seconds, &ok);
    if (ok)
        take_number(c, "-c", count, &ok);
    if (ok && *seconds == 0)
        *seconds = 1;
    return ok && take_rest(c, 0, 0);
}

/* ---- stat ---- */

static double sum_of(const cJSON *items, const char *path)
{
    const cJSON *i;
    double       sum = 0;

    cJSON_ArrayForEach(i, items)
    {
        const cJSON *v = output_member(i, path);
        sum += cJSON_IsNumber(v) ? v->valuedouble : 0;
    }
    return sum;
}

struct totals {
    double launches, device_us;
};

static enum exit_code stat_line(struct cli *c, struct totals *before, uint64_t seconds, bool first)
{
    cJSON         *list = NULL;
    const cJSON   *items;
    char           memory[32];
    struct totals  now;
    enum exit_code code = cli_get(c, &list, "/v1/sessions?limit=1000");

    if (code)
        return code;
    items = cJSON_GetObjectItemCaseSensitive(list, "items");
    now = (struct totals){sum_of(items, "usage.launches"), sum_of(items, "usage.device_time_us")};
    printf("%8d  %8.0f  %10s  %10.1f  %10.1f\n", cJSON_GetArraySize(items), sum_of(items, "usage.buffers"),
           text_of_bytes(sum_of(items, "usage.memory_bytes"), memory), first ? 0 : (now.launches - before->launches) / (double)seconds,
           first ? 0 : (now.device_us - before->device_us) / 1e4 / (double)seconds);
    fflush(stdout);
    *before = now;
    cJSON_Delete(list);
    return CODE_OK;
}

enum exit_code run_stat(struct cli *c)
{
    uint64_t       seconds = 1, count = 0;
    struct totals  before = {0, 0};
    enum exit_code code = CODE_OK;

    if (!take_interval(c, &seconds, &count))
        return CODE_USAGE;
    if (count == 0 && !isatty(STDOUT_FILENO))
        count = 1;
    signal(SIGINT, on_interrupt);
    if (!c->no_header)
        printf("%8s  %8s  %10s  %10s  %10s\n", "SESSIONS", "BUFFERS", "MEMORY", "LAUNCHES/S", "BUSY %");
    for (uint64_t i = 0; !code && !interrupted && !ferror(stdout) && (count == 0 || i < count); i++) {
        if (i)
            pause_s(seconds);
        code = stat_line(c, &before, seconds, i == 0);
    }
    return code;
}

/* ---- latency ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void add_percentiles(const char *what, double *us, size_t n, cJSON *items)
{
    cJSON *item = cJSON_CreateObject();

    qsort(us, n, sizeof *us, by_value);
    cJSON_AddStringToObject(item, "what", what);
    cJSON_AddNumberToObject(item, "min_us", us[0]);
    cJSON_AddNumberToObject(item, "p50_us", us[n / 2]);
    cJSON_AddNumberToObject(item, "p99_us", us[n * 99 / 100]);
    cJSON_AddNumberToObject(item, "max_us", us[n - 1]);
    cJSON_AddItemToArray(items, item);
}

struct trial {
    gpurest_client       *client;
    gpurest_session      *session;
    const gpurest_kernel *kernel;
    gpurest_buffer        buffer;
    char                  data[BLOCK_BYTES];
};

static gpurest_status try_ping(struct trial *t)
{
    return gpurest_request(t->client, "GET", "/livez", NULL, NULL);
}

static gpurest_status try_launch(struct trial *t)
{
    return gpurest_launch(t->session, t->kernel, GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, NULL, 0);
}

static gpurest_status try_round_trip(struct trial *t)
{
    gpurest_status st = gpurest_write(t->session, t->buffer, 0, t->data, sizeof t->data);

    return st ? st : gpurest_read(t->session, t->buffer, 0, t->data, sizeof t->data);
}

static enum exit_code measure_trial(struct cli *c, const char *what, gpurest_status (*try)(struct trial *), struct trial *t, size_t count,
                                    cJSON *items)
{
    double        *us = calloc(count, sizeof *us);
    enum exit_code code = CODE_OK;

    if (!us)
        return cli_error(CODE_FAILED, "not enough memory");
    for (size_t i = 0; i < count && !code; i++) {
        double         before = now_us();
        gpurest_status st = try(t);

        us[i] = now_us() - before;
        code = st ? cli_failed(c, st) : CODE_OK;
    }
    if (!code)
        add_percentiles(what, us, count, items);
    free(us);
    return code;
}

static const struct column latency_columns[] = {
    {"WHAT", "what", FORMAT_TEXT, false},       {"MIN US", "min_us", FORMAT_NUMBER, false}, {"P50 US", "p50_us", FORMAT_NUMBER, false},
    {"P99 US", "p99_us", FORMAT_NUMBER, false}, {"MAX US", "max_us", FORMAT_NUMBER, false},
};
const struct listing latency_listing = {"gpurest.latency/1", latency_columns, COUNT(latency_columns)};

static enum exit_code measure_all(struct cli *c, struct trial *t, size_t count)
{
    cJSON         *items = cJSON_CreateArray();
    enum exit_code code = measure_trial(c, "ping", try_ping, t, count, items);

    if (!code)
        code = measure_trial(c, "empty launch", try_launch, t, count, items);
    if (!code)
        code = measure_trial(c, "4 KiB there and back", try_round_trip, t, count, items);
    if (!code)
        code = output_items(c, &latency_listing, items);
    cJSON_Delete(items);
    return code;
}

enum exit_code run_latency(struct cli *c)
{
    uint64_t        unused = 1, count = LATENCY_COUNT_DEFAULT;
    struct trial    t = {0};
    gpurest_module *module = NULL;
    gpurest_status  st;
    enum exit_code  code;

    if (!take_interval(c, &unused, &count))
        return CODE_USAGE;
    if (count == 0 || count > LATENCY_COUNT_MAX)
        return cli_usage(c, "-c must be from 1 to %d", LATENCY_COUNT_MAX);
    code = cli_own_session(c, &t.session);
    if (code)
        return code;
    t.client = c->client;
    st = gpurest_compile(t.session, &module, "extern \"C\" __global__ void empty() {}", NULL, 0);
    if (!st)
        st = gpurest_kernel_get(module, "empty", &t.kernel);
    if (!st)
        st = gpurest_alloc(t.session, &t.buffer, sizeof t.data);
    code = st ? cli_failed(c, st) : measure_all(c, &t, (size_t)count);
    gpurest_module_unload(module);
    gpurest_session_close(t.session);
    return code;
}
