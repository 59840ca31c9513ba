/* The `cpu` device: struct device_ops over memory, modules, the engine and its queue. All streams share one queue, which keeps the order
 * of issue: stricter than device.h promises. */
#include "device/cpu/bounds.h"
#include "device/device.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "device/cpu/jit/jit.h"
#include "device/cpu/runtime/cooperative.h"
#include "device/cpu/runtime/graph.h"
#include "device/cpu/runtime/info.h"
#include "device/cpu/runtime/launch.h"
#include "device/cpu/runtime/module.h"
#include "device/cpu/runtime/queue.h"
#include "device/cpu/runtime/texture.h"
#include "device/cpu/vendor/vendor.h"

struct device_graph {
    LIST_ENTRY(device_graph) in_device;
    struct cpu_graph *graph;
};

struct device {
    /* the caller's objects that are not destroyed yet: close() frees them */
    LIST_HEAD(, device_graph) graphs;
    LIST_HEAD(, device_module) modules;
    LIST_HEAD(, device_stream) streams;
    LIST_HEAD(, device_event) events;
    struct cpu_memory   *memory;
    struct cpu_textures *textures;
    struct cpu_engine   *engine;
    struct cpu_queue    *queue;
    struct device_info   info; /* all but memory; fixed */
};

struct device_module {
    LIST_ENTRY(device_module) in_device;
    struct cpu_module *loaded;
};

struct device_event {
    LIST_ENTRY(device_event) in_device;
    struct cpu_event *event;
};

struct device_stream { /* only a name here */
    LIST_ENTRY(device_stream) in_device;
};

static bool runs_kernels; /* callers' ones, in this process */

enum { BEST_BLOCK_THREADS = 256 }; /* wide enough for the loops over a block's threads, small enough for the first-level caches */

static unsigned device_count(struct problem *why)
{
    (void)why;
    return 1;
}

static void module_unload(struct device *d, struct device_module *m)
{
    (void)d;
    if (!m)
        return;
    LIST_REMOVE(m, in_device);
    cpu_module_unload(m->loaded);
    free(m);
}

static void stream_destroy(struct device *d, struct device_stream *s)
{
    (void)d;
    if (!s)
        return;
    LIST_REMOVE(s, in_device);
    free(s);
}

static void event_destroy(struct device *d, struct device_event *e)
{
    if (!e)
        return;
    LIST_REMOVE(e, in_device);
    cpu_event_destroy(d->queue, e->event);
    free(e);
}

static void graph_destroy(struct device *d, struct device_graph *g)
{
    (void)d;
    if (!g)
        return;
    LIST_REMOVE(g, in_device);
    cpu_graph_destroy(g->graph);
    free(g);
}

static void device_close(struct device *d)
{
    if (!d)
        return;
    while (!LIST_EMPTY(&d->graphs))
        graph_destroy(d, LIST_FIRST(&d->graphs));
    while (!LIST_EMPTY(&d->events))
        event_destroy(d, LIST_FIRST(&d->events));
    while (!LIST_EMPTY(&d->streams))
        stream_destroy(d, LIST_FIRST(&d->streams));
    cpu_queue_destroy(d->queue); /* no kernel runs from here on */
    while (!LIST_EMPTY(&d->modules))
        module_unload(d, LIST_FIRST(&d->modules));
    jit_settle(); /* the process may end next, and libLLVM with it */
    cpu_engine_destroy(d->engine);
    cpu_textures_destroy(d->textures);
    cpu_memory_destroy(d->memory);
    free(d);
}

static enum status open_parts(struct device *d)
{
    enum status st = cpu_memory_create(0, &d->memory);

    if (runs_kernels)
        cpu_libraries_start(cpu_host_threads());
    if (!st)
        st = cpu_textures_create(d->memory, &d->textures);
    if (!st)
        st = cpu_engine_create(d->memory, 0, &d->engine);
    if (!st)
        cpu_engine_use_textures(d->engine, d->textures);
    if (!st)
        st = cpu_queue_create(d->memory, d->engine, &d->queue);
    return st;
}

static enum status device_open(struct device **out, unsigned index, struct problem *why)
{
    struct device *d;
    enum status    st;

    if (index)
        return problem_set(why, STATUS_DEVICE_NOT_FOUND, "the only cpu device has the index 0");
    d = calloc(1, sizeof *d);
    if (!d)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    cpu_info_read(&d->info);
    st = open_parts(d);
    if (st) {
        device_close(d);
        return problem_set(why, st, "cannot open the cpu device");
    }
    *out = d;
    return STATUS_OK;
}

