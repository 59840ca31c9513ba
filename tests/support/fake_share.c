/* The fake's memory: how much of it there is, and pieces that other processes map, each a file, the caller's or one of the fake's own. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fake_state.h"

static void *map(int fd, size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        abort();
    return at;
}

/* ---- how much there is ---- */

void fake_freed(struct worker *w)
{
    if (fake.caches) {
        w->cached++;
        fake.cached++;
    } else {
        fake.late_left = fake.late;
    }
}

void fake_trim(struct worker *w)
{
    if (w->cached)
        fake.late_left = fake.late;
    fake.cached -= w->cached;
    w->cached = 0;
}

static bool has_room(void)
{
    return !fake.allocations_max || fake.allocations + fake.cached < fake.allocations_max;
}

bool fake_fits(struct worker *w)
{
    if (!has_room())
        fake_trim(w);
    if (has_room() && (!fake.allocations_max || !fake.late_left))
        return true;
    if (has_room())
        fake.late_left--;
    fake.refused++;
    pthread_cond_broadcast(&fake.changed);
    return false;
}

/* ---- shared allocations ---- */

enum status fake_share_allocate(struct worker *w, const struct msg_mem_alloc_shared *m, struct msg_mem_alloc_shared_reply *reply)
{
    struct allocation *a;

    pthread_mutex_lock(&fake.lock);
    if (!fake_fits(w)) {
        pthread_mutex_unlock(&fake.lock);
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    }
    a = calloc(1, sizeof *a);
    a->mapped = m->file ? m->file_bytes : (m->bytes + FAKE_SHARING_UNIT - 1) / FAKE_SHARING_UNIT * FAKE_SHARING_UNIT;
    a->fd = m->file ? dup((int)m->file) : memfd_create("fake-share", MFD_CLOEXEC);
    if (a->fd < 0 || (!m->file && ftruncate(a->fd, (off_t)a->mapped)))
        abort();
    a->data = map(a->fd, a->mapped);
    a->next = w->allocations;
    w->allocations = a;
    fake.allocations++;
    *reply = (struct msg_mem_alloc_shared_reply){(uint64_t)(uintptr_t)a->data, 0, fake.lies ? a->mapped + 1 : a->mapped};
    pthread_mutex_unlock(&fake.lock);
    return STATUS_OK;
}

void fake_allocation_free(struct allocation *a)
{
    if (a->mapped) {
        munmap(a->data, a->mapped);
        close(a->fd);
    } else {
        free(a->data);
    }
    free(a);
}

/* ---- memory of the host ---- */

enum status fake_host_map(struct worker *w, const struct msg_host_map *m, uint32_t *id)
{
    struct host *h = calloc(1, sizeof *h);

    h->data = map((int)m->file, m->bytes);
    h->bytes = m->bytes;
    h->beside = m->beside;
    pthread_mutex_lock(&fake.lock);
    h->id = *id = ++w->host_number;
    h->next = w->hosts;
    w->hosts = h;
    fake.hosts++;
    pthread_mutex_unlock(&fake.lock);
    return STATUS_OK;
}

/* Those of that id, of that allocation, or all. */
static bool is_meant(const struct host *h, uint32_t id, uint64_t beside, bool all)
{
    return all || (id && h->id == id) || (beside && h->beside == beside);
}

static void end_hosts(struct worker *w, uint32_t id, uint64_t beside, bool all)
{
    for (struct host **at = &w->hosts; *at;) {
        struct host *h = *at;

        if (!is_meant(h, id, beside, all)) {
            at = &h->next;
            continue;
        }
        *at = h->next;
        munmap(h->data, h->bytes);
        free(h);
        fake.hosts--;
    }
}

void fake_host_unmap(struct worker *w, uint32_t id, uint64_t beside)
{
    pthread_mutex_lock(&fake.lock);
    end_hosts(w, id, beside, false);
    pthread_mutex_unlock(&fake.lock);
}

void fake_hosts_drop(struct worker *w)
{
    end_hosts(w, 0, 0, true);
}

unsigned char *fake_piece(struct worker *w, uint32_t host, uint64_t offset)
{
    struct host *h = w->hosts;

    while (h && h->id != host)
        h = h->next;
    if (host && !h)
        abort(); /* the session copies from or to what it has let go of */
    return host ? h->data + offset : w->staging + offset;
}

/* ---- calls with descriptors, which need no socket here ---- */

enum status worker_mem_alloc_file(struct worker *w, struct msg_mem_alloc_shared *m, int fd, struct msg_mem_alloc_shared_reply *reply,
                                  uint64_t deadline_ns, struct problem *why)
{
    m->file = (uint64_t)fd;
    return worker_mem_alloc_shared(w, m, reply, deadline_ns, why);
}

enum status worker_host_map_file(struct worker *w, struct msg_host_map *m, int fd, struct msg_host_map_reply *reply, uint64_t deadline_ns,
                                 struct problem *why)
{
    m->file = (uint64_t)fd;
    return worker_host_map(w, m, reply, deadline_ns, why);
}

enum status worker_mem_export_file(struct worker *w, struct msg_mem_export *m, int *fd, uint64_t deadline_ns, struct problem *why)
{
    struct msg_mem_export_reply unused;
    enum status                 st = worker_mem_export(w, m, &unused, deadline_ns, why);

    pthread_mutex_lock(&fake.lock);
    for (struct allocation *a = st ? NULL : w->allocations; a; a = a->next)
        if ((uint64_t)(uintptr_t)a->data == m->address)
            *fd = dup(a->fd);
    pthread_mutex_unlock(&fake.lock);
    return st;
}
