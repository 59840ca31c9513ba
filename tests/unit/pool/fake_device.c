/* A worker executable whose only device is "fake": in memory, with kernels that misbehave on request. The file that --libcuda names
 * steers it: words in it make counting, opening or computing go wrong. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "device/device.h"
#include "hostile.h"
#include "ipc/worker_fds.h"
#include "worker/device_worker.h"

static char steering[256];

struct device {
    uint64_t   bytes;
    bool       faulted;
    bool       noted; /* the fault is told by every call, not by queries alone */
    struct buf printed;
};

struct device_module {
    struct kernel_table table;
};

struct device_stream {
    uint64_t busy_until_ns; /* UINT64_MAX: for ever */
    bool     stumbles;      /* the next event recorded fails its first query, and nothing is lost */
};

struct device_event {
    uint64_t done_ns;
    uint64_t recorded_ns;
    bool     stumbles;
};

static struct device_stream default_stream;

static struct device_stream *stream_of(struct device_stream *s)
{
    return s ? s : &default_stream;
}

static bool told(const char *word)
{
    return strstr(steering, word) != NULL;
}

void device_set(struct span name, const char *value)
{
    FILE *f = span_is(name, "steering") ? fopen(value, "r") : NULL;

    if (f) {
        size_t n = fread(steering, 1, sizeof steering - 1, f);

        steering[n] = '\0';
        fclose(f);
    }
}

static unsigned fake_count(struct problem *why)
{
    if (told("hang-count"))
        pause();
    if (told("none"))
        problem_set(why, STATUS_DEVICE_NOT_FOUND, "the fake was told to have none");
    return told("none") ? 0 : told("two") ? 2 : 1;
}

/* Its kernels hang and misbehave by system calls that a device without a driver does not have. */
static const char *fake_driver_build(struct device *d)
{
    (void)d;
    return "";
}

static const char *const          nothing[] = {NULL};
static const struct device_driver fake_driver = {.build = fake_driver_build, .reads = nothing, .device_files = "none"};

static enum status fake_open(struct device **out, unsigned index, struct problem *why)
{
    if (told("hang-open"))
        pause();
    if (told("fail-open") || (told("fail-second") && index == 1))
        return problem_set(why, STATUS_DEVICE_ERROR, "the fake was told not to open");
    if (told("short-open"))
        return problem_set(why, STATUS_DEVICE_MEMORY_EXHAUSTED, "the fake was told to be full");
    *out = calloc(1, sizeof **out);
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
    out->total_bytes = 1 << 30;
    out->free_bytes = out->total_bytes - d->bytes;
    out->warp_size = 32;
    out->max_threads_per_block = 1024;
    for (unsigned i = 0; i < 3; i++) {
        out->max_block[i] = 1024;
        out->max_grid[i] = 65535;
    }
    out->max_shared_bytes_per_block = 48 * 1024;
    return STATUS_OK;
}

static enum status fake_memory(struct device *d, struct device_memory *out)
{
    *out = (struct device_memory){.total_bytes = 1 << 30, .free_bytes = (1 << 30) - d->bytes, .allocated_bytes = d->bytes};
    return STATUS_OK;
}

static enum status fake_mem_alloc(struct device *d, uint64_t bytes, uint64_t *address)
{
    if (bytes > (1 << 30) - d->bytes)
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    *address = (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    d->bytes += bytes;
    return STATUS_OK;
}

static uint64_t shared_at; /* the last shared allocation, which stays until the process ends */

static enum status fake_mem_free(struct device *d, uint64_t address)
{
    (void)d;
    if (address != shared_at)
        free((void *)(uintptr_t)address);
    return STATUS_OK;
}

static enum status fake_mem_alloc_shared(struct device *d, uint64_t bytes, int file, uint64_t file_bytes, struct device_shared *out)
{
    void *at =
        mmap(NULL, file < 0 ? bytes : file_bytes, PROT_READ | PROT_WRITE, file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, file, 0);