static enum status device_info(struct device *d, struct device_info *out)
{
    struct device_memory memory;

    cpu_memory_stats(d->memory, &memory);
    *out = d->info;
    out->total_bytes = memory.total_bytes;
    out->free_bytes = memory.free_bytes;
    return cpu_queue_lost(d->queue, NULL);
}

static enum status device_memory(struct device *d, struct device_memory *out)
{
    cpu_memory_stats(d->memory, out);
    return cpu_queue_lost(d->queue, NULL);
}

static void memory_reset_peak(struct device *d)
{
    cpu_memory_reset_peak(d->memory);
}

static enum status mem_alloc(struct device *d, uint64_t bytes, uint64_t *address)
{
    enum status st = cpu_queue_lost(d->queue, NULL);

    return st ? st : cpu_memory_alloc(d->memory, bytes, address);
}

static enum status mem_alloc_shared(struct device *d, uint64_t bytes, int file, uint64_t file_bytes, struct device_shared *out)
{
    enum status st = cpu_queue_lost(d->queue, NULL);

    out->taken = file_bytes;
    return st ? st : cpu_memory_alloc_file(d->memory, bytes, file, file_bytes, &out->address, &out->offset);
}

static enum status mem_free(struct device *d, uint64_t address)
{
    return cpu_queue_free(d->queue, address);
}

static enum status mem_evict(struct device *d, uint64_t address, uint64_t *bytes)
{
    enum status st = cpu_queue_lost(d->queue, NULL);

    return st ? st : cpu_memory_evict(d->memory, address, bytes);
}

static enum status mem_restore(struct device *d, uint64_t address)
{
    enum status st = cpu_queue_lost(d->queue, NULL);

    return st ? st : cpu_memory_restore(d->memory, address);
}

/* Code that is loaded already has no checks and stays so. */
static enum status memcheck(struct device *d)
{
    enum status st = cpu_queue_drain(d->queue, NULL);

    return st ? st : cpu_memory_watch(d->memory);
}

static enum status texture_create(struct device *d, const struct texture_desc *t, struct device_texture *out, struct problem *why)
{
    enum status st = cpu_queue_lost(d->queue, why);

    return st ? st : cpu_texture_make(d->textures, t, &out->address, &out->texture, &out->surface);
}

static enum status texture_destroy(struct device *d, uint64_t texture)
{
    uint64_t    memory = 0;
    enum status st = cpu_texture_end(d->textures, texture, &memory);

    return st || !memory ? st : cpu_queue_free(d->queue, memory);
}

static enum status mem_write(struct device *d, struct device_stream *s, uint64_t to, const void *from, size_t bytes)
{
    (void)s;
    return cpu_queue_write(d->queue, to, from, bytes);
}

static enum status mem_read(struct device *d, struct device_stream *s, void *to, uint64_t from, size_t bytes)
{
    (void)s;
    return cpu_queue_read(d->queue, to, from, bytes);
}

static enum status mem_copy(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes)
{
    (void)s;
    return cpu_queue_copy(d->queue, to, from, bytes);
}

static enum status mem_fill(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t pattern_bytes,
                            uint64_t count)
{
    (void)s;
    return cpu_queue_fill(d->queue, to, pattern, pattern_bytes, count);
}

/* Of module_new(), loaded with the outcome st: freed if that failed. */
static enum status module_keep(struct device *d, struct device_module *m, enum status st, struct device_module **out)
{
    if (st) {
        free(m);
        return st;
    }
    LIST_INSERT_HEAD(&d->modules, m, in_device);
    *out = m;
    return STATUS_OK;
}

static enum status module_new(struct device *d, struct device_module **out, struct problem *why)
{
    enum status st = cpu_queue_lost(d->queue, why);

    if (st)
        return st;
    *out = calloc(1, sizeof **out);
    return *out ? STATUS_OK : problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
}

static enum status module_load(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why)
{
    struct device_module *m;
    enum status           st = module_new(d, &m, why);

    return st ? st : module_keep(d, m, cpu_module_load(d->memory, (struct span){image, bytes}, &m->loaded, why), out);
}

static enum status vendor_load(struct device *d, const struct vendor_plan *ask, struct device_module **out, uint64_t *workspace_bytes,
                               struct problem *why)
{
    struct device_module *m;
    enum status           st = module_new(d, &m, why);

    if (!st)
        st = module_keep(d, m, cpu_module_of_plan(d->memory, ask, &m->loaded, why), out);
    if (!st)
        *workspace_bytes = m->loaded->plan->workspace_bytes;
    return st;
}

