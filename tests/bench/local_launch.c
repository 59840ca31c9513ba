/* What a launch and its companions cost in the process itself, without the service: the driver's calls and the backend's.
 * local_launch [--libcuda PATH] [--count N] */
#include "base/deadline.h"
#include "bench/percentile.h"
#include "device/cuda/internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern const struct device_ops device_cuda;

enum { WARM_UP = 200, COUNT_DEFAULT = 5000, COUNT_MAX = 100000 };

static const char ptx[] = ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n";

static uint64_t durations[COUNT_MAX];
static FILE    *report; /* standard output is the device's while it is open */

static void check(enum status st, const char *what)
{
    if (!st)
        return;
    fprintf(stderr, "%s: %s\n", what, status_code(st));
    exit(EXIT_FAILURE);
}

struct subject {
    struct device        *d;
    struct device_module *m;
    struct device_event  *before, *after;
    struct device_launch  launch;
    _Atomic uint32_t     *word; /* in registered memory; NULL: this driver writes no words */
    uint32_t              marks;
};

static void driver_launch_and_sync(struct subject *s)
{
    const struct cuda_driver *cu = s->d->cu;
    cuda_stream               stream = s->d->default_stream->handle;

    check(cuda_status(cu->cuLaunchKernel(s->m->kernels[0].function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL)), "cuLaunchKernel");
    check(cuda_status(cu->cuStreamSynchronize(stream)), "cuStreamSynchronize");
}

/* What a worker does for one launch. */
static void backend_launch_and_poll(struct subject *s)
{
    float       us;
    enum status st;

    check(device_cuda.event_record(s->d, NULL, s->before), "event_record");
    check(device_cuda.launch(s->d, NULL, &s->launch, NULL), "launch");
    check(device_cuda.event_record(s->d, NULL, s->after), "event_record");
    while ((st = device_cuda.event_query(s->d, s->after, NULL)) == STATUS_PENDING)
        continue;
    check(st, "event_query");
    check(device_cuda.event_elapsed(s->d, s->before, s->after, &us), "event_elapsed");
}

static void await_mark(struct subject *s)
{
    while (atomic_load_explicit(s->word, memory_order_acquire) != s->marks)
        continue;
}

/* As a worker does it, but that the end is seen in memory instead of being asked of the driver. */
static void backend_launch_and_mark(struct subject *s)
{
    float us;

    check(device_cuda.event_record(s->d, NULL, s->before), "event_record");
    check(device_cuda.launch(s->d, NULL, &s->launch, NULL), "launch");
    check(device_cuda.event_record(s->d, NULL, s->after), "event_record");
    check(device_cuda.mark(s->d, NULL, (struct device_mark){s->word, ++s->marks}), "mark");
    await_mark(s);
    check(device_cuda.event_elapsed(s->d, s->before, s->after, &us), "event_elapsed");
}

/* What the time on the device costs: the same without it. */
static void backend_launch_untimed(struct subject *s)
{
    enum status st;

    check(device_cuda.launch(s->d, NULL, &s->launch, NULL), "launch");
    check(device_cuda.event_record(s->d, NULL, s->after), "event_record");
    while ((st = device_cuda.event_query(s->d, s->after, NULL)) == STATUS_PENDING)
        continue;
    check(st, "event_query");
}

static void backend_launch_then_mark(struct subject *s)
{
    check(device_cuda.launch(s->d, NULL, &s->launch, NULL), "launch");
    check(device_cuda.mark(s->d, NULL, (struct device_mark){s->word, ++s->marks}), "mark");
    await_mark(s);
}

/* What a worker does for an untimed launch. */
static void backend_launch_with_mark(struct subject *s)
{
    struct device_launch l = s->launch;

    l.mark = (struct device_mark){s->word, ++s->marks};
    check(device_cuda.launch(s->d, NULL, &l, NULL), "launch");
    await_mark(s);
}

