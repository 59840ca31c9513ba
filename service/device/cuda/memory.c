/* Device memory from a stream-ordered pool. Allocations are valid on every stream at once, and freed memory is not reused while queued
 * work of any stream may still access it. */
#include "base/deadline.h"
#include "base/log/log.h"
#include "device/cuda/bounds.h"
#include "device/cuda/internal.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

enum { ALLOCATION_ALIGN = 256, PLACES_MIN = 64, TRIM_CHECKED_BYTES = 64 << 20, PAGE_BYTES = 2 << 20 /* that the driver maps */ };

static_assert((PLACES_MIN & (PLACES_MIN - 1)) == 0, "places are found by mask");

/* Addresses are multiples of 256, so the low byte is always 0. */
static size_t home_of(uint64_t address, size_t room)
{
    return (size_t)((address >> 8) * 0x9E3779B97F4A7C15ull >> 20) & (room - 1);
}

/* The place of `address`, or the free place where it belongs. */
static size_t find_allocation(const struct cuda_memory *m, uint64_t address)
{
    size_t i = home_of(address, m->room);

    while (m->places[i].address && m->places[i].address != address)
        i = (i + 1) & (m->room - 1);
    return i;
}

static bool grow_places(struct cuda_memory *m)
{
    struct cuda_memory larger = *m;

    larger.room = m->room ? 2 * m->room : PLACES_MIN;
    larger.places = calloc(larger.room, sizeof *larger.places);
    if (!larger.places)
        return false;
    for (size_t i = 0; i < m->room; i++)
        if (m->places[i].address)
            larger.places[find_allocation(&larger, m->places[i].address)] = m->places[i];
    free(m->places);
    *m = larger;
    return true;
}

static bool has_room(struct cuda_memory *m)
{
    if (m->count >= DEVICE_ALLOCATIONS_MAX)
        return false;
    return 2 * (m->count + 1) <= m->room || grow_places(m);
}

static void remember_allocation(struct cuda_memory *m, const struct cuda_allocation *a)
{
    m->places[find_allocation(m, a->address)] = *a;
    m->count++;
    m->bytes += a->bytes;
    if (m->bytes > m->peak_bytes)
        m->peak_bytes = m->bytes;
}

/* Closes the gap, so that no later entry of the same run becomes unreachable. */
static void forget_allocation(struct cuda_memory *m, size_t gap)
{
    size_t mask = m->room - 1;

    m->bytes -= m->places[gap].bytes;
    m->count--;
    for (size_t i = (gap + 1) & mask; m->places[i].address; i = (i + 1) & mask) {
        size_t home = home_of(m->places[i].address, m->room);

        if (((i - home) & mask) >= ((i - gap) & mask)) {
            m->places[gap] = m->places[i];
            gap = i;
        }
    }
    m->places[gap] = (struct cuda_allocation){0};
}

enum status cuda_memory_remember(struct device *d, const struct cuda_allocation *a)
{
    if (!has_room(&d->memory))
        return STATUS_OUT_OF_MEMORY;
    remember_allocation(&d->memory, a);
    return STATUS_OK;
}

static enum status set_pool(struct device *d, unsigned which, void *value, struct problem *why)
{
    return cuda_check(d, d->cu->cuMemPoolSetAttribute(d->memory.pool, which, value), why, "configuring the memory pool");
}

/* Freed memory stays with the process, so that allocating is fast. Only the order of our own memory stream allows reuse: any other way
 * could make an allocation wait for a kernel. */
static enum status configure_pool(struct device *d, struct problem *why)
{
    uint64_t    keep_all = UINT64_MAX;
    int         off = 0;
    enum status st = set_pool(d, CUDA_POOL_RELEASE_THRESHOLD, &keep_all, why);

    if (!st)
        st = set_pool(d, CUDA_POOL_REUSE_INTERNAL_DEPENDENCIES, &off, why);
    return st;
}

enum status cuda_memory_start(struct device *d, struct problem *why)
{
    struct cuda_pool_props props = {.allocation_type = CUDA_ALLOCATION_PINNED, .location = {CUDA_LOCATION_DEVICE, d->ordinal}};
    struct cuda_memory    *m = &d->memory;
    cuda_pool              pool = NULL;
    enum status            st = cuda_check(d, d->cu->cuMemPoolCreate(&pool, &props), why, "creating the memory pool");

