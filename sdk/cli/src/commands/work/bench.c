/* Benchmarks of a service, with comparison to an earlier run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands/commands.h"

enum { ROUNDS = 5, SMALL_ROUNDS = 200, SIZE_DEFAULT_MIB = 64, E2E_FLOATS = 1024 };
static const double REGRESSION = 0.8; /* a result below this share of the earlier one is a regression */

struct bench {
    gpurest_session      *session;
    gpurest_module       *module;
    const gpurest_kernel *kernel;
    gpurest_buffer        buffer, other;
    gpurest_client       *client;
    char                 *data;
    size_t                bytes;
    unsigned              number; /* makes each source a new one */
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static gpurest_status upload(struct bench *b)
{
    return gpurest_write(b->session, b->buffer, 0, b->data, b->bytes);
}

static gpurest_status download(struct bench *b)
{
    return gpurest_read(b->session, b->buffer, 0, b->data, b->bytes);
}

/* gpurest_copy returns once the copy is queued, so the time includes a sync. */
static gpurest_status copy_on_device(struct bench *b)
{
    gpurest_status st = gpurest_copy(b->session, b->other, 0, b->buffer, 0, b->bytes, (gpurest_stream){0});

    return st ? st : gpurest_sync(b->session);
}

static const char twice[] = "extern \"C\" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }";

/* One request that compiles (cached after the first), uploads, launches and downloads. */
static gpurest_status end_to_end(struct bench *b)
{
    static float x[E2E_FLOATS];
    gpurest_arg  args[] = {GPUREST_INOUT(x, sizeof x)};

    return gpurest_run(b->client, twice, "twice", GPUREST_1D(1), GPUREST_1D(E2E_FLOATS), args, 1, NULL);
}

static gpurest_status launch_empty(struct bench *b)
{
    return gpurest_launch(b->session, b->kernel, GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, NULL, 0);
}

static gpurest_status allocate_and_free(struct bench *b)
{
    gpurest_buffer fresh;
    gpurest_status st = gpurest_alloc(b->session, &fresh, 1 << 20);

    return st ? st : gpurest_free(b->session, fresh);
}

static gpurest_status compile_new(struct bench *b)
{
    gpurest_module *module = NULL;
    char            source[160];
    gpurest_status  st;

    snprintf(source, sizeof source, "extern \"C\" __global__ void k(int *x) { *x = %u; } // %ld", b->number++, (long)time(NULL));
    st = gpurest_compile(b->session, &module, source, NULL, 0);
    gpurest_module_unload(module);
    return st;
}

static const struct {
    const char *name, *unit;
    gpurest_status (*run)(struct bench *b);
    unsigned rounds;
    bool     rate; /* bytes a second: more is better; else microseconds */
} rows[] = {
    {"h2d", "GB/s", upload, ROUNDS, true},
    {"d2h", "GB/s", download, ROUNDS, true},
    {"d2d", "GB/s", copy_on_device, ROUNDS, true},
    {"launch", "us", launch_empty, SMALL_ROUNDS, false},
    {"alloc", "us", allocate_and_free, SMALL_ROUNDS, false},
    {"compile", "us", compile_new, ROUNDS, false},
    {"e2e", "us", end_to_end, SMALL_ROUNDS, false},
};

/* The best of all rounds excludes disturbances. */
static gpurest_status best_of(struct bench *b, size_t row, double *out)
{
    double         best = 0;
    gpurest_status st = GPUREST_OK;

    for (unsigned i = 0; i < rows[row].rounds && !st; i++) {
        double before = now_s(), seconds;

        st = rows[row].run(b);
        seconds = now_s() - before;
        best = i == 0 || seconds < best ? seconds : best;
    }
    *out = rows[row].rate ? (double)b->bytes / best / 1e9 : best * 1e6;
    return st;
}

static bool is_wanted(const struct cli *c, const char *name)
{
    for (int i = 0; i < c->argc; i++)
        if (strcmp(c->argv[i], name) == 0)
            return true;
    return c->argc == 0;
}

static const cJSON *former_of(const cJSON *former, const char *name)
{
    const cJSON *i;

    cJSON_ArrayForEach(i, cJSON_GetObjectItemCaseSensitive(former, "items"))
    {
        const cJSON *what = cJSON_GetObjectItemCaseSensitive(i, "what");
        if (cJSON_IsString(what) && strcmp(what->valuestring, name) == 0)
            return cJSON_GetObjectItemCaseSensitive(i, "value");
    }
    return NULL;
}

/* True: a regression. */
static bool add_item(cJSON *items, size_t row, double value, const cJSON *former)
{
    cJSON       *item = cJSON_CreateObject();
    const cJSON *old = former_of(former, rows[row].name);
    double       ratio = 0;

    cJSON_AddStringToObject(item, "what", rows[row].name);
    cJSON_AddNumberToObject(item, "value", value);
    cJSON_AddStringToObject(item, "unit", rows[row].unit);
    if (cJSON_IsNumber(old) && old->valuedouble > 0 && value > 0) {
        ratio = rows[row].rate ? value / old->valuedouble : old->valuedouble / value;
        cJSON_AddNumberToObject(item, "ratio", ratio);
    }
    cJSON_AddItemToArray(items, item);
    return ratio > 0 && ratio < REGRESSION;
}

static gpurest_status prepare_bench(struct bench *b)
{
    gpurest_status st = gpurest_alloc(b->session, &b->buffer, b->bytes);

    if (!st)
        st = gpurest_alloc(b->session, &b->other, b->bytes);
    if (!st)
        st = gpurest_compile(b->session, &b->module, "extern \"C\" __global__ void empty() {}", NULL, 0);
    return st ? st : gpurest_kernel_get(b->module, "empty", &b->kernel);
}

static const struct column columns[] = {
    {"WHAT", "what", FORMAT_TEXT, false},
    {"VALUE", "value", FORMAT_NUMBER, false},
    {"UNIT", "unit", FORMAT_TEXT, false},
    {"OF BEFORE", "ratio", FORMAT_NUMBER, false},
};
const struct listing bench_listing = {"gpurest.bench/1", columns, COUNT(columns)};

static enum exit_code run_rows(struct cli *c, struct bench *b, const cJSON *former)
{
    cJSON         *items = cJSON_CreateArray();
    gpurest_status st = prepare_bench(b);
    bool           worse = false;
    enum exit_code code;

