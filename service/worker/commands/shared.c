/* Memory that other processes of the host map: shared allocations, and host files to copy from and to. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/files/descriptor.h"
#include "ipc/worker_fds.h"
#include "worker/commands/internal.h"

/* ---- the socket for descriptors ---- */

/* The descriptor sent under this number, now the caller's. Those before it belong to calls that were given up; where there was no room
 * for a descriptor, the message came without one. -1: not there. */
static int lent_take(const struct device_worker *w, uint64_t number)
{
    uint64_t got = 0;
    int      fd = -1;

    while (w->sharing && descriptor_receive(WORKER_SHARE_FD, &got, sizeof got, &fd) == (ssize_t)sizeof got) {
        if (got == number)
            return fd;
        descriptor_close(&fd);
        if (got > number)
            break;
    }
    descriptor_close(&fd);
    return -1;
}

static enum status not_lent(struct problem *why)
{
    return problem_set(why, STATUS_INVALID_REQUEST, "the descriptor of that memory did not come along");
}

/* ---- shared allocations ---- */

enum status shared_alloc(struct device_worker *w, const struct msg_mem_alloc_shared *m, struct msg_mem_alloc_shared_reply *r,
                         struct problem *why)
{
    struct device_shared made = {0};
    int                  fd = m->file ? lent_take(w, m->file) : -1;
    enum status          st;

    if (m->file && fd < 0)
        return not_lent(why);
    st = w->ops->mem_alloc_shared ? w->ops->mem_alloc_shared(w->device, m->bytes, fd, m->file_bytes, &made) : STATUS_NOT_IMPLEMENTED;
    descriptor_close(&fd);
    if (st == STATUS_NOT_IMPLEMENTED)
        return problem_set(why, STATUS_INVALID_FIELD, "memory of devices of the kind %s is not shared", w->ops->name);
    *r = (struct msg_mem_alloc_shared_reply){made.address, made.offset, made.taken};
    return st; /* said by the caller, as of all allocations */
}

enum status shared_export(struct device_worker *w, const struct msg_mem_export *m, struct problem *why)
{
    int         fd = -1;
    enum status st = w->sharing && w->ops->mem_export ? w->ops->mem_export(w->device, m->address, &fd) : STATUS_NOT_IMPLEMENTED;

    if (st == STATUS_NOT_IMPLEMENTED)
        return problem_set(why, STATUS_INVALID_FIELD, "memory of devices of the kind %s is not handed out", w->ops->name);
    if (st)
        return problem_set(why, st, "the device handed out no descriptor of the memory");
    if (descriptor_send(WORKER_SHARE_FD, &m->file, sizeof m->file, fd) != (ssize_t)sizeof m->file)
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "the descriptor could not be passed on");
    close(fd);
    return st;
}

/* ---- files of the host ---- */

static struct host_memory *host_find(struct device_worker *w, uint32_t id)
{
    uint32_t slot = (id & 0xffff) - 1;

    if (slot >= COUNT(w->hosts) || !w->hosts[slot].base || w->hosts[slot].generation != id >> 16)
        return NULL;
    return &w->hosts[slot];
}

static struct host_memory *host_free_slot(struct device_worker *w)
{
    for (unsigned i = 0; i < COUNT(w->hosts); i++)
        if (!w->hosts[i].base)
            return &w->hosts[i];
    return NULL;
}

static unsigned hosts_open(const struct device_worker *w)
{
    unsigned n = 0;

    for (unsigned i = 0; i < COUNT(w->hosts); i++)
        n += w->hosts[i].base && !w->hosts[i].closing;
    return n;
}

bool host_room_is_coming(struct device_worker *w)
{
    return hosts_open(w) < SHARES_PER_SESSION_MAX && !host_free_slot(w);
}

/* Pins all pages at once: page by page takes as long as the copy. A device that cannot pin copies more slowly. */
static bool host_open(struct device_worker *w, struct host_memory *h, int fd, uint64_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

    if (at == MAP_FAILED)
        return false;
    h->base = at;
    h->bytes = bytes;
    h->closing = false;
    h->generation++;
    h->attached = w->ops->host_attach && w->ops->host_attach(w->device, at, bytes) == STATUS_OK;
    return true;
}

static void host_close(struct device_worker *w, struct host_memory *h)
{
    if (h->attached)
        w->ops->host_detach(w->device, h->base);
    munmap(h->base, h->bytes);
    h->base = NULL;
}

enum status host_map(struct device_worker *w, const struct msg_host_map *m, uint32_t *id, struct problem *why)
{
    struct host_memory *h = hosts_open(w) < SHARES_PER_SESSION_MAX ? host_free_slot(w) : NULL;
    int                 fd = lent_take(w, m->file);
    bool                open = h && fd >= 0 && m->bytes && host_open(w, h, fd, m->bytes);

    if (fd < 0)
        return not_lent(why);
    close(fd);
    if (!h)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "shared_buffers_per_session", SHARES_PER_SESSION_MAX, SHARES_PER_SESSION_MAX, 1);
    if (!open)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "the shared memory could not be mapped");
    h->beside = m->beside;
    *id = (uint32_t)h->generation << 16 | (uint32_t)(h - w->hosts + 1);
    return STATUS_OK;
}

bool host_leave(struct device_worker *w, uint32_t id)
{
    struct host_memory *h = host_find(w, id);

    if (!h || h->closing)
        return false;
    h->closing = true;
    return true;
}

bool host_is_leaving(struct device_worker *w, uint32_t id)
{
    const struct host_memory *h = host_find(w, id);

    return h && h->closing;
}

void host_leave_beside(struct device_worker *w, uint64_t address)
{
    for (unsigned i = 0; i < COUNT(w->hosts); i++)
        if (w->hosts[i].base && w->hosts[i].beside == address)
            w->hosts[i].closing = true;
}

void host_end(struct device_worker *w, uint32_t id)
{
    struct host_memory *h = host_find(w, id);

    if (h && h->closing)
        host_close(w, h);
}

void host_end_beside(struct device_worker *w, uint64_t address)
{
    for (unsigned i = 0; i < COUNT(w->hosts); i++)
        if (w->hosts[i].base && w->hosts[i].closing && w->hosts[i].beside == address)
            host_close(w, &w->hosts[i]);
}

enum status piece_find(struct device_worker *w, uint32_t host, struct shm_ref ref, unsigned char **out)
{
    struct host_memory *h = host ? host_find(w, host) : NULL;

    if (!host)
        return shm_piece(&w->shm, ref, out);
    if (!h || ref.offset > h->bytes || ref.bytes > h->bytes - ref.offset)
        return STATUS_INVALID_REQUEST;
    *out = h->base + ref.offset;
    return STATUS_OK;
}
