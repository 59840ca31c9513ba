/* Queues kernels, after checking what the driver would refuse less clearly. */
#include "device/cuda/vendor/vendor.h"

#include <inttypes.h>

static uint64_t product_of(const uint32_t n[3])
{
    return (uint64_t)n[0] * n[1] > UINT32_MAX ? UINT64_MAX : (uint64_t)n[0] * n[1] * n[2];
}

static enum status check_extent(const uint32_t have[3], const uint32_t most[3], const char *what, struct problem *why)
{
    for (int i = 0; i < 3; i++)
        if (have[i] < 1 || have[i] > most[i])
            return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "%s[%d] is %" PRIu32 ", but must be 1 to %" PRIu32, what, i, have[i],
                               most[i]);
    return STATUS_OK;
}

static enum status check_launch(const struct device *d, const struct kernel_desc *k, const struct device_launch *l, struct problem *why)
{
    enum status st = check_extent(l->grid, d->max_grid, "grid", why);

    if (!st)
        st = check_extent(l->block, d->max_block, "block", why);
    if (st)
        return st;
    if (product_of(l->block) > k->max_threads)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the block has %" PRIu64 " threads, but the kernel allows %" PRIu32,
                           product_of(l->block), k->max_threads);
    if (l->shared_bytes > k->max_dynamic_shared_bytes)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID,
                           "the launch has %" PRIu32 " bytes of dynamic shared memory, but the kernel allows %" PRIu32, l->shared_bytes,
                           k->max_dynamic_shared_bytes);
    if (l->params_bytes != k->params_bytes)
        return problem_set(why, STATUS_ARGUMENT_MISMATCH, "the kernel takes %" PRIu32 " bytes of arguments, got %" PRIu32, k->params_bytes,
                           l->params_bytes);
    return STATUS_OK;
}

/* Dynamic shared memory beyond the default must be asked for once per function. */
static enum status open_shared(struct device *d, struct cuda_kernel *k, uint32_t shared_bytes, struct problem *why)
{
    enum status st;

    if (shared_bytes <= k->shared_bytes_set)
        return STATUS_OK;
    st = cuda_check(d, d->cu->cuFuncSetAttribute(k->function, CUDA_FUNCTION_MAX_DYNAMIC_SHARED_BYTES, (int)shared_bytes), why,
                    "requesting shared memory");
    if (!st)
        k->shared_bytes_set = shared_bytes;
    return st;
}

/* INVALID_VALUE is the driver's result for an impossible launch. */
static enum status launch_refused(enum status st, struct problem *why)
{
    if (st != STATUS_INTERNAL)
        return st;
    if (why)
        why->status = STATUS_LAUNCH_CONFIG_INVALID;
    return STATUS_LAUNCH_CONFIG_INVALID;
}

/* The driver says so of a launch by itself, not of a node in a graph, which then runs (one H200, 2026-11-29). */
static enum status check_clusters(const struct cuda_kernel *k, const uint32_t grid[3], struct problem *why)
{
    if (k->needs_clusters && !k->cluster[0])
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID,
                           "the kernel needs clusters of a size that a launch cannot say here; give it __cluster_dims__(x, y, z)");
    for (int i = 0; i < 3; i++)
        if (k->cluster[i] && grid[i] % k->cluster[i])
            return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID,
                               "grid[%d] is %" PRIu32 ", but must be a multiple of %" PRIu32 ", the size of the kernel's clusters", i,
                               grid[i], k->cluster[i]);
    return STATUS_OK;
}

enum status cuda_launch_check(struct device *d, const struct device_launch *l, struct problem *why)
{
    enum status st = check_launch(d, &l->module->table.kernels[l->kernel], l, why);

    if (!st)
        st = check_clusters(&l->module->kernels[l->kernel], l->grid, why);
    return st ? st : open_shared(d, &l->module->kernels[l->kernel], l->shared_bytes, why);
}

static enum status queue_launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    struct cuda_kernel *kernel = &l->module->kernels[l->kernel];
    size_t              bytes = l->params_bytes;
    /* The driver copies the block before it returns. */
    void       *extra[] = {CUDA_LAUNCH_BUFFER, (void *)(uintptr_t)l->params, CUDA_LAUNCH_BYTES, &bytes, CUDA_LAUNCH_END};
    enum status st;

    s->busy = true;
    if (l->module->plan)
        return cuda_plan_launch(d, s, l, why);
    if (l->cooperative)
        return launch_refused(cuda_launch_cooperative(d, s, l, why), why);
    st = cuda_check(d,
                    d->cu->cuLaunchKernel(kernel->function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
                                          l->shared_bytes, s->handle, NULL, bytes ? extra : NULL),
                    why, "the launch");
    return launch_refused(st, why);
}

/* The launch runs, whatever becomes of its mark: who waits for that asks the stream, too. */
static enum status queue_marked(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    uint64_t    at = cuda_mark_address(d, l->mark.word);
    enum status st = at ? cuda_marked_launch(d, s, l, at, why) : STATUS_NOT_IMPLEMENTED;

    if (!at || st != STATUS_NOT_IMPLEMENTED)
        return launch_refused(st, why);
    st = queue_launch(d, s, l, why);
    if (!st)
        cuda_mark(d, s, l->mark);
    return st;
}

static enum status record_event(struct device *d, struct device_stream *s, struct device_event *e, struct problem *why)
{
    enum status st = cuda_event_record(d, s, e);

    return st && cuda_alive(d, why) == STATUS_OK ? problem_set(why, st, "cannot time the launch") : st;
}

enum status cuda_launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    enum status st = cuda_alive(d, why);

    if (!st)
        st = cuda_launch_check(d, l, why);
    if (!st && l->before)
        st = record_event(d, s, l->before, why);
    if (!st)
        st = (l->mark.word ? queue_marked : queue_launch)(d, cuda_stream_of(d, s), l, why);
    if (st || !l->after || (st = record_event(d, s, l->after, why)) == STATUS_OK)
        return st;
    /* It runs and its end would not be seen: the context is lost, too. */
    return d->lost.status ? st : problem_set(why, STATUS_DEVICE_ERROR, "cannot watch the launch");
}

enum status cuda_best_block(struct device *d, const struct device_module *m, unsigned kernel, uint32_t shared_bytes, uint32_t *threads)
{
    int         grid = 0;
    int         block = 0;
    enum status st = cuda_alive(d, NULL);

    if (!st && (m->plan || shared_bytes > m->table.kernels[kernel].max_dynamic_shared_bytes))
        st = STATUS_LAUNCH_CONFIG_INVALID;
    if (!st)
        st = open_shared(d, &m->kernels[kernel], shared_bytes, NULL);
    if (!st)
        st = cuda_check(d, d->cu->cuOccupancyMaxPotentialBlockSize(&grid, &block, m->kernels[kernel].function, NULL, shared_bytes, 0), NULL,
                        "computing the block size");
    if (!st && block < 1)
        st = STATUS_LAUNCH_CONFIG_INVALID;
    if (!st)
        *threads = (uint32_t)block;
    return st;
}
