/* The only device of a worker executable, "fake": in memory, with kernels that misbehave on request. The page in the file that --script names
 * (fake_script.h) steers it: words in it make counting, opening or computing go wrong, figures make calls fail and memory scarce. */
#include "support/fake_device.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/deadline.h"
#include "support/hostile.h"

static struct fake_script   nobodys = {.fail_at = -1, .die_at = -1};
static struct fake_holdings unseen;
static char                 steering[256];

struct fake_script   *script = &nobodys;
struct fake_holdings *own_holdings = &unseen;

struct device_module {
    struct kernel_table table;
    unsigned char       globals[FAKE_GLOBALS][FAKE_GLOBAL_BYTES];
};

struct device_event {
    uint64_t done_ns;
    uint64_t recorded_ns;
    bool     waits, stands;
    bool     faulted; /* it lies behind the fault */
    bool     stumbles;
};

static struct device_stream default_stream;

struct device_stream *stream_of(struct device_stream *s)
{
    return s ? s : &default_stream;
}

bool told(const char *word)
{
    return strstr(steering, word) != NULL;
}

bool fake_is_seen(void)
{
    return own_holdings != &unseen;
}

/* What came before was the worker's own. */
void fake_be_seen(void)
{
    for (unsigned i = 0; own_holdings == &unseen && i < FAKE_WORKERS_MAX; i++)
        if (atomic_compare_exchange_strong(&script->workers[i].pid, &(int){0}, (int)getpid()))
            own_holdings = &script->workers[i];
}

void device_set(struct span name, const char *value)
{
    int   fd = span_is(name, "script") ? open(value, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *script, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd < 0)
        return;
    close(fd);
    if (at != MAP_FAILED)
        script = at;
    memcpy(steering, script->words, sizeof steering);
}

static unsigned fake_count(struct problem *why)
{
    if (told("hang-count"))
        pause();
    if (told("crash-count"))
        _exit(1);
    if (told("none"))
        problem_set(why, STATUS_DEVICE_NOT_FOUND, "the fake was told to have none");
    if (told("unknown"))
        problem_set(why, STATUS_DEVICE_ERROR, "the fake was told not to know");
    return told("none") || told("unknown") ? 0 : told("two") || told("swapped") ? 2 : 1;
}

/* The first is "FAKE-a", the second "FAKE-b". */
static void fake_identify(unsigned index, char out[DEVICE_UUID_BYTES])
{
    bool second = told("swapped") ? index == 0 : told("second") || index == 1;

    snprintf(out, DEVICE_UUID_BYTES, "%s", told("nameless") ? "" : second ? "FAKE-b" : "FAKE-a");
}

/* Its kernels hang and misbehave through system calls that a device without a driver may not make. */
static const char *fake_driver_build(struct device *d)
{
    (void)d;
    return "";
}

static const char *const          nothing[] = {NULL};
static const struct device_driver fake_driver = {.build = fake_driver_build, .reads = nothing, .device_files = nothing};

static const struct device_driver *driver_of(unsigned device)
{
    (void)device;
    return &fake_driver;
}

static enum status fake_open(struct device **out, unsigned index, struct problem *why)
{
    if (told("hang-open"))
        pause();
    if (told("fail-open") || (told("fail-second") && index == 1))
        return problem_set(why, STATUS_DEVICE_ERROR, "the fake was told not to open");
    if (told("short-open"))
        return problem_set(why, STATUS_DEVICE_MEMORY_EXHAUSTED, "the fake was told to be full");
    *out = calloc(1, sizeof **out);
    (*out)->index = index;
    buf_init(&(*out)->printed, KERNEL_OUTPUT_BYTES_MAX);
    hostile_prepare();
    return STATUS_OK;
}

static void fake_close(struct device *d)
{
    free(d);
}

static enum status fake_info(struct device *d, struct device_info *out)
{
    if (told("hang-info"))
        pause();
    snprintf(out->name, sizeof out->name, "Fake");
    fake_identify(d->index, out->uuid);
    out->total_bytes = 1 << 30;
    out->free_bytes = out->total_bytes - d->bytes;
    snprintf(out->compile_arch, sizeof out->compile_arch, "compute_75");
    out->code_format = DEVICE_CODE_PTX;
    snprintf(out->compiler, sizeof out->compiler, "nvrtc");
    out->warp_size = 32;
    out->max_threads_per_block = FAKE_MAX_THREADS;
    for (unsigned i = 0; i < 3; i++) {
        out->max_block[i] = FAKE_MAX_THREADS;
        out->max_grid[i] = FAKE_MAX_GRID;
    }
    out->max_shared_bytes_per_block = FAKE_MAX_SHARED;
    out->sharing = script->sharing;
    out->sharing_unit = FAKE_SHARING_UNIT;
    return STATUS_OK;
}

