/* diag: checks in order of depth. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"

enum { LEVEL_MAX = 4, PATTERN_BYTES = 16 << 20, VALUES = 4096 };

struct step {
    unsigned    level;
    const char *name;
    bool (*run)(struct cli *c, char *found, size_t room);
};

static bool report_failure(char *found, size_t room)
{
    snprintf(found, room, "%s", gpurest_last_error()->message);
    return false;
}

static gpurest_session *open_session(struct cli *c)
{
    gpurest_session *session = NULL;

    return cli_open_noted(c, &session, NULL) ? NULL : session;
}

static bool check_connectivity(struct cli *c, char *found, size_t room)
{
    snprintf(found, room, "%s", gpurest_server_version(c->client));
    return gpurest_request(c->client, "GET", "/readyz", NULL, NULL) == GPUREST_OK || report_failure(found, room);
}

static bool check_devices(struct cli *c, char *found, size_t room)
{
    gpurest_device_info_t info = GPUREST_DEVICE_INFO_INIT;
    int                   count = 0;
    size_t                at = 0;

    if (gpurest_device_count(c->client, &count) || count == 0)
        return report_failure(found, room);
    for (int i = 0; i < count && at < room; i++) {
        if (gpurest_device_info(c->client, i, &info))
            return report_failure(found, room);
        at += (size_t)snprintf(found + at, room - at, "%s%s %s %s", i ? ", " : "", info.id, info.name, info.state);
        if (strcmp(info.state, "healthy") != 0)
            return false;
    }
    return true;
}

/* Writes a pattern, copies it on the device, reads it back. */
static gpurest_status move_pattern(gpurest_session *s, unsigned char *out, unsigned char *back)
{
    gpurest_buffer a, b;
    gpurest_status st = gpurest_alloc_from(s, &a, out, PATTERN_BYTES);

    if (!st)
        st = gpurest_alloc(s, &b, PATTERN_BYTES);
    if (!st)
        st = gpurest_copy(s, b, 0, a, 0, PATTERN_BYTES, (gpurest_stream){0});
    return st ? st : gpurest_read(s, b, 0, back, PATTERN_BYTES);
}

static bool check_memory(struct cli *c, char *found, size_t room)
{
    unsigned char   *out = malloc(PATTERN_BYTES), *back = calloc(1, PATTERN_BYTES);
    gpurest_session *s = open_session(c);
    bool             ok = out && back && s;

    for (size_t i = 0; ok && i < PATTERN_BYTES; i++)
        out[i] = (unsigned char)(i * 2654435761u >> 13);
    ok = ok && move_pattern(s, out, back) == GPUREST_OK;
    if (!ok)
        report_failure(found, room);
    else if (memcmp(out, back, PATTERN_BYTES) != 0)
        ok = (snprintf(found, room, "the bytes read differ from those written"), false);
    else
        snprintf(found, room, "%d MiB written, copied, read back: equal", PATTERN_BYTES >> 20);
    gpurest_session_close(s);
    free(out);
    free(back);
    return ok;
}

static const char source[] = "extern \"C\" __global__ void squares(unsigned *x, unsigned n) {\n"
                             "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n) x[i] = i * i + 1u;\n"
                             "}\n"
                             "extern \"C\" __global__ void bad(int *x) { x[1ll << 40] = 1; }\n";

static bool check_kernel(struct cli *c, char *found, size_t room)
{
    static unsigned values[VALUES];
    gpurest_arg     args[] = {GPUREST_OUT(values, sizeof values), GPUREST_U32(VALUES)};
    gpurest_times   times = {0};

    if (gpurest_run(c->client, source, "squares", GPUREST_1D(VALUES / 256), GPUREST_1D(256), args, 2, &times))
        return report_failure(found, room);
    for (unsigned i = 0; i < VALUES; i++)
        if (values[i] != i * i + 1u) {
            snprintf(found, room, "element %u is %u instead of %u", i, values[i], i * i + 1u);
            return false;
        }
    snprintf(found, room, "%d values correct; compiled in %.1f ms", VALUES, times.compile_ms);
    return true;
}