    (void)d;
    if (at == MAP_FAILED)
        return STATUS_OUT_OF_MEMORY;
    shared_at = (uintptr_t)at;
    *out = (struct device_shared){shared_at, 0, file < 0 ? bytes : file_bytes};
    return STATUS_OK;
}

static void send_note(uint64_t number, int fd)
{
    descriptor_send(WORKER_SHARE_FD, &number, sizeof number, fd);
}

/* Numbers of exchanges are small. */
static enum status fake_mem_export(struct device *d, uint64_t address, int *fd)
{
    (void)d, (void)address;
    for (uint64_t n = 0; told("floods") && n < 200; n++)
        send_note(1000 + n, STDERR_FILENO);
    for (uint64_t n = 0; told("guesses") && n < 8; n++)
        send_note(n, STDERR_FILENO);
    if (told("short"))
        send(WORKER_SHARE_FD, "x", 1, 0);
    *fd = memfd_create("fake-export", 0);
    return *fd < 0 || ftruncate(*fd, 4096) ? STATUS_OUT_OF_MEMORY : STATUS_OK;
}

static enum status fake_mem_write(struct device *d, struct device_stream *s, uint64_t to, const void *from, size_t bytes)
{
    (void)d, (void)s;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return STATUS_OK;
}

static enum status fake_mem_read(struct device *d, struct device_stream *s, void *to, uint64_t from, size_t bytes)
{
    (void)d, (void)s;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return STATUS_OK;
}

static enum status fake_mem_copy(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes)
{
    (void)d, (void)s;
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return STATUS_OK;
}

static enum status fake_mem_fill(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t n, uint64_t count)
{
    (void)d, (void)s;
    for (uint64_t i = 0; i < count; i++)
        memcpy((char *)(uintptr_t)to + i * n, &pattern, n);
    return STATUS_OK;
}

/* ---- modules: an image names its kernels, each with the bytes of its parameters ---- */

static const struct {
    const char *name;
    uint32_t    params_bytes;
} kernels[] = {{"gpurest_canary", 20}, {"add_one", 12},    {"slow", 4},  {"endless", 0}, {"fault", 0},   {"crash", 0}, {"print", 4},
               {"refuse", 0},          {"descriptors", 0}, {"noted", 0}, {"stumble", 0}, {"hostile", 4}, {"lie", 12}};

static enum status fake_module_load(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why)
{
    struct device_module *m;

    (void)d;
    if (bytes < 4 || memcmp(image, "junk", 4) == 0)
        return problem_set(why, STATUS_MODULE_INVALID, "line 1: junk");
    m = calloc(1, sizeof *m);
    kernel_table_init(&m->table);
    for (unsigned i = 0; i < COUNT(kernels); i++)
        kernel_table_add(&m->table, span_of(kernels[i].name), 0)->params_bytes = kernels[i].params_bytes;
    *out = m;
    return STATUS_OK;
}

static void fake_module_unload(struct device *d, struct device_module *m)
{
    (void)d;
    if (m)
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
    if (strcmp(name, "print") == 0)
        buf_printf(&d->printed, "printed %u\n", number(l->params));
    if (strcmp(name, "descriptors") == 0)
        run_descriptors(d);
    return l->after ? fake_event_record(d, s, l->after) : STATUS_OK;
}

static enum status fake_best_block(struct device *d, const struct device_module *m, unsigned kernel, uint32_t shared, uint32_t *threads)
{
    (void)d, (void)m, (void)kernel, (void)shared;
    *threads = 256;
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

static enum status fake_event_record(struct device *d, struct device_stream *s, struct device_event *e)
{
    if (d->noted)
        return STATUS_KERNEL_FAULT;
    e->recorded_ns = now_ns();
    e->done_ns = stream_of(s)->busy_until_ns;
    e->stumbles = stream_of(s)->stumbles;
    stream_of(s)->stumbles = false;
    return STATUS_OK;
}

static enum status fake_event_query(struct device *d, struct device_event *e, struct problem *why)
{
    if (d->faulted)
        return problem_cuda(why, STATUS_KERNEL_FAULT, 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal address");
    if (e->stumbles) {
        e->stumbles = false;
        return problem_set(why, STATUS_OUT_OF_MEMORY, "the fake stumbles");
    }
    return e->done_ns > now_ns() ? STATUS_PENDING : STATUS_OK;
}

static enum status fake_event_elapsed(struct device *d, struct device_event *from, struct device_event *to, float *us)
{
    uint64_t end = to->done_ns > to->recorded_ns ? to->done_ns : to->recorded_ns;

    (void)d;
    *us = (float)(end - from->recorded_ns) / 1000;
    return STATUS_OK;
}

static enum status fake_stream_wait(struct device *d, struct device_stream *s, struct device_event *e)
{
    (void)d;
    if (e->done_ns > stream_of(s)->busy_until_ns)
        stream_of(s)->busy_until_ns = e->done_ns;
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
    free(g);
}

static enum status fake_take_output(struct device *d, struct device_stream *s, struct buf *out)
{
    (void)s;
    buf_add_span(out, buf_span(&d->printed));
    buf_clear(&d->printed);
    return STATUS_OK;
}

static const struct device_ops fake = {
    .name = "fake",
    .count = fake_count,
    .driver = &fake_driver,
    .open = fake_open,
    .close = fake_close,
    .info = fake_info,
    .memory = fake_memory,
    .mem_alloc = fake_mem_alloc,
    .mem_alloc_shared = fake_mem_alloc_shared,
    .mem_export = fake_mem_export,
    .mem_free = fake_mem_free,
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
    return span_is(name, fake.name) ? &fake : NULL;
}

const struct device_ops *device_ops_at(unsigned i)
{
    return i == 0 ? &fake : NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--role=worker") == 0)
        return device_worker_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--role=count") == 0)
        return device_count_main(argc, argv);
    return EXIT_FAILURE;
}