static enum status fake_memory(struct device *d, struct device_memory *out)
{
    *out = script->told ? script->memory
                        : (struct device_memory){.total_bytes = 1 << 30, .free_bytes = (1 << 30) - d->bytes, .allocated_bytes = d->bytes};
    return STATUS_OK;
}

/* ---- modules: every image that loads has all kernels, which may print unless it is "quiet…" ---- */

static const struct {
    const char *name;
    uint32_t    params_bytes;
} kernels[FAKE_KERNELS] = {{"gpurest_canary", 20},
                           {"add_one", 12},
                           {"slow", 4},
                           {"endless", 0},
                           {"fault", 0},
                           {"crash", 0},
                           {"print_number", 4},
                           {"refuse", 0},
                           {"descriptors", 0},
                           {"noted", 0},
                           {"stumble", 0},
                           {"hostile", 4},
                           {"lie", 12},
                           {"noop", 0},
                           {"increment", 12}, /* adds 1 to n bytes at p */
                           {"wait", 0},       /* until the script releases it */
                           {"print", 0},      /* 8 bytes */
                           {"_Z6scaledPfi", 12},
                           {"limited", 0}}; /* to 64 threads, with 1 KiB of static shared memory */

static void kernel_add(struct kernel_table *t, unsigned i)
{
    bool                typed = strcmp(kernels[i].name, "increment") == 0 || strcmp(kernels[i].name, "_Z6scaledPfi") == 0;
    struct kernel_desc *k = kernel_table_add(t, span_of(kernels[i].name), typed ? 2 : 0);

    k->params_bytes = kernels[i].params_bytes;
    k->max_threads = FAKE_MAX_THREADS;
    if (strcmp(kernels[i].name, "limited") == 0) {
        k->max_threads = 64;
        k->shared_bytes = 1024;
    }
    if (!typed)
        return;
    k->params[0] = (struct kernel_param){0, 8, "u64"};
    k->params[1] = (struct kernel_param){8, 4, "u32"};
}

static bool begins(const char *image, size_t bytes, const char *word)
{
    return bytes >= strlen(word) && memcmp(image, word, strlen(word)) == 0;
}

/* The first of which begins with 1, 2, 3…; "plain" has none. */
static bool globals_add(struct device_module *m)
{
    static const char *const names[FAKE_GLOBALS] = {"counter", "_ZN2ns5tableE"};

    for (unsigned i = 0; i < FAKE_GLOBALS; i++) {
        struct kernel_global *g = kernel_table_add_global(&m->table, span_of(names[i]));

        if (!g)
            return false;
        g->address = (uintptr_t)m->globals[i];
        g->bytes = sizeof m->globals[i];
        g->constant = i;
        for (unsigned k = 0; k < g->bytes; k++)
            m->globals[i][k] = (unsigned char)(i ? 0 : k + 1);
    }
    return true;
}

static enum status fake_module_load(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why)
{
    struct device_module *m;

    (void)d;
    if (begins(image, bytes, "junk") || begins(image, bytes, "bad "))
        return problem_set(why, STATUS_MODULE_INVALID, "line 1: junk");
    m = calloc(1, sizeof *m);
    kernel_table_init(&m->table);
    m->table.prints = !begins(image, bytes, "quiet");
    for (unsigned i = 0; i < FAKE_KERNELS; i++)
        kernel_add(&m->table, i);
    if (!begins(image, bytes, "plain") && !globals_add(m)) {
        kernel_table_finish(&m->table);
        free(m);
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    }
    own_holdings->modules++;
    *out = m;
    return STATUS_OK;
}

static void fake_module_unload(struct device *d, struct device_module *m)
{
    (void)d;
    if (!m)
        return;
    own_holdings->modules--;
    kernel_table_finish(&m->table);
    free(m);
}

static const struct kernel_table *fake_module_table(const struct device_module *m)
{
    return &m->table;
}

/* ---- launches ---- */

static void run_canary(const unsigned char *params)
{
    uint64_t in, out;
    uint32_t n;

    memcpy(&in, params, 8);
    memcpy(&out, params + 8, 8);
    memcpy(&n, params + 16, 4);
    for (uint32_t i = 0; i < n; i++)
        ((uint32_t *)(uintptr_t)out)[i] = ((const uint32_t *)(uintptr_t)in)[i] * 3 + (told("wrong-canary") ? 8 : 7);
}

static void run_add_one(const unsigned char *params)
{
    uint64_t at;
    uint32_t n;

    memcpy(&at, params, 8);
    memcpy(&n, params + 8, 4);
    for (uint32_t i = 0; i < n; i++)
        ((uint32_t *)(uintptr_t)at)[i]++;
}