    if (st)
        return st;
    m->pool = pool;
    STAILQ_INIT(&m->pending);
    STAILQ_INIT(&m->reusable);
    m->keep_bytes_max = UINT64_MAX;
    m->share_unit = cuda_share_unit(d);
    m->page_unit = cuda_page_unit(d);
    st = configure_pool(d, why);
    if (!st)
        st = cuda_check(d, d->cu->cuStreamCreate(&m->stream, CUDA_STREAM_NON_BLOCKING), why, "creating the memory stream");
    if (!st)
        st = cuda_check(d, d->cu->cuStreamCreate(&m->reaper, CUDA_STREAM_NON_BLOCKING), why, "creating the memory stream");
    return st;
}

/* Nothing queued uses it any more. */
static enum status release_allocation(struct device *d, const struct cuda_allocation *a)
{
    if (a->taken)
        return cuda_share_drop(d, a);
    if (a->texture)
        return cuda_texture_release(d, a->texture);
    return cuda_check(d, d->cu->cuMemFreeAsync(a->address, d->memory.stream), NULL, "freeing memory");
}

static void drop_pending_frees(struct device *d, struct cuda_pending_frees *all)
{
    struct cuda_pending_free *p;

    while ((p = STAILQ_FIRST(all)) != NULL) {
        STAILQ_REMOVE_HEAD(all, in_list);
        d->cu->cuEventDestroy_v2(p->done);
        free(p);
    }
}

void cuda_memory_stop(struct device *d)
{
    struct cuda_memory       *m = &d->memory;
    struct cuda_pending_free *p;

    for (size_t i = 0; i < m->room; i++)
        if (m->places[i].address)
            release_allocation(d, &m->places[i]);
    STAILQ_FOREACH(p, &m->pending, in_list)
        release_allocation(d, &p->allocation);
    drop_pending_frees(d, &m->pending);
    drop_pending_frees(d, &m->reusable);
    free(m->places);
    if (m->reaper)
        d->cu->cuStreamDestroy_v2(m->reaper);
    if (m->stream)
        d->cu->cuStreamDestroy_v2(m->stream);
    if (m->pool)
        d->cu->cuMemPoolDestroy(m->pool);
    *m = (struct cuda_memory){0};
}

static enum status get_pool(struct device *d, unsigned which, uint64_t *value)
{
    return cuda_check(d, d->cu->cuMemPoolGetAttribute(d->memory.pool, which, value), NULL, "reading the memory pool");
}

static enum status pool_state(struct device *d, struct device_memory *out)
{
    size_t      free_bytes = 0;
    size_t      total_bytes = 0;
    enum status st = cuda_check(d, d->cu->cuMemGetInfo_v2(&free_bytes, &total_bytes), NULL, "reading the memory state");

    out->free_bytes = free_bytes;
    out->total_bytes = total_bytes;
    return st ? st : get_pool(d, CUDA_POOL_RESERVED_CURRENT, &out->reserved_bytes);
}

/* A driver that is refused a system call here still reports success, and the memory is gone until the process ends. */
static void check_returned(const struct device_memory *before, const struct device_memory *after)
{
    uint64_t given = before->reserved_bytes > after->reserved_bytes ? before->reserved_bytes - after->reserved_bytes : 0;
    uint64_t come = after->free_bytes > before->free_bytes ? after->free_bytes - before->free_bytes : 0;

    if (given >= TRIM_CHECKED_BYTES && come < given / 2)
        log_warn("device",
                 "the memory pool gave up %" PRIu64 " MiB, and %" PRIu64
                 " MiB more are free: unless another process took them, the driver lacks a system call",
                 given >> 20, come >> 20);
}

/* Down to so many reserved bytes, or what is in use if that is more. */
static enum status trim_pool(struct device *d, uint64_t bytes)
{
    struct device_memory before = {0}, after = {0};
    enum status          st = pool_state(d, &before);

    if (!st)
        st = cuda_check(d, d->cu->cuMemPoolTrimTo(d->memory.pool, bytes), NULL, "trimming the memory pool");
    if (!st)
        st = pool_state(d, &after);
    if (!st)
        check_returned(&before, &after);
    return st;
}

/* After frees: what is beyond the bound goes back to the device. Frees are on the memory stream, where nothing else is. */
static enum status keep_within_bound(struct device *d)
{
    const struct cuda_memory *m = &d->memory;
    uint64_t                  used = 0, reserved = 0;
    enum status               st;

