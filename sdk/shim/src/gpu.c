/* The service's devices as a program sees them, found once; each gets a session of the gpurest service when it is first needed. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "session/session.h"
#include "shim.h"

static gpurest_client *client; /* NULL: not connected */
static struct gpu      gpus[DEVICES_MAX];
static int             found; /* devices; 0: not looked for yet, or none */
static bool            told;  /* that there is no service */

/* ---- devices ---- */

enum {
    ATTRIBUTE_MAX_PITCH = 11,
    ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
    ATTRIBUTE_INTEGRATED = 18,
    ATTRIBUTE_UNIFIED_ADDRESSING = 41,
    ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    ATTRIBUTE_MEMORY_POOLS = 115,
    REGISTERS_OF_EVERY_GPU = 65536,
};

static const struct {
    const char *name;
    int         number;
    bool        offered;
} attribute_rows[] = {
#define ATTRIBUTE(name, number, offered) {#name, number, offered},
#include "attributes.def"
#undef ATTRIBUTE
};

/* The cpu device has neither registers nor pitches; programs divide by them. */
static void fill_attributes(struct gpu *g, const struct json *reported)
{
    for (const struct json *v = json_first(reported); v; v = json_next(v))
        for (size_t i = 0; i < COUNT(attribute_rows); i++)
            if (attribute_rows[i].offered && attribute_rows[i].number < ATTRIBUTES_MAX && strcmp(json_name(v), attribute_rows[i].name) == 0)
                g->attributes[attribute_rows[i].number] = (int64_t)json_number_or(v, 0);
    g->attributes[ATTRIBUTE_UNIFIED_ADDRESSING] = 1; /* an address of the device is none of this process */
    g->attributes[ATTRIBUTE_INTEGRATED] = 0;
    g->attributes[ATTRIBUTE_MEMORY_POOLS] = 1; /* they are this library's own */
    if (g->attributes[ATTRIBUTE_MAX_PITCH] == 0)
        g->attributes[ATTRIBUTE_MAX_PITCH] = INT32_MAX;
    if (g->attributes[ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] == 0)
        g->attributes[ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = REGISTERS_OF_EVERY_GPU;
    if (g->attributes[ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] == 0)
        g->attributes[ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = g->attributes[ATTRIBUTE_MAX_REGISTERS_PER_BLOCK];
}

/* "GPU-xxxxxxxx-xxxx-…", or CPU-: 16 bytes in hexadecimal. A device without one gets its id's bytes, so that devices differ. */
static void fill_uuid(struct gpu *g, const char *text)
{
    size_t bytes = 0;

    memset(&g->uuid, 0, sizeof g->uuid);
    text += strncmp(text, "GPU-", 4) == 0 || strncmp(text, "CPU-", 4) == 0 ? 4 : 0;
    while (*text && bytes < sizeof g->uuid.bytes) {
        unsigned byte;

        text += *text == '-';
        if (sscanf(text, "%2x", &byte) != 1 || !text[0] || !text[1])
            break;
        g->uuid.bytes[bytes++] = (char)byte;
        text += 2;
    }
    if (bytes < sizeof g->uuid.bytes)
        memcpy(g->uuid.bytes, g->id, sizeof g->uuid.bytes);
}

static void add_device(const struct json *v)
{
    const char *wanted = getenv("GPUREST_DEVICE");
    struct gpu *g = &gpus[found];

    *g = (struct gpu){.ordinal = found};
    if (found == DEVICES_MAX || !json_copy(json_member(v, "id"), g->id, sizeof g->id) || (wanted && *wanted && strcmp(wanted, g->id) != 0))
        return;
    snprintf(g->name, sizeof g->name, "%s", json_text_or(json_member(v, "name"), g->id));
    g->total_bytes = json_integer_or(json_member(json_member(v, "memory"), "total_bytes"), 0);
    fill_uuid(g, json_text_or(json_member(v, "uuid"), ""));
    fill_attributes(g, json_member(v, "attributes"));
    found++;
}

static gpurest_status list_devices(void)
{
    char          *text = NULL;
    struct json   *answer;
    gpurest_status st = gpurest_request(client, "GET", "/v1/devices", NULL, &text);

    if (st)
        return st;
    answer = json_parse(text, strlen(text));
    for (const struct json *v = json_first(json_member(answer, "items")); v; v = json_next(v))
        add_device(v);
    json_destroy(answer);
    gpurest_mem_free(text);
    return GPUREST_OK;
}

/* ---- the service ---- */

/* What a kernel prints is the program's output. */
static void print_output(void *arg, const char *text, int truncated)
{
    (void)arg;
    fputs(text, stdout);
    if (truncated)
        tell("the kernel printed more than the service keeps; the rest is lost");
    fflush(stdout);
}

static gpurest_status connect_to_service(void)
{
    gpurest_status st = gpurest_open(&client, NULL);

    if (st)
        return st;
    gpurest_client_set_output(client, print_output, NULL);
    return list_devices();
}

/* Not every error has one. */
static const char *before_hint(const gpurest_error *e)
{
    return e->hint[0] ? "; " : "";
}

CUresult gpus_find(void)
{
    const gpurest_error *e;
    gpurest_status       st;

    if (found)
        return CUDA_SUCCESS;
    st = client ? list_devices() : connect_to_service();
    if (found)
        return CUDA_SUCCESS;
    e = gpurest_last_error();
    if (!told && st)
        tell("no device: %s%s%s. GPUREST_URL names the service", e->message, before_hint(e), e->hint);
    else if (!told)
        tell("the service has no device %s", getenv("GPUREST_DEVICE") ? getenv("GPUREST_DEVICE") : "");
    told = true;
    return CUDA_ERROR_NO_DEVICE;
}

int gpus_count(void)
{
    return found;
}

struct gpu *gpu_at(CUdevice device)
{
    return gpus_find() == CUDA_SUCCESS && device >= 0 && device < found ? &gpus[device] : NULL;
}

bool gpu_checks_memory(void)
{
    const char *memcheck = getenv("GPUREST_MEMCHECK");

    return memcheck && *memcheck && strcmp(memcheck, "0") != 0;
}

CUresult gpu_session(struct gpu *g)
{
    gpurest_session_options o = GPUREST_SESSION_OPTIONS_INIT;
    const char             *name;

    if (g->session || g->sticky)
        return g->sticky;
    name = getenv("GPUREST_SESSION");
    o.device = g->id;
    o.name = name && *name ? name : NULL;
    o.keep = o.name != NULL;
    o.memcheck = gpu_checks_memory();
    o.lease_s = o.name ? 0 : LEASE_S;
    if (gpurest_session_open(&g->session, client, &o)) {
        tell("no session on %s: %s%s%s", g->id, gpurest_last_error()->message, before_hint(gpurest_last_error()),
             gpurest_last_error()->hint);
        return result_of_failure();
    }
    session_keep_addresses(g->session);
    if (o.memcheck)
        report_begin();
    return CUDA_SUCCESS;
}

CUresult gpu_fail(struct gpu *g, CUresult result)
{
    if (!g->sticky)
        g->sticky = result;
    return g->sticky;
}

void gpu_tell_failure(const struct gpu *g)
{
    if (!report_fault())
        tell("%s: %s", g->id, gpurest_last_error()->message);
}

/* A refused request leaves everything as it was; a broken connection, or a fault, does not. */
CUresult gpu_failed(struct gpu *g)
{
    const gpurest_error *e = gpurest_last_error();
    bool gone = e->fatal_for_session || e->status == GPUREST_E_CONNECT || e->status == GPUREST_E_TIMEOUT || e->status == GPUREST_E_PROTO ||
                e->status == GPUREST_E_SESSION_LOST;

    if (gone && !g->sticky)
        gpu_tell_failure(g);
    return gone ? gpu_fail(g, result_of_failure()) : result_of_failure();
}

CUresult gpu_reset(struct gpu *g)
{
    queue_drop(g);
    if (g->session && gpurest_session_reset(g->session))
        return gpu_fail(g, result_of_failure());
    g->sticky = CUDA_SUCCESS;
    return CUDA_SUCCESS;
}

void gpus_flush(void)
{
    for (int i = 0; i < found; i++)
        queue_flush(&gpus[i]);
}

void gpus_close(void)
{
    for (int i = 0; i < found; i++) {
        if (report_on())
            report_lost(queue_end_of_process(&gpus[i]));
        queue_drop(&gpus[i]);
        gpurest_session_close(gpus[i].session);
        gpus[i].session = NULL;
    }
    gpurest_close(client);
    client = NULL;
}

/* A service beside the program spins, too; with few processors that takes the one that the other needs. */
static bool has_processors(void)
{
    static atomic_int known; /* 0: not yet */
    cpu_set_t         set;
    int               count = atomic_load(&known);

    if (!count)
        count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    atomic_store(&known, count);
    return count >= SPIN_CPUS_MIN;
}

void gpu_wait_as(unsigned context_flags)
{
    enum { WAIT_SPIN = 1, WAIT_BLOCKING = 4, WAIT_MASK = 7 };
    unsigned how = context_flags & WAIT_MASK;

    if (client)
        atomic_store(&client->spin_us, how == WAIT_SPIN || (how != WAIT_BLOCKING && has_processors()) ? SPIN_US : 0);
}

uint64_t gpu_messages(void)
{
    return client ? atomic_load(&client->requests) : 0;
}