static void allocate_and_free(struct subject *s)
{
    uint64_t address;

    check(device_cuda.mem_alloc(s->d, 1 << 20, &address), "mem_alloc");
    check(device_cuda.mem_free(s->d, address), "mem_free");
}

static void load_and_unload(struct subject *s)
{
    struct device_module *m;

    check(device_cuda.module_load(s->d, ptx, sizeof ptx - 1, &m, NULL), "module_load");
    device_cuda.module_unload(s->d, m);
}

static double measure(const char *name, void (*step)(struct subject *s), struct subject *s, size_t count, size_t warm_up)
{
    double median, p99;

    for (size_t i = 0; i < warm_up + count; i++) {
        uint64_t began = now_ns();

        step(s);
        if (i >= warm_up)
            durations[i - warm_up] = now_ns() - began;
    }
    median = percentile_us(durations, count, 50);
    p99 = percentile_us(durations, count, 99);
    fprintf(report, "%s: p50_us=%.2f p99_us=%.2f n=%zu\n", name, median, p99, count);
    return median;
}

enum { REGISTERED_BYTES = 4096 };

static void register_word(struct subject *s)
{
    static _Alignas(REGISTERED_BYTES) unsigned char page[REGISTERED_BYTES];

    check(device_cuda.host_register(s->d, page, REGISTERED_BYTES), "host_register");
    s->word = (void *)page;
    atomic_store(s->word, 0);
    if (device_cuda.mark(s->d, NULL, (struct device_mark){s->word, 0}))
        s->word = NULL;
}

int main(int argc, char **argv)
{
    struct subject s = {0};
    struct problem why = {0};
    size_t         count = COUNT_DEFAULT;
    double         local, backend;
    uint64_t       began;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--libcuda") == 0)
            device_set(SPAN_LITERAL("libcuda"), argv[i + 1]);
        else if (strcmp(argv[i], "--count") == 0)
            count = strtoul(argv[i + 1], NULL, 10);
    }
    report = fdopen(dup(STDOUT_FILENO), "w");
    if (!report || count < 1 || count > COUNT_MAX)
        return EXIT_FAILURE;
    began = now_ns();
    if (device_cuda.count(&why) == 0 || device_cuda.open(&s.d, 0, &why)) {
        fprintf(stderr, "no device: %s\n", why.detail);
        return EXIT_FAILURE;
    }
    fprintf(report, "open: ms=%.1f\n", (double)(now_ns() - began) / 1e6);
    check(device_cuda.module_load(s.d, ptx, sizeof ptx - 1, &s.m, &why), why.detail);
    check(device_cuda.event_create(s.d, &s.before), "event_create");
    check(device_cuda.event_create(s.d, &s.after), "event_create");
    s.launch = (struct device_launch){.module = s.m, .grid = {1, 1, 1}, .block = {32, 1, 1}, .deadline_ms = 1000};
    local = measure("local_launch_sync", driver_launch_and_sync, &s, count, WARM_UP);
    backend = measure("backend_launch_poll", backend_launch_and_poll, &s, count, WARM_UP);
    register_word(&s);
    measure("backend_launch_untimed", backend_launch_untimed, &s, count, WARM_UP);
    if (s.word) {
        measure("backend_launch_mark", backend_launch_and_mark, &s, count, WARM_UP);
        measure("backend_launch_then_mark", backend_launch_then_mark, &s, count, WARM_UP);
        measure("backend_launch_with_mark", backend_launch_with_mark, &s, count, WARM_UP);
    }
    measure("backend_alloc_free_1MiB", allocate_and_free, &s, count, WARM_UP);
    measure("backend_module_load_ptx", load_and_unload, &s, count < 20 ? count : 20, 1);
    fprintf(report, "backend/local = %.2f\n", backend / local);
    fclose(report);
    device_cuda.close(s.d);
    return EXIT_SUCCESS;
}
