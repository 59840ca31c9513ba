/* Allocates device memory out of one reserved range: fresh zero pages, guard pages, right-aligned ends. */
#include "device/cpu/runtime/memory.h"
#include "device/cpu/bounds.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cpu/runtime/memcheck.h"

enum { ALIGNMENT_BYTES = 256 };

/* Slots are sorted by `base` and never overlap. */
struct slot {
    uint64_t base; /* first usable page; a guard page stands before it unless the slot is unguarded */
    uint64_t span; /* usable bytes, whole pages */
    uint64_t address;
    uint64_t bytes;
    uint64_t guard;  /* bytes kept free on each side */
    uint64_t filled; /* the host has written up to here in long pieces: those pages exist */
    bool     file;   /* its pages are a file's */
    bool     away;   /* its pages were given back, and cannot be used */
};

/* A freed allocation. */
struct freed {
    uint64_t address;
    uint64_t bytes;
};

struct cpu_memory {
    pthread_mutex_t    lock; /* guards all below */
    uint64_t           base;
    uint64_t           span;
    uint64_t           page;
    uint64_t           limit;
    struct slot       *slots;
    size_t             count;
    size_t             room;
    uint64_t           cursor; /* addresses from here on were never used */
    uint64_t           allocated;
    uint64_t           reserved;
    uint64_t           peak;
    struct cpu_shadow *shadow;      /* NULL: memcheck is off */
    struct freed      *freed;       /* the last CPU_FREED_KEPT_MAX, while memcheck is on */
    uint64_t           freed_count; /* ever */
};

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) & ~(unit - 1);
}

/* Maps twice the size and trims it: the range must be aligned to its own size. */
static bool reserve_addresses(struct cpu_memory *m, uint64_t span)
{
    char    *at = mmap(NULL, span * 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t start = (uint64_t)(uintptr_t)at;
    uint64_t base = round_up(start, span);

    if (at == MAP_FAILED)
        return false;
    if (base > start)
        munmap(at, base - start);
    if (start + span > base)
        munmap(at + (base - start) + span, start + span - base);
    m->base = base;
    m->span = span;
    m->cursor = base;
    return true;
}

static uint64_t read_number(const char *path, const char *key)
{
    FILE    *f = fopen(path, "re");
    char     line[256];
    size_t   n = strlen(key);
    uint64_t value = 0;

    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, key, n) == 0 && sscanf(line + n, "%" SCNu64, &value) == 1)
            break;
    }
    fclose(f);
    return value;
}

/* A sixteenth, at least CPU_MEMORY_RESERVE_BYTES, stays for the service and the host. */
static uint64_t host_spare_bytes(void)
{
    uint64_t available = read_number("/proc/meminfo", "MemAvailable:") * 1024;
    uint64_t group = read_number("/sys/fs/cgroup/memory.max", "");
    uint64_t keep;

    if (group && group < available)
        available = group;
    keep = available / 16 > CPU_MEMORY_RESERVE_BYTES ? available / 16 : CPU_MEMORY_RESERVE_BYTES;
    return available > keep ? available - keep : available / 2;
}

enum status cpu_memory_create(uint64_t limit_bytes, struct cpu_memory **out)
{
    struct cpu_memory *m = calloc(1, sizeof *m);
    uint64_t           span = CPU_ARENA_BYTES_MAX;

    if (!m)
        return STATUS_OUT_OF_MEMORY;
    while (span >= CPU_ARENA_BYTES_MIN && !reserve_addresses(m, span))
        span /= 2;
    if (span < CPU_ARENA_BYTES_MIN) {
        free(m);
        return STATUS_OUT_OF_MEMORY;
    }
    m->page = (uint64_t)sysconf(_SC_PAGESIZE);
    m->limit = limit_bytes ? limit_bytes : host_spare_bytes();
    if (m->limit > m->span / 2)
        m->limit = m->span / 2;
    pthread_mutex_init(&m->lock, NULL);
    *out = m;
    return STATUS_OK;
}

void cpu_memory_destroy(struct cpu_memory *m)
{
    if (!m)
        return;
    munmap((void *)(uintptr_t)m->base, m->span);
    pthread_mutex_destroy(&m->lock);
    cpu_shadow_destroy(m->shadow);
    free(m->freed);
    free(m->slots);
    free(m);
}