    if (m->keep_bytes_max == UINT64_MAX)
        return STATUS_OK;
    st = get_pool(d, CUDA_POOL_USED_CURRENT, &used);
    if (!st)
        st = get_pool(d, CUDA_POOL_RESERVED_CURRENT, &reserved);
    if (st || reserved <= used || reserved - used <= m->keep_bytes_max)
        return st;
    st = cuda_check(d, d->cu->cuStreamSynchronize(m->stream), NULL, "waiting for frees");
    return st ? st : trim_pool(d, used + m->keep_bytes_max);
}

/* Frees what nobody can use any more. They complete in order, as all their events are on one stream. */
static enum status reap_pending_frees(struct device *d)
{
    struct cuda_memory       *m = &d->memory;
    struct cuda_pending_free *p;
    bool                      any = false;

    while ((p = STAILQ_FIRST(&m->pending)) != NULL) {
        enum status st = cuda_check(d, d->cu->cuEventQuery(p->done), NULL, "asking for a pending free");

        if (st == STATUS_PENDING || (!st && p->allocation.texture && !cuda_streams_idle(d)))
            break; /* an array is not freed while kernels run: the driver would wait for them */
        if (st)
            return st;
        STAILQ_REMOVE_HEAD(&m->pending, in_list);
        STAILQ_INSERT_HEAD(&m->reusable, p, in_list);
        st = release_allocation(d, &p->allocation);
        if (st)
            return st;
        any = true;
    }
    return any ? keep_within_bound(d) : STATUS_OK;
}

static enum status pending_create(struct device *d, struct cuda_pending_free **out)
{
    struct cuda_pending_free *p = STAILQ_FIRST(&d->memory.reusable);
    enum status               st;

    if (p) {
        STAILQ_REMOVE_HEAD(&d->memory.reusable, in_list);
    } else {
        p = calloc(1, sizeof *p);
        if (!p)
            return STATUS_OUT_OF_MEMORY;
        st = cuda_check(d, d->cu->cuEventCreate(&p->done, CUDA_EVENT_DISABLE_TIMING), NULL, "creating an event");
        if (st) {
            free(p);
            return st;
        }
    }
    *out = p;
    return STATUS_OK;
}

/* Makes the reaper wait for everything queued so far and records `done` there. */
static enum status fence_streams(struct device *d, cuda_event done)
{
    const struct cuda_driver *cu = d->cu;
    struct device_stream     *s;
    enum status               st = STATUS_OK;

    LIST_FOREACH(s, &d->streams, in_device) {
        if (!s->busy || st)
            continue;
        st = cuda_check(d, cu->cuEventRecord(s->fence, s->handle), NULL, "recording an event");
        if (!st)
            st = cuda_check(d, cu->cuStreamWaitEvent(d->memory.reaper, s->fence, 0), NULL, "waiting for an event");
    }
    return st ? st : cuda_check(d, cu->cuEventRecord(done, d->memory.reaper), NULL, "recording an event");
}

static enum status defer_free(struct device *d, const struct cuda_allocation *a)
{
    struct cuda_memory       *m = &d->memory;
    struct cuda_pending_free *p;
    enum status               st = pending_create(d, &p);

    if (st)
        return st;
    st = fence_streams(d, p->done);
    if (st) {
        STAILQ_INSERT_HEAD(&m->reusable, p, in_list);
        return st;
    }
    p->allocation = *a;
    STAILQ_INSERT_TAIL(&m->pending, p, in_list);
    return STATUS_OK;
}

enum status cuda_mem_free(struct device *d, uint64_t address)
{
    struct cuda_memory *m = &d->memory;
    enum status         st = cuda_alive(d, NULL);
    size_t              place;
    bool                idle;

    if (st)
        return st;
    place = m->room && address ? find_allocation(m, address) : 0;
    if (!m->room || !address || !m->places[place].address)
        return STATUS_INTERNAL;
    st = reap_pending_frees(d);
    idle = !st && cuda_streams_idle(d);
    if (!st)
        st = cuda_alive(d, NULL); /* the query may have shown that the context is lost */
    if (!st)
        st = idle ? release_allocation(d, &m->places[place]) : defer_free(d, &m->places[place]);
    if (!st) {
        forget_allocation(m, place);
        st = idle ? keep_within_bound(d) : STATUS_OK;
    }
    return st;
}