static void run_increment(const unsigned char *params)
{
    uint64_t at;
    uint32_t n;

    memcpy(&at, params, 8);
    memcpy(&n, params + 8, 4);
    for (uint32_t i = 0; i < n; i++)
        ((unsigned char *)(uintptr_t)at)[i]++;
}

static uint32_t number(const void *params)
{
    uint32_t n;

    memcpy(&n, params, sizeof n);
    return n;
}

static void run_lie(const unsigned char *params)
{
    uint64_t call;

    memcpy(&call, params + 4, sizeof call);
    hostile_lie(number(params), call);
}

static void run_descriptors(struct device *d)
{
    DIR           *folder = opendir("/proc/self/fd");
    struct dirent *e;

    while ((e = readdir(folder)))
        if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(folder))
            buf_printf(&d->printed, "%s ", e->d_name);
    closedir(folder);
    for (char **v = environ; *v; v++)
        buf_printf(&d->printed, "%s ", *v);
}

static enum status fake_event_record(struct device *d, struct device_stream *s, struct device_event *e);

static enum status fake_launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    const char           *name = l->module->table.kernels[l->kernel].name;
    struct device_stream *on = stream_of(s);

    if (strcmp(name, "refuse") == 0)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the fake refuses");
    if (l->before && fake_event_record(d, s, l->before))
        return STATUS_KERNEL_FAULT;
    if (strcmp(name, "gpurest_canary") == 0)
        run_canary(l->params);
    if (strcmp(name, "add_one") == 0)
        run_add_one(l->params);
    if (strcmp(name, "increment") == 0)
        run_increment(l->params);
    if (strcmp(name, "wait") == 0)
        on->waits = true;
    if (strcmp(name, "print") == 0)
        buf_add_text(&d->printed, "printed\n");
    if (strcmp(name, "slow") == 0)
        on->busy_until_ns = now_ns() + number(l->params) * NS_PER_MS;
    if (strcmp(name, "endless") == 0)
        on->busy_until_ns = UINT64_MAX;
    if (strcmp(name, "fault") == 0)
        d->faulted = true;
    if (strcmp(name, "noted") == 0)
        d->faulted = d->noted = true;
    if (strcmp(name, "stumble") == 0)
        on->stumbles = true;
    if (strcmp(name, "crash") == 0)
        raise(SIGKILL);
    if (strcmp(name, "hostile") == 0)
        hostile_run(number(l->params));
    if (strcmp(name, "lie") == 0)
        run_lie(l->params);
    if (strcmp(name, "print_number") == 0)
        buf_printf(&d->printed, "printed %u\n", number(l->params));
    if (strcmp(name, "descriptors") == 0)
        run_descriptors(d);
    return l->after ? fake_event_record(d, s, l->after) : STATUS_OK;
}

static enum status fake_best_block(struct device *d, const struct device_module *m, unsigned kernel, uint32_t shared, uint32_t *threads)
{
    (void)d, (void)m, (void)kernel, (void)shared;
    *threads = FAKE_BEST_BLOCK;
    return STATUS_OK;
}

static enum status fake_stream_create(struct device *d, struct device_stream **out)
{
    (void)d;
    *out = calloc(1, sizeof **out);
    return STATUS_OK;
}

static void fake_stream_destroy(struct device *d, struct device_stream *s)
{
    (void)d;
    free(s);
}

static enum status fake_event_create(struct device *d, struct device_event **out)
{
    (void)d;
    *out = calloc(1, sizeof **out);
    return STATUS_OK;
}

static void fake_event_destroy(struct device *d, struct device_event *e)
{
    (void)d;
    free(e);
}

/* Behind all that is on the stream. */
static void note_event(struct device *d, struct device_stream *s, struct device_event *e)
{
    e->recorded_ns = now_ns();
    e->done_ns = stream_of(s)->busy_until_ns;
    e->waits = stream_of(s)->waits;
    e->stands = stream_of(s)->stands;
    e->faulted = d->faulted;
    e->stumbles = stream_of(s)->stumbles;
    stream_of(s)->stumbles = false;
}

static enum status fake_event_record(struct device *d, struct device_stream *s, struct device_event *e)
{
    if (d->noted)
        return STATUS_KERNEL_FAULT;
    note_event(d, s, e);
    own_holdings->events++;
    return STATUS_OK;
}

static enum status fake_event_query(struct device *d, struct device_event *e, struct problem *why)
{
    bool waits = e->waits && !script->released;

