/* monitor: the devices' figures, a line for each device and interval. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands/commands.h"

enum { INTERVAL_MS = 1000, INTERVAL_MS_MAX = 3600 * 1000 };

static const struct column columns[] = {
    {"DEVICE", "id", FORMAT_TEXT, false},
    {"TEMP C", "temperature_c", FORMAT_NUMBER, false},
    {"POWER W", "power_w", FORMAT_NUMBER, false},
    {"CLOCK KHZ", "clock_khz", FORMAT_NUMBER, false},
    {"BUSY %", "utilization_pct", FORMAT_NUMBER, false},
    {"MEM BUSY %", "memory_utilization_pct", FORMAT_NUMBER, false},
    {"USED", "memory_used_bytes", FORMAT_BYTES, false},
    {"ERRORS/S", "errors_per_s", FORMAT_NUMBER, false},
};
const struct listing figures_listing = {"gpurest.figures/1", columns, COUNT(columns)};

struct errors {
    double total, at_s; /* at_s 0: not known */
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Error answers of the service so far. Without the scope for metrics they stay unknown. */
static struct errors count_errors(struct cli *c)
{
    static const char family[] = "gpurest_problems_total{";
    struct errors     found = {0, now_s()};
    char             *text = NULL;

    if (gpurest_request(c->client, "GET", "/metrics", NULL, &text))
        return (struct errors){0, 0};
    for (const char *at = strstr(text, family); at; at = strstr(at + 1, family)) {
        const char *value = strchr(at, '}');

        found.total += value ? strtod(value + 1, NULL) : 0;
    }
    gpurest_mem_free(text);
    return found;
}

/* Without the range of INT64 in doubles: memory sizes are below 2^53. */
static void add_figures(cJSON *device, const cJSON *rate)
{
    const cJSON *total = output_member(device, "memory.total_bytes"), *unused = output_member(device, "memory.free_bytes");

    cJSON_AddNumberToObject(device, "memory_used_bytes",
                            cJSON_IsNumber(total) && cJSON_IsNumber(unused) ? total->valuedouble - unused->valuedouble : 0);
    cJSON_AddItemToObject(device, "errors_per_s", cJSON_Duplicate(rate, true));
}

static void print_document(const struct cli *c, const cJSON *device, const char *at)
{
    cJSON *line = cJSON_CreateObject();
    char  *text;

    cJSON_AddStringToObject(line, "at", at);
    for (size_t i = 0; i < COUNT(columns); i++)
        cJSON_AddItemToObject(line, columns[i].path, cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(device, columns[i].path), true));
    text = cJSON_PrintUnformatted(line);
    fprintf(c->out, "%s\n", text ? text : "");
    cJSON_free(text);
    cJSON_Delete(line);
}

static void print_line(const struct cli *c, const cJSON *device, const char *at)
{
    char text[CELL_BYTES];

    fprintf(c->out, "%-8s", at);
    for (size_t i = 0; i < COUNT(columns); i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(device, columns[i].path);

        fprintf(c->out, "  %*s", (int)strlen(columns[i].title) > 10 ? (int)strlen(columns[i].title) : 10,
                columns[i].format == FORMAT_BYTES && cJSON_IsNumber(v) ? text_of_bytes(v->valuedouble, text) : output_cell(v, text));
    }
    fputc('\n', c->out);
}

static void print_header(const struct cli *c)
{
    fprintf(c->out, "%-8s", "TIME");
    for (size_t i = 0; i < COUNT(columns); i++)
        fprintf(c->out, "  %10s", columns[i].title);
    fputc('\n', c->out);
}

static enum exit_code print_interval(struct cli *c, struct errors *before)
{
    bool           json = c->output == OUTPUT_JSON || c->output == OUTPUT_JSONL;
    cJSON         *items = cJSON_CreateArray(), *device, *rate;
    enum exit_code code = cli_get_all(c, "/v1/devices", items);
    struct errors  now = count_errors(c);
    time_t         wall = time(NULL);
    struct tm      split;
    char           at[32];

    if (json)
        strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&wall, &split));
    else
        strftime(at, sizeof at, "%H:%M:%S", localtime_r(&wall, &split));
    rate = now.at_s > 0 && before->at_s > 0 && now.at_s > before->at_s
               ? cJSON_CreateNumber((now.total - before->total) / (now.at_s - before->at_s))
               : cJSON_CreateNull();
    cJSON_ArrayForEach(device, items)
    {
        add_figures(device, rate);
        if (json)
            print_document(c, device, at);
        else
            print_line(c, device, at);
    }
    *before = now;
    cJSON_Delete(rate);
    cJSON_Delete(items);
    fflush(c->out);
    return code;
}

enum exit_code figures_follow(struct cli *c)
{
    uint64_t        ms = INTERVAL_MS, count = 0;
    bool            ok = true;
    struct errors   before;
    struct timespec pause;
    enum exit_code  code;

    take_number(c, "-i", &ms, &ok);
    if (ok)
        take_number(c, "-c", &count, &ok);
    if (!ok || !take_rest(c, 0, 0))
        return CODE_USAGE;
    if (ms == 0 || ms > INTERVAL_MS_MAX)
        return cli_usage(c, "-i must be from 1 to %d milliseconds", INTERVAL_MS_MAX);
    code = cli_open(c);
    if (code)
        return code;
    pause = (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000L};
    before = count_errors(c);
    if (!c->no_header && c->output != OUTPUT_JSON && c->output != OUTPUT_JSONL)
        print_header(c);
    for (uint64_t i = 0; !code && !ferror(c->out) && (count == 0 || i < count); i++) {
        if (i)
            nanosleep(&pause, NULL);
        code = print_interval(c, &before);
    }
    return code;
}