static enum status allocate_from_pool(struct device *d, size_t bytes, cuda_address *address)
{
    return cuda_check(d, d->cu->cuMemAllocFromPoolAsync(address, bytes, d->memory.pool, d->memory.stream), NULL, "allocating memory");
}

/* Waits a moment for pending frees, then gives the pool's unused memory back to the device. */
static enum status trim_after_reaping(struct device *d)
{
    uint64_t    deadline = deadline_after_ms(FREE_WAIT_MS);
    enum status st = reap_pending_frees(d);

    while (!st && !STAILQ_EMPTY(&d->memory.pending) && deadline_left_ns(deadline)) {
        sched_yield();
        st = reap_pending_frees(d);
    }
    if (!st)
        st = cuda_check(d, d->cu->cuStreamSynchronize(d->memory.stream), NULL, "waiting for frees");
    return st ? st : trim_pool(d, 0);
}

enum status cuda_mem_trim(struct device *d)
{
    enum status st = cuda_alive(d, NULL);

    return st ? st : trim_after_reaping(d);
}

enum status cuda_mem_keep(struct device *d, uint64_t bytes_max)
{
    enum status st = cuda_alive(d, NULL);

    if (st)
        return st;
    d->memory.keep_bytes_max = bytes_max;
    st = reap_pending_frees(d);
    return st ? st : keep_within_bound(d);
}

/* Memory is short: holes in the pool may help. */
static enum status allocate_again(struct device *d, size_t bytes, cuda_address *address)
{
    enum status st = trim_after_reaping(d);

    return st ? st : allocate_from_pool(d, bytes, address);
}

/* Mapped by itself. Memory is short: what the pool keeps may help. */
static enum status make_mapped(struct device *d, struct cuda_allocation *made)
{
    enum status st = cuda_share_make(d, made);

    if (st == STATUS_DEVICE_MEMORY_EXHAUSTED && !trim_after_reaping(d))
        st = cuda_share_make(d, made);
    if (!st)
        remember_allocation(&d->memory, made);
    return st;
}

static enum status allocate_paged(struct device *d, uint64_t bytes, uint64_t *address)
{
    struct cuda_allocation made = {.bytes = bytes, .paged = true};
    enum status            st = reap_pending_frees(d);

    if (!st)
        st = make_mapped(d, &made);
    if (!st)
        *address = made.address;
    return st;
}

enum status cuda_mem_alloc(struct device *d, uint64_t bytes, uint64_t *address)
{
    cuda_address got = 0;
    enum status  st = cuda_alive(d, NULL);
    size_t       rounded;

    if (st)
        return st;
    if (bytes > d->total_bytes)
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    if (!has_room(&d->memory))
        return STATUS_OUT_OF_MEMORY;
    if (d->memory.page_unit && bytes >= HIBERNATE_BUFFER_BYTES_MIN)
        return allocate_paged(d, bytes, address);
    rounded = (size_t)((bytes + ALLOCATION_ALIGN - 1) / ALLOCATION_ALIGN * ALLOCATION_ALIGN);
    st = reap_pending_frees(d);
    if (!st)
        st = allocate_from_pool(d, rounded, &got);
    if (st == STATUS_DEVICE_MEMORY_EXHAUSTED)
        st = allocate_again(d, rounded, &got);
    if (st)
        return st;
    st = cuda_check(d, d->cu->cuStreamSynchronize(d->memory.stream), NULL, "allocating memory");
    if (st) {
        release_allocation(d, &(struct cuda_allocation){.address = got});
        return st;
    }
    remember_allocation(&d->memory, &(struct cuda_allocation){.address = got, .bytes = bytes});
    *address = got;
    return STATUS_OK;
}

/* ---- memory that other processes map ---- */

enum status cuda_mem_alloc_shared(struct device *d, uint64_t bytes, int file, uint64_t file_bytes, struct device_shared *out)
{
    struct cuda_allocation made = {.bytes = bytes};
    enum status            st = cuda_alive(d, NULL);

    if (st)
        return st;
    if (!d->memory.share_unit || file >= 0 || file_bytes)
        return STATUS_NOT_IMPLEMENTED;
    if (bytes > d->total_bytes)
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    if (!has_room(&d->memory))
        return STATUS_OUT_OF_MEMORY;
    st = make_mapped(d, &made);
    if (st)
        return st;
    *out = (struct device_shared){made.address, 0, made.taken};
    return STATUS_OK;
}

