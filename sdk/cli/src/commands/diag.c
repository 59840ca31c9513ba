/* A ladder of checks, each deeper than the one before; every step says what it found. */
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

static bool failed(char *found, size_t room)
{
    snprintf(found, room, "%s", gpurest_last_error()->message);
    return false;
}

static gpurest_session *open_session(struct cli *c)
{
    gpurest_session *session = NULL;

    return cli_open_noted(c, &session, NULL) ? NULL : session;
}

static bool connectivity(struct cli *c, char *found, size_t room)
{
    snprintf(found, room, "%s", gpurest_server_version(c->client));
    return gpurest_request(c->client, "GET", "/readyz", NULL, NULL) == GPUREST_OK || failed(found, room);
}

static bool devices(struct cli *c, char *found, size_t room)
{
    gpurest_device_info_t info = GPUREST_DEVICE_INFO_INIT;
    int                   count = 0;
    size_t                at = 0;

    if (gpurest_device_count(c->client, &count) || count == 0)
        return failed(found, room);
    for (int i = 0; i < count && at < room; i++) {
        if (gpurest_device_info(c->client, i, &info))
            return failed(found, room);
        at += (size_t)snprintf(found + at, room - at, "%s%s %s %s", i ? ", " : "", info.id, info.name, info.state);
        if (strcmp(info.state, "healthy") != 0)
            return false;
    }
    return true;
}

/* Written, copied on the device, read back: bytes that depend on their place. */
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

static bool memory_pattern(struct cli *c, char *found, size_t room)
{
    unsigned char   *out = malloc(PATTERN_BYTES), *back = calloc(1, PATTERN_BYTES);
    gpurest_session *s = open_session(c);
    bool             ok = out && back && s;

    for (size_t i = 0; ok && i < PATTERN_BYTES; i++)
        out[i] = (unsigned char)(i * 2654435761u >> 13);
    ok = ok && move_pattern(s, out, back) == GPUREST_OK;
    if (!ok)
        failed(found, room);
    else if (memcmp(out, back, PATTERN_BYTES) != 0)
        ok = (snprintf(found, room, "bytes came back different"), false);
    else
        snprintf(found, room, "%d MiB there, copied, and back, equal", PATTERN_BYTES >> 20);
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

static bool compute(struct cli *c, char *found, size_t room)
{
    static unsigned values[VALUES];
    gpurest_arg     args[] = {GPUREST_OUT(values, sizeof values), GPUREST_U32(VALUES)};
    gpurest_times   times = {0};

    if (gpurest_run(c->client, source, "squares", GPUREST_1D(VALUES / 256), GPUREST_1D(256), args, 2, &times))
        return failed(found, room);
    for (unsigned i = 0; i < VALUES; i++)
        if (values[i] != i * i + 1u) {
            snprintf(found, room, "element %u is %u instead of %u", i, values[i], i * i + 1u);
            return false;
        }
    snprintf(found, room, "%d values right; compiled in %.1f ms", VALUES, times.compile_ms);
    return true;
}

/* A buffer and a kernel that writes far beyond it; what the launch said. */
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

/* A kernel that faults in one session must leave another one computing. */
static bool isolated(gpurest_session *faulty, gpurest_session *neighbour, char *found, size_t room)
{
    gpurest_module *module = NULL;
    gpurest_buffer  y;
    unsigned char   byte = 42, back = 0;
    gpurest_status  st = gpurest_alloc_from(neighbour, &y, &byte, 1);

    if (st)
        return failed(found, room);
    st = launch_bad(faulty, &module);
    gpurest_module_unload(module);
    if (st != GPUREST_E_CUDA)
        return snprintf(found, room, "a bad address gave: %s", st ? gpurest_last_error()->message : "success"), false;
    if (gpurest_read(neighbour, y, 0, &back, 1))
        return failed(found, room);
    snprintf(found, room, "%s", back == 42 ? "a fault in one session, the other goes on" : "the neighbour's byte has changed");
    return back == 42;
}

static bool isolation(struct cli *c, char *found, size_t room)
{
    gpurest_session *faulty = open_session(c), *neighbour = faulty ? open_session(c) : NULL;
    bool             ok = neighbour ? isolated(faulty, neighbour, found, room) : failed(found, room);

    gpurest_session_close(faulty);
    gpurest_session_close(neighbour);
    return ok;
}

static const struct step steps[] = {
    {1, "connectivity", connectivity}, {1, "devices", devices}, {2, "memory pattern", memory_pattern}, {3, "kernel", compute},
    {4, "fault isolation", isolation},
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
        return cli_usage(c, "--level is from 1 to %d", LEVEL_MAX);
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