    if (waits)
        own_holdings->waits = true; /* its start was told before */
    if (waits || (e->stands && script->held))
        return STATUS_PENDING;
    if (e->faulted || (d->faulted && (d->noted || e->done_ns > now_ns())))
        return problem_cuda(why, STATUS_KERNEL_FAULT, 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal address");
    if (e->stumbles) {
        e->stumbles = false;
        return problem_set(why, STATUS_OUT_OF_MEMORY, "the fake stumbles");
    }
    return e->done_ns > now_ns() ? STATUS_PENDING : STATUS_OK;
}

static enum status fake_stream_query(struct device *d, struct device_stream *s, struct problem *why)
{
    struct device_event now;

    note_event(d, s, &now);
    return fake_event_query(d, &now, why);
}

static enum status fake_event_elapsed(struct device *d, struct device_event *from, struct device_event *to, float *us)
{
    uint64_t end = to->done_ns > to->recorded_ns ? to->done_ns : to->recorded_ns;

    (void)d;
    *us = script->told ? script->gpu_us : (float)(end - from->recorded_ns) / 1000;
    return STATUS_OK;
}

static enum status fake_stream_wait(struct device *d, struct device_stream *s, struct device_event *e)
{
    (void)d;
    if (e->done_ns > stream_of(s)->busy_until_ns)
        stream_of(s)->busy_until_ns = e->done_ns;
    stream_of(s)->waits |= e->waits;
    return STATUS_OK;
}

struct device_graph {
    uint32_t count;
    struct place {
        struct device_launch launch;
        unsigned char        params[KERNEL_PARAM_BYTES_MAX];
    } places[];
};

static enum status fake_graph_set(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l,
                                  struct problem *why)
{
    (void)d;
    if (strcmp(l->module->table.kernels[l->kernel].name, "refuse") == 0)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the fake refuses");
    g->places[index].launch = *l;
    memcpy(g->places[index].params, l->params, l->params_bytes);
    g->places[index].launch.params = g->places[index].params;
    return STATUS_OK;
}

static enum status fake_graph_create(struct device *d, const struct device_launch *launches, uint32_t count, struct device_graph **out,
                                     struct problem *why)
{
    struct device_graph *g = calloc(1, sizeof *g + count * sizeof g->places[0]);
    enum status          st = STATUS_OK;

    g->count = count;
    for (uint32_t i = 0; i < count && !st; i++)
        st = fake_graph_set(d, g, i, &launches[i], why);
    if (st)
        free(g);
    else
        *out = g;
    own_holdings->graphs += !st;
    return st;
}

static enum status fake_graph_run(struct device *d, struct device_stream *s, struct device_graph *g, struct problem *why)
{
    enum status st = STATUS_OK;

    for (uint32_t i = 0; i < g->count && !st; i++)
        st = fake_launch(d, s, &g->places[i].launch, why);
    return st;
}

static void fake_graph_destroy(struct device *d, struct device_graph *g)
{
    (void)d;
    own_holdings->graphs -= g != NULL;
    free(g);
}

static enum status fake_take_output(struct device *d, struct device_stream *s, struct buf *out)
{
    (void)s;
    buf_add_span(out, buf_span(&d->printed));
    buf_clear(&d->printed);
    return STATUS_OK;
}

static struct device_ops fake = {
    .name = "fake",
    .count = fake_count,
    .identify = fake_identify,
    .driver = driver_of,
    .open = fake_open,
    .close = fake_close,
    .info = fake_info,
    .memory = fake_memory,
    .memory_reset_peak = fake_memory_reset_peak,
    .mem_alloc = fake_mem_alloc,
    .mem_alloc_shared = fake_mem_alloc_shared,
    .mem_export = fake_mem_export,
    .mem_free = fake_mem_free,
    .mem_trim = fake_mem_trim,
    .host_attach = fake_host_attach,
    .host_detach = fake_host_detach,
    .mem_write = fake_mem_write,
    .mem_read = fake_mem_read,
    .mem_copy = fake_mem_copy,
    .mem_fill = fake_mem_fill,
    .module_load = fake_module_load,
    .module_unload = fake_module_unload,
    .module_table = fake_module_table,
    .launch = fake_launch,
    .best_block = fake_best_block,
    .stream_create = fake_stream_create,
    .stream_destroy = fake_stream_destroy,
    .event_create = fake_event_create,
    .event_destroy = fake_event_destroy,
    .event_record = fake_event_record,
    .event_query = fake_event_query,
    .stream_query = fake_stream_query,
    .event_elapsed = fake_event_elapsed,
    .stream_wait = fake_stream_wait,
    .graph_create = fake_graph_create,
    .graph_set = fake_graph_set,
    .graph_run = fake_graph_run,
    .graph_destroy = fake_graph_destroy,
    .take_output = fake_take_output,
};

const struct device_ops *device_ops_find(struct span name)
{
    fake.events_are_cheap = script->told;
    return span_is(name, fake.name) ? &fake : NULL;
}

const struct device_ops *device_ops_at(unsigned i)
{
    return i == 0 ? &fake : NULL;
}