enum status cuda_mem_export(struct device *d, uint64_t address, int *fd)
{
    const struct cuda_memory     *m = &d->memory;
    const struct cuda_allocation *a = m->room && address ? &m->places[find_allocation(m, address)] : NULL;
    enum status                   st = cuda_alive(d, NULL);

    if (st)
        return st;
    if (!a || !a->taken || a->paged)
        return STATUS_NOT_IMPLEMENTED;
    return cuda_check(d, d->cu->cuMemExportToShareableHandle(fd, a->share, CUDA_HANDLE_POSIX_DESCRIPTOR, 0), NULL, "handing out memory");
}

/* ---- memory that leaves, and comes back ---- */

/* NULL: there is none of that address. */
static struct cuda_allocation *allocation_at(struct cuda_memory *m, uint64_t address)
{
    struct cuda_allocation *a = m->room && address ? &m->places[find_allocation(m, address)] : NULL;

    return a && a->address ? a : NULL;
}

/* Nothing is queued: unmapping would not wait for it. */
enum status cuda_mem_evict(struct device *d, uint64_t address, uint64_t *bytes)
{
    struct cuda_allocation *a = allocation_at(&d->memory, address);
    enum status             st = cuda_alive(d, NULL);

    *bytes = 0;
    if (st)
        return st;
    if (!a || !a->paged)
        return STATUS_NOT_IMPLEMENTED;
    if (a->away || !cuda_streams_idle(d))
        return STATUS_INTERNAL;
    st = cuda_share_evict(d, a);
    if (!st)
        *bytes = a->taken;
    return st;
}

enum status cuda_mem_restore(struct device *d, uint64_t address)
{
    struct cuda_allocation *a = allocation_at(&d->memory, address);
    enum status             st = cuda_alive(d, NULL);

    if (st)
        return st;
    if (!a || !a->away)
        return STATUS_INTERNAL;
    st = cuda_share_restore(d, a);
    if (st == STATUS_DEVICE_MEMORY_EXHAUSTED && !trim_after_reaping(d))
        st = cuda_share_restore(d, a);
    return st;
}

/* Whether there is a free range of so many addresses. */
static enum status try_addresses(struct device *d, uint64_t bytes, bool *fit)
{
    cuda_address address = 0;
    enum status  st = cuda_check(d, d->cu->cuMemAddressReserve(&address, (size_t)bytes, 0, 0, 0), NULL, "reserving addresses");

    *fit = !st;
    if (st == STATUS_DEVICE_MEMORY_EXHAUSTED)
        return STATUS_OK;
    return st ? st : cuda_check(d, d->cu->cuMemAddressFree(address, (size_t)bytes), NULL, "freeing addresses");
}

/* The driver puts an allocation together of pages from anywhere, so its size is bounded by the free pages and by the longest range of free
 * addresses. That is tried: addresses are reserved and given back, which takes no memory from anybody. */
static enum status measure_largest(struct device *d, struct device_memory *m)
{
    uint64_t    fits = 0, fails = m->free_bytes / PAGE_BYTES + 1, pages = fails - 1; /* pages: to be tried next */
    enum status st = STATUS_OK;

    m->largest_free_bytes = DEVICE_LARGEST_UNKNOWN;
    if (!d->cu->cuMemAddressReserve || !d->cu->cuMemAddressFree)
        return STATUS_OK;
    while (!st && fails - fits > 1) {
        bool fit;

        st = try_addresses(d, pages * PAGE_BYTES, &fit);
        *(fit ? &fits : &fails) = pages;
        pages = fits + (fails - fits) / 2;
    }
    m->largest_free_bytes = fits * PAGE_BYTES;
    return st;
}

enum status cuda_memory_info(struct device *d, struct device_memory *out)
{
    struct device_memory m = {.allocated_bytes = d->memory.bytes, .peak_bytes = d->memory.peak_bytes};
    enum status          st = cuda_alive(d, NULL);

    if (!st)
        st = reap_pending_frees(d);
    if (!st)
        st = pool_state(d, &m);
    if (st)
        return st;
    m.reserved_bytes += d->memory.shared_bytes + d->memory.array_bytes;
    st = measure_largest(d, &m);
    if (!st)
        *out = m;
    return st;
}

void cuda_memory_reset_peak(struct device *d)
{
    d->memory.peak_bytes = d->memory.bytes;
}