    for (size_t i = 0; i < COUNT(rows) && !st; i++) {
        double value;

        if (!is_wanted(c, rows[i].name))
            continue;
        st = best_of(b, i, &value);
        if (!st)
            worse = add_item(items, i, value, former) || worse;
    }
    code = st ? cli_failed(c, st) : output_items(c, &bench_listing, items);
    cJSON_Delete(items);
    return code || !worse ? code : cli_error(CODE_REGRESSED, "at least one result is below %.0f %% of the previous run", REGRESSION * 100);
}

/* NULL without --compare. *ok false: failed and reported. */
static cJSON *read_former(struct cli *c, const char *path, bool *ok)
{
    size_t bytes;
    char  *text = path ? file_read(path, &bytes) : NULL;
    cJSON *former = text ? cJSON_Parse(text) : NULL;

    *ok = !path || former;
    if (path && text && !former)
        cli_usage(c, "%s is not the output of gpurest bench --json", path);
    free(text);
    return former;
}

static bool names_known(struct cli *c)
{
    for (int i = 0; i < c->argc; i++) {
        size_t row = 0;

        while (row < COUNT(rows) && strcmp(rows[row].name, c->argv[i]) != 0)
            row++;
        if (row == COUNT(rows)) {
            cli_usage(c, "unknown benchmark %s", c->argv[i]);
            return false;
        }
    }
    return true;
}

enum exit_code run_bench(struct cli *c)
{
    const char    *compare = NULL;
    uint64_t       bytes = (uint64_t)SIZE_DEFAULT_MIB << 20;
    bool           ok = true;
    struct bench   b = {0};
    cJSON         *former;
    enum exit_code code;

    take_value(c, "--compare", &compare, &ok);
    if (ok)
        take_number(c, "--size", &bytes, &ok);
    if (!ok || !take_rest(c, 0, COUNT(rows)) || !names_known(c))
        return CODE_USAGE;
    former = read_former(c, compare, &ok);
    if (!ok)
        return CODE_USAGE;
    b.bytes = bytes ? (size_t)bytes : 1;
    b.data = calloc(1, b.bytes);
    code = b.data ? cli_own_session(c, &b.session) : cli_error(CODE_FAILED, "not enough memory for --size");
    b.client = c->client;
    if (!code)
        code = run_rows(c, &b, former);
    gpurest_module_unload(b.module);
    gpurest_session_close(b.session);
    free(b.data);
    cJSON_Delete(former);
    return code;
}