static const struct kernel_table *module_table(const struct device_module *m)
{
    return &m->loaded->table;
}

static enum status prepare_plan(const struct device_launch *l, struct cpu_launch *run, struct problem *why)
{
    const struct kernel_table *table = &l->module->loaded->table;

    *run = (struct cpu_launch){
        .plan = l->module->loaded->plan, .params = l->params, .params_bytes = l->params_bytes, .deadline_ms = l->deadline_ms};
    if (l->kernel >= table->kernels_count || l->params_bytes != table->kernels[l->kernel].params_bytes)
        return problem_set(why, STATUS_ARGUMENT_MISMATCH, "the plan has other parameters");
    return l->cooperative ? problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "launches of a library cannot be cooperative") : STATUS_OK;
}

/* The queue's form of a launch; borrows the parameters. */
static enum status prepare_launch(const struct device_launch *l, struct cpu_launch *run, struct problem *why)
{
    const struct ptx_function *kernel = cpu_module_kernel(l->module->loaded, l->kernel);

    if (l->module->loaded->plan)
        return prepare_plan(l, run, why);
    *run = (struct cpu_launch){.module = l->module->loaded->program,
                               .kernel = kernel,
                               .shared_bytes = l->shared_bytes,
                               .cooperative = l->cooperative,
                               .params = l->params,
                               .params_bytes = l->params_bytes,
                               .deadline_ms = l->deadline_ms};
    if (!kernel)
        return problem_set(why, STATUS_INTERNAL, "unknown kernel %u", l->kernel);
    if (l->params_bytes != kernel->params_bytes)
        return problem_set(why, STATUS_ARGUMENT_MISMATCH, "the kernel takes %u bytes of parameters, got %u", kernel->params_bytes,
                           l->params_bytes);
    memcpy(run->grid, l->grid, sizeof run->grid);
    memcpy(run->block, l->block, sizeof run->block);
    return cpu_launch_check(run, why);
}

/* A lost context says how it was lost. */
static enum status not_queued(struct device *d, enum status st, const char *what, struct problem *why)
{
    enum status lost = cpu_queue_lost(d->queue, why);

    return lost ? lost : problem_set(why, st, "%s", what);
}

static enum status launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    struct cpu_launch run;
    enum status       st = prepare_launch(l, &run, why);

    (void)s;
    if (st)
        return st;
    st = cpu_queue_launch(d->queue, &run, l->before ? l->before->event : NULL, l->after ? l->after->event : NULL);
    return st ? not_queued(d, st, "cannot queue the launch", why) : STATUS_OK;
}

static enum status best_block(struct device *d, const struct device_module *m, unsigned kernel, uint32_t shared_bytes, uint32_t *threads)
{
    const struct ptx_function *f = cpu_module_kernel(m->loaded, kernel);

    (void)d;
    if (!f)
        return STATUS_INTERNAL;
    if (shared_bytes > CPU_SHARED_BYTES_MAX - m->loaded->program->dynamic_shared_offset)
        return STATUS_LAUNCH_CONFIG_INVALID;
    *threads = f->max_threads < BEST_BLOCK_THREADS || f->required_block[0] ? f->max_threads : BEST_BLOCK_THREADS;
    return STATUS_OK;
}

static enum status stream_create(struct device *d, struct device_stream **out)
{
    struct device_stream *s = calloc(1, sizeof *s);

    if (!s)
        return STATUS_OUT_OF_MEMORY;
    LIST_INSERT_HEAD(&d->streams, s, in_device);
    *out = s;
    return STATUS_OK;
}

static enum status event_create(struct device *d, struct device_event **out)
{
    struct device_event *e = calloc(1, sizeof *e);
    enum status          st;

    if (!e)
        return STATUS_OUT_OF_MEMORY;
    st = cpu_event_create(&e->event);
    if (st) {
        free(e);
        return st;
    }
    LIST_INSERT_HEAD(&d->events, e, in_device);
    *out = e;
    return STATUS_OK;
}

static enum status event_record(struct device *d, struct device_stream *s, struct device_event *e)
{
    (void)s;
    return cpu_event_record(d->queue, e->event);
}

static enum status event_query(struct device *d, struct device_event *e, struct problem *why)
{
    return cpu_event_query(d->queue, e->event, why);
}

static enum status event_elapsed(struct device *d, struct device_event *from, struct device_event *to, float *us)
{
    (void)d;
    return cpu_event_elapsed(from->event, to->event, us);
}

/* One queue for all streams: the order holds already. */
static enum status stream_wait(struct device *d, struct device_stream *s, struct device_event *e)
{
    (void)s, (void)e;
    return cpu_queue_lost(d->queue, NULL);
}