/* The number of slots whose base is <= address. */
static size_t slots_up_to(const struct cpu_memory *m, uint64_t address)
{
    size_t low = 0, high = m->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (m->slots[mid].base <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct slot *slot_of(const struct cpu_memory *m, uint64_t address)
{
    size_t       n = slots_up_to(m, address);
    struct slot *s = n ? &m->slots[n - 1] : NULL;

    return s && address >= s->address && address - s->address < s->bytes ? s : NULL;
}

static uint64_t gap_end(const struct cpu_memory *m, size_t i)
{
    return i < m->count ? m->slots[i].base - m->slots[i].guard : m->base + m->span;
}

static uint64_t gap_start(const struct cpu_memory *m, size_t i)
{
    return i ? m->slots[i - 1].base + m->slots[i - 1].span + m->slots[i - 1].guard : m->base;
}

/* Fresh addresses first, so that a stale pointer faults instead of reaching another allocation; then the first gap that fits. */
static bool find_place(const struct cpu_memory *m, uint64_t need, uint64_t *start, size_t *index)
{
    if (need <= m->base + m->span - m->cursor) {
        *start = m->cursor;
        *index = m->count;
        return true;
    }
    for (size_t i = 0; i <= m->count; i++) {
        if (gap_end(m, i) - gap_start(m, i) >= need && gap_end(m, i) > gap_start(m, i)) {
            *start = gap_start(m, i);
            *index = i;
            return true;
        }
    }
    return false;
}

static bool make_room(struct cpu_memory *m)
{
    size_t       room = m->room ? m->room * 2 : 64;
    struct slot *grown;

    if (m->count < m->room)
        return true;
    grown = realloc(m->slots, room * sizeof *grown);
    if (!grown)
        return false;
    m->slots = grown;
    m->room = room;
    return true;
}

static void insert_slot(struct cpu_memory *m, size_t index, const struct slot *s)
{
    memmove(&m->slots[index + 1], &m->slots[index], (m->count - index) * sizeof *s);
    m->slots[index] = *s;
    m->count++;
    if (s->base + s->span + s->guard > m->cursor)
        m->cursor = s->base + s->span + s->guard;
    m->allocated += s->bytes;
    m->reserved += s->span;
    if (m->allocated > m->peak)
        m->peak = m->allocated;
}

/* Makes all pages now: the first kernel would wait for each of them. */
static bool open_pages(const struct slot *s, int file)
{
    void *at = (void *)(uintptr_t)s->base;

    if (!s->file)
        return mprotect(at, s->span, PROT_READ | PROT_WRITE) == 0;
    return mmap(at, s->span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0) != MAP_FAILED;
}

/* A file's pages stay in the file; others are released. */
static bool close_pages(const struct slot *s)
{
    void *at = (void *)(uintptr_t)s->base;

    if (s->file)
        return mmap(at, s->span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
    return madvise(at, s->span, MADV_DONTNEED) == 0 && mprotect(at, s->span, PROT_NONE) == 0;
}

/* Each guarded allocation costs two of the kernel's mappings, whose number is bounded; beyond that, neighbours share a guard page. */
static enum status place_allocation(struct cpu_memory *m, uint64_t bytes, int file, uint64_t *address)
{
    uint64_t    guarded = m->shadow ? CPU_GUARDED_ALLOCATIONS_MAX / 2 : CPU_GUARDED_ALLOCATIONS_MAX; /* its state has mappings, too */
    uint64_t    guard = m->count < guarded ? m->page : 0;
    struct slot s = {.span = round_up(bytes, m->page), .bytes = bytes, .guard = guard, .file = file >= 0};
    uint64_t    start;
    size_t      index;

    if (!make_room(m) || !find_place(m, s.span + 2 * guard, &start, &index))
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    s.base = start + guard;
    s.address = s.base + (s.span - round_up(bytes, ALIGNMENT_BYTES));
    if (!open_pages(&s, file))
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    if (cpu_shadow_open(m->shadow, s.base, s.span)) {
        close_pages(&s);
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    }
    insert_slot(m, index, &s);
    cpu_shadow_set(m->shadow, s.address, s.bytes, s.file ? SHADOW_WRITTEN : SHADOW_FRESH); /* writes of others are not tracked */
    *address = s.address;
    return STATUS_OK;
}

static enum status alloc(struct cpu_memory *m, uint64_t bytes, int file, uint64_t *address)
{
    enum status st = STATUS_DEVICE_MEMORY_EXHAUSTED;

    if (bytes == 0)
        return STATUS_INTERNAL;
    pthread_mutex_lock(&m->lock);
    if (bytes <= m->limit && round_up(bytes, m->page) <= m->limit - (m->reserved < m->limit ? m->reserved : m->limit))
        st = place_allocation(m, bytes, file, address);
    pthread_mutex_unlock(&m->lock);
    return st;
}

enum status cpu_memory_alloc(struct cpu_memory *m, uint64_t bytes, uint64_t *address)
{
    return alloc(m, bytes, -1, address);
}

enum status cpu_memory_alloc_file(struct cpu_memory *m, uint64_t bytes, int file, uint64_t file_bytes, uint64_t *address, uint64_t *offset)
{
    if (file < 0 || file_bytes < bytes || file_bytes != round_up(bytes, m->page))
        return STATUS_INTERNAL;
    *offset = file_bytes - round_up(bytes, ALIGNMENT_BYTES);
    return alloc(m, bytes, file, address);
}

static void remember_freed(struct cpu_memory *m, const struct slot *s)
{
    cpu_shadow_set(m->shadow, s->address, s->bytes, SHADOW_FOREIGN);
    cpu_shadow_close(m->shadow, s->base, s->span);
    if (m->freed)
        m->freed[m->freed_count++ % CPU_FREED_KEPT_MAX] = (struct freed){s->address, s->bytes};
}

enum status cpu_memory_free(struct cpu_memory *m, uint64_t address)
{
    enum status st = STATUS_INTERNAL;
    size_t      n;

    pthread_mutex_lock(&m->lock);
    n = slots_up_to(m, address);
    if (n && m->slots[n - 1].address == address) {
        struct slot s = m->slots[n - 1];

        /* Must succeed before the addresses may be reused: else the slot stays taken. */
        if (close_pages(&s)) {
            memmove(&m->slots[n - 1], &m->slots[n], (m->count - n) * sizeof s);
            m->count--;
            m->allocated -= s.bytes;
            m->reserved -= s.away ? 0 : s.span;
            remember_freed(m, &s);
            st = STATUS_OK;
        }
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

/* Under lock. The allocation of that very address; NULL: there is none. */
static struct slot *slot_at(const struct cpu_memory *m, uint64_t address)
{
    struct slot *s = slot_of(m, address);

    return s && s->address == address ? s : NULL;
}

/* Memory that is watched stays: what is known of its bytes would be lost. */
enum status cpu_memory_evict(struct cpu_memory *m, uint64_t address, uint64_t *bytes)
{
    enum status  st = STATUS_NOT_IMPLEMENTED;
    struct slot *s;

    *bytes = 0;
    pthread_mutex_lock(&m->lock);
    s = slot_at(m, address);
    if (!s || s->away)
        st = STATUS_INTERNAL;
    else if (!s->file && !m->shadow)
        st = close_pages(s) ? STATUS_OK : STATUS_INTERNAL;
    if (!st) {
        s->away = true;
        s->filled = 0;
        m->reserved -= s->span;
        *bytes = s->span;
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

enum status cpu_memory_restore(struct cpu_memory *m, uint64_t address)
{
    enum status  st = STATUS_OK;
    struct slot *s;

    pthread_mutex_lock(&m->lock);
    s = slot_at(m, address);
    if (!s || !s->away)
        st = STATUS_INTERNAL;
    else if (m->reserved > m->limit || s->span > m->limit - m->reserved || !open_pages(s, -1))
        st = STATUS_DEVICE_MEMORY_EXHAUSTED;
    if (!st) {
        s->away = false;
        m->reserved += s->span;
    }
    pthread_mutex_unlock(&m->lock);
    return st;
}

uint64_t cpu_memory_left(struct cpu_memory *m, uint64_t address)
{
    const struct slot *s;
    uint64_t           left;

    pthread_mutex_lock(&m->lock);
    s = slot_of(m, address);
    left = s ? s->bytes - (address - s->address) : 0;
    pthread_mutex_unlock(&m->lock);
    return left;
}

uint64_t cpu_memory_page(const struct cpu_memory *m)
{
    return m->page;
}

/* Under lock. The part of the range behind all that was filled before, in whole pages except at its end; 0 bytes: none. */
static uint64_t take_unfilled(struct cpu_memory *m, uint64_t address, uint64_t bytes, uint64_t *from)
{
    struct slot *s = slot_of(m, address);
    uint64_t     end = address + bytes;

    if (!s || s->file || bytes > s->bytes - (address - s->address) || end <= s->filled)
        return 0;
    *from = (address > s->filled ? address : s->filled) & ~(m->page - 1);
    s->filled = end;
    return end - *from;
}

void cpu_memory_expect_write(struct cpu_memory *m, uint64_t address, uint64_t bytes)
{
    uint64_t from = 0, fresh;

    if (bytes < CPU_POPULATE_BYTES_MIN)
        return;
    pthread_mutex_lock(&m->lock);
    fresh = take_unfilled(m, address, bytes, &from);
    pthread_mutex_unlock(&m->lock);
    if (fresh)
        madvise((void *)(uintptr_t)from, fresh, MADV_POPULATE_WRITE); /* hosts before Linux 5.14 refuse: the write makes them one by one */
}

/* Under lock: of addresses that find_place() would give, without their guards. */
static uint64_t largest_gap(const struct cpu_memory *m)
{
    uint64_t guards = m->count < CPU_GUARDED_ALLOCATIONS_MAX ? 2 * m->page : 0, most = m->base + m->span - m->cursor;

    for (size_t i = 0; i <= m->count; i++)
        if (gap_end(m, i) > gap_start(m, i) && gap_end(m, i) - gap_start(m, i) > most)
            most = gap_end(m, i) - gap_start(m, i);
    return most > guards ? most - guards : 0;
}

void cpu_memory_stats(struct cpu_memory *m, struct device_memory *out)
{
    uint64_t left, gap;

    pthread_mutex_lock(&m->lock);
    left = m->limit > m->reserved ? m->limit - m->reserved : 0;
    gap = largest_gap(m);
    *out = (struct device_memory){
        .total_bytes = m->limit,
        .free_bytes = left,
        .allocated_bytes = m->allocated,
        .reserved_bytes = m->reserved,
        .peak_bytes = m->peak,
        .largest_free_bytes = (left < gap ? left : gap) & ~(m->page - 1),
    };
    pthread_mutex_unlock(&m->lock);
}

void cpu_memory_reset_peak(struct cpu_memory *m)
{
    pthread_mutex_lock(&m->lock);
    m->peak = m->allocated;
    pthread_mutex_unlock(&m->lock);
}

uint64_t cpu_memory_base(const struct cpu_memory *m)
{
    return m->base;
}

uint64_t cpu_memory_span(const struct cpu_memory *m)
{
    return m->span;
}

enum status cpu_memory_watch(struct cpu_memory *m)
{
    struct freed *freed = calloc(CPU_FREED_KEPT_MAX, sizeof *freed);
    enum status   st = freed ? STATUS_OK : STATUS_OUT_OF_MEMORY;

    pthread_mutex_lock(&m->lock);
    if (!st && !m->shadow)
        st = cpu_shadow_create(m->base, m->span, &m->shadow);
    for (size_t i = 0; i < m->count && !st && !m->freed; i++)
        st = cpu_shadow_open(m->shadow, m->slots[i].base, m->slots[i].span);
    if (!st && !m->freed) {
        for (size_t i = 0; i < m->count; i++)
            cpu_shadow_set(m->shadow, m->slots[i].address, m->slots[i].bytes, SHADOW_WRITTEN);
        m->freed = freed;
        m->limit /= 2;
        freed = NULL;
    }
    pthread_mutex_unlock(&m->lock);
    free(freed);
    return st;
}

struct cpu_shadow *cpu_memory_shadow(const struct cpu_memory *m)
{
    return m->shadow;
}

/* The most recent one that held the address; NULL: none is known. */
static const struct freed *freed_at(const struct cpu_memory *m, uint64_t address)
{
    uint64_t kept = m->freed_count < CPU_FREED_KEPT_MAX ? m->freed_count : CPU_FREED_KEPT_MAX;

    for (uint64_t i = 1; i <= kept; i++) {
        const struct freed *f = &m->freed[(m->freed_count - i) % CPU_FREED_KEPT_MAX];
        if (address - f->address < f->bytes)
            return f;
    }
    return NULL;
}

/* The one that ends less far before the address than the next one begins behind it. */
static const struct slot *slot_beside(const struct cpu_memory *m, uint64_t address)
{
    size_t             n = slots_up_to(m, address);
    const struct slot *before = n ? &m->slots[n - 1] : NULL, *behind = n < m->count ? &m->slots[n] : NULL;

    if (before && address < before->address) /* the unused start of its first page */
        return before;
    if (before && behind && address - (before->address + before->bytes) >= behind->address - address)
        return behind;
    return before ? before : behind;
}

struct cpu_nearest cpu_memory_nearest(struct cpu_memory *m, uint64_t address)
{
    struct cpu_nearest  out = {0};
    const struct slot  *s;
    const struct freed *f;

    pthread_mutex_lock(&m->lock);
    s = slot_of(m, address);
    f = s ? NULL : freed_at(m, address);
    if (f)
        out = (struct cpu_nearest){f->address, f->bytes, true};
    else if (s || (s = slot_beside(m, address)) != NULL)
        out = (struct cpu_nearest){s->address, s->bytes, false};
    pthread_mutex_unlock(&m->lock);
    return out;
}

void cpu_nearest_describe(const struct cpu_nearest *n, uint64_t address, char *text, size_t room)
{
    uint64_t offset = address - n->address;

    if (n->bytes == 0)
        snprintf(text, room, "outside all allocations");
    else if (address < n->address)
        snprintf(text, room, "%" PRIu64 " bytes before an allocation of %" PRIu64, n->address - address, n->bytes);
    else if (offset < n->bytes)
        snprintf(text, room, "at offset %" PRIu64 " of %s allocation of %" PRIu64, offset, n->freed ? "a freed" : "an", n->bytes);
    else
        snprintf(text, room, "%" PRIu64 " bytes after the end of an allocation of %" PRIu64, offset - n->bytes, n->bytes);
}
