/* The fake device's memory: as much as the script says, given back as late as it says; pieces that other processes map are files. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files/descriptor.h"
#include "ipc/worker_fds.h"
#include "support/fake_device.h"

struct block {
    uint64_t      address, bytes;
    int           file; /* of a shared one; -1: it has none */
    struct block *next;
};

static bool has_room(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < FAKE_WORKERS_MAX; i++)
        n += script->workers[i].pid ? script->workers[i].allocations + script->workers[i].cached : 0;
    return !script->allocations_max || n < script->allocations_max;
}

void fake_memory_reset_peak(struct device *d)
{
    (void)d;
    script->memory.peak_bytes = script->memory.allocated_bytes;
}

enum status fake_mem_trim(struct device *d)
{
    (void)d;
    script->memory.reserved_bytes = script->memory.allocated_bytes;
    if (atomic_exchange(&own_holdings->cached, 0))
        script->late_left = script->late;
    return STATUS_OK;
}

static bool fits(struct device *d, uint64_t bytes)
{
    bool late;

    if (bytes > (1 << 30) - d->bytes)
        return false;
    if (!fake_is_seen())
        return true;
    if (!has_room())
        fake_mem_trim(d);
    late = has_room() && script->allocations_max && script->late_left;
    script->late_left -= late;
    script->refused += late || !has_room();
    return !late && has_room();
}

static enum status block_add(struct device *d, uint64_t address, uint64_t bytes, int file)
{
    struct block *b = malloc(sizeof *b);

    *b = (struct block){address, bytes, file, d->blocks};
    d->blocks = b;
    d->bytes += bytes;
    own_holdings->allocations++;
    return STATUS_OK;
}

enum status fake_mem_alloc(struct device *d, uint64_t bytes, uint64_t *address)
{
    if (!fits(d, bytes))
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    *address = (uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return block_add(d, *address, bytes, -1);
}

static void block_free(struct device *d, struct block *b)
{
    d->bytes -= b->bytes;
    own_holdings->allocations--;
    if (script->caches)
        own_holdings->cached++;
    else
        script->late_left = script->late;
    if (b->file < 0) {
        free((void *)(uintptr_t)b->address);
    } else {
        munmap((void *)(uintptr_t)b->address, b->bytes);
        close(b->file);
    }
    free(b);
}

enum status fake_mem_free(struct device *d, uint64_t address)
{
    for (struct block **at = &d->blocks; *at; at = &(*at)->next)
        if ((*at)->address == address) {
            struct block *gone = *at;

            *at = gone->next;
            block_free(d, gone);
            break;
        }
    return STATUS_OK;
}

enum status fake_mem_alloc_shared(struct device *d, uint64_t bytes, int file, uint64_t file_bytes, struct device_shared *out)
{
    uint64_t taken = file < 0 ? (bytes + FAKE_SHARING_UNIT - 1) / FAKE_SHARING_UNIT * FAKE_SHARING_UNIT : file_bytes;
    int      own = file < 0 ? memfd_create("fake-share", MFD_CLOEXEC) : dup(file);
    void    *at;

    if (!fits(d, bytes) || own < 0 || (file < 0 && ftruncate(own, (off_t)taken)))
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    at = mmap(NULL, taken, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    if (at == MAP_FAILED)
        return STATUS_OUT_OF_MEMORY;
    *out = (struct device_shared){(uintptr_t)at, 0, taken + script->lies};
    return block_add(d, out->address, taken, own);
}

static void send_note(uint64_t number, int fd)
{
    descriptor_send(WORKER_SHARE_FD, &number, sizeof number, fd);
}

/* Numbers of exchanges are small. */
enum status fake_mem_export(struct device *d, uint64_t address, int *fd)
{
    struct block *b = d->blocks;

    while (b && b->address != address)
        b = b->next;
    for (uint64_t n = 0; told("floods") && n < 200; n++)
        send_note(1000 + n, STDERR_FILENO);
    for (uint64_t n = 0; told("guesses") && n < 8; n++)
        send_note(n, STDERR_FILENO);
    if (told("short"))
        send(WORKER_SHARE_FD, "x", 1, 0);
    *fd = b ? dup(b->file) : memfd_create("fake-export", 0);
    return *fd < 0 || (!b && ftruncate(*fd, FAKE_SHARING_UNIT)) ? STATUS_OUT_OF_MEMORY : STATUS_OK;
}

enum status fake_host_attach(struct device *d, void *base, size_t bytes)
{
    (void)d, (void)base, (void)bytes;
    own_holdings->hosts++;
    return STATUS_OK;
}

void fake_host_detach(struct device *d, void *base)
{
    (void)d, (void)base;
    own_holdings->hosts--;
}

/* Done at once, and told when the script lets it. */
static void copy(struct device_stream *s, void *to, const void *from, size_t bytes)
{
    stream_of(s)->stands = script->held && fake_is_seen();
    memmove(to, from, bytes);
}

enum status fake_mem_write(struct device *d, struct device_stream *s, uint64_t to, const void *from, size_t bytes)
{
    (void)d;
    copy(s, (void *)(uintptr_t)to, from, bytes);
    return STATUS_OK;
}

enum status fake_mem_read(struct device *d, struct device_stream *s, void *to, uint64_t from, size_t bytes)
{
    (void)d;
    copy(s, to, (const void *)(uintptr_t)from, bytes);
    return STATUS_OK;
}

enum status fake_mem_copy(struct device *d, struct device_stream *s, uint64_t to, uint64_t from, uint64_t bytes)
{
    (void)d;
    copy(s, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return STATUS_OK;
}

enum status fake_mem_fill(struct device *d, struct device_stream *s, uint64_t to, uint64_t pattern, uint32_t n, uint64_t count)
{
    (void)d;
    for (uint64_t i = 0; i < count; i++)
        copy(s, (char *)(uintptr_t)to + i * n, &pattern, n);
    return STATUS_OK;
}