static enum status graph_set(struct device *d, struct device_graph *g, uint32_t index, const struct device_launch *l, struct problem *why)
{
    struct cpu_launch run;
    enum status       st = prepare_launch(l, &run, why);

    (void)d;
    if (st)
        return st;
    st = cpu_graph_set(g->graph, index, &run);
    return st ? problem_set(why, st, "cannot store the launch") : STATUS_OK;
}

static enum status graph_create(struct device *d, const struct device_launch *launches, uint32_t count, struct device_graph **out,
                                struct problem *why)
{
    struct device_graph *g = calloc(1, sizeof *g);
    enum status          st = g ? cpu_graph_create(count, &g->graph) : STATUS_OUT_OF_MEMORY;

    if (st) {
        free(g);
        return problem_set(why, st, "out of host memory");
    }
    LIST_INSERT_HEAD(&d->graphs, g, in_device);
    for (uint32_t i = 0; i < count && !st; i++)
        st = graph_set(d, g, i, &launches[i], why);
    if (st)
        graph_destroy(d, g);
    else
        *out = g;
    return st;
}

static enum status graph_run(struct device *d, struct device_stream *s, struct device_graph *g, struct problem *why)
{
    enum status st = cpu_graph_run(g->graph, d->queue);

    (void)s;
    return st ? not_queued(d, st, "cannot queue the launches", why) : STATUS_OK;
}

static void progress(struct device *d, struct device_progress *out)
{
    cpu_queue_progress(d->queue, &out->given, &out->done);
}

static void wait_progress(struct device *d, uint64_t ns)
{
    cpu_queue_wait_progress(d->queue, ns);
}

static enum status take_output(struct device *d, struct device_stream *s, struct buf *out)
{
    (void)s;
    cpu_engine_take_output(d->engine, out);
    return STATUS_OK;
}

static void cancel(struct device *d)
{
    cpu_queue_cancel(d->queue);
}

static enum jit_mode wanted_jit;

/* "now" is for tests and measurements alone: of the service's processes, only those that prepare() may open libraries. */
static void choose_jit(const char *value)
{
    static const struct {
        const char   *name;
        enum jit_mode mode;
    } modes[] = {{"auto", JIT_AUTO}, {"eager", JIT_EAGER}};

    wanted_jit = JIT_OFF;
    for (size_t i = 0; value && i < COUNT(modes); i++)
        wanted_jit = strcmp(value, modes[i].name) == 0 ? modes[i].mode : wanted_jit;
    if (value && strcmp(value, "now") == 0)
        jit_choose(JIT_NOW);
}

static bool prepare(bool kernels)
{
    cpu_libraries_open();
    runs_kernels = kernels;
    if (!kernels)
        return false;
    jit_choose(wanted_jit);
    return jit_open();
}

extern const struct device_ops device_cpu;
static bool                    set(struct span name, const char *value)
{
    uint64_t threads;

    if (span_is(name, "cpu-jit")) {
        choose_jit(value);
        return true;
    }
    if (!span_is(name, "cpu-threads"))
        return cpu_library_choose(name, value);
    if (value && span_u64(span_of(value), &threads) && threads <= CPU_POOL_THREADS_MAX)
        cpu_host_threads_choose((unsigned)threads);
    return true;
}

const struct device_ops device_cpu = {
    .name = "cpu",
    .set = set,
    .prepare = prepare,
    .events_are_cheap = true,
    .count = device_count,
    .open = device_open,
    .close = device_close,
    .info = device_info,
    .memory = device_memory,
    .memory_reset_peak = memory_reset_peak,
    .mem_alloc = mem_alloc,
    .mem_alloc_shared = mem_alloc_shared,
    .mem_free = mem_free,
    .mem_evict = mem_evict,
    .mem_restore = mem_restore,
    .memcheck = memcheck,
    .texture_create = texture_create,
    .texture_destroy = texture_destroy,
    .mem_write = mem_write,
    .mem_read = mem_read,
    .mem_copy = mem_copy,
    .mem_fill = mem_fill,
    .module_load = module_load,
    .vendor_load = vendor_load,
    .module_unload = module_unload,
    .module_table = module_table,
    .launch = launch,
    .best_block = best_block,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_elapsed = event_elapsed,
    .stream_wait = stream_wait,
    .graph_create = graph_create,
    .graph_set = graph_set,
    .graph_run = graph_run,
    .graph_destroy = graph_destroy,
    .progress = progress,
    .wait_progress = wait_progress,
    .take_output = take_output,
    .cancel = cancel,
};