/* Launches a kernel that writes far outside its buffer. */
static gpurest_status launch_bad(gpurest_session *s, gpurest_module **module)
{
    const gpurest_kernel *bad;
    gpurest_buffer        x;
    gpurest_status        st = gpurest_compile(s, module, source, NULL, 0);

    if (!st)
        st = gpurest_kernel_get(*module, "bad", &bad);
    if (!st)
        st = gpurest_alloc(s, &x, 64);
    if (st)
        return st;
    gpurest_arg args[] = {GPUREST_BUF(x)};
    return gpurest_launch(s, bad, GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, args, 1);
}

/* A fault in one session must not affect another. */
static bool check_isolated(gpurest_session *faulty, gpurest_session *neighbour, char *found, size_t room)
{
    gpurest_module *module = NULL;
    gpurest_buffer  y;
    unsigned char   byte = 42, back = 0;
    gpurest_status  st = gpurest_alloc_from(neighbour, &y, &byte, 1);

    if (st)
        return report_failure(found, room);
    st = launch_bad(faulty, &module);
    gpurest_module_unload(module);
    if (st != GPUREST_E_CUDA)
        return snprintf(found, room, "a bad address gave an unexpected result: %s", st ? gpurest_last_error()->message : "success"), false;
    if (gpurest_read(neighbour, y, 0, &back, 1))
        return report_failure(found, room);
    snprintf(found, room, "%s", back == 42 ? "a fault in one session leaves the other intact" : "the other session's byte has changed");
    return back == 42;
}

static bool check_isolation(struct cli *c, char *found, size_t room)
{
    gpurest_session *faulty = open_session(c), *neighbour = faulty ? open_session(c) : NULL;
    bool             ok = neighbour ? check_isolated(faulty, neighbour, found, room) : report_failure(found, room);

    gpurest_session_close(faulty);
    gpurest_session_close(neighbour);
    return ok;
}

static const struct step steps[] = {
    {1, "connectivity", check_connectivity}, {1, "devices", check_devices},
    {2, "memory pattern", check_memory},     {3, "kernel", check_kernel},
    {4, "fault isolation", check_isolation},
};

static const struct column columns[] = {
    {"LEVEL", "level", FORMAT_NUMBER, false},
    {"STEP", "step", FORMAT_TEXT, false},
    {"RESULT", "result", FORMAT_TEXT, false},
    {"FOUND", "found", FORMAT_TEXT, false},
};
const struct listing diag_listing = {"gpurest.diag/1", columns, COUNT(columns)};

enum exit_code run_diag(struct cli *c)
{
    uint64_t       level = LEVEL_MAX;
    const char    *bundle = NULL;
    bool           ok = true, passed = true;
    cJSON         *items;
    enum exit_code code;

    take_number(c, "--level", &level, &ok);
    if (ok)
        take_value(c, "--bundle", &bundle, &ok);
    if (!ok || !take_rest(c, 0, 0))
        return CODE_USAGE;
    if (level < 1 || level > LEVEL_MAX)
        return cli_usage(c, "--level must be from 1 to %d", LEVEL_MAX);
    code = cli_open(c);
    if (code)
        return code;
    items = cJSON_CreateArray();
    for (size_t i = 0; i < COUNT(steps) && steps[i].level <= level; i++) {
        cJSON *item = cJSON_CreateObject();
        char   found[512] = "";
        bool   good = steps[i].run(c, found, sizeof found);

        cJSON_AddNumberToObject(item, "level", steps[i].level);
        cJSON_AddStringToObject(item, "step", steps[i].name);
        cJSON_AddStringToObject(item, "result", good ? "ok" : "FAILED");
        cJSON_AddStringToObject(item, "found", found);
        cJSON_AddItemToArray(items, item);
        passed = passed && good;
    }
    code = output_items(c, &diag_listing, items);
    if (!code && bundle)
        code = bundle_write(c, bundle, items);
    cJSON_Delete(items);
    return code || passed ? code : CODE_DEGRADED;
}
