/* Calls with a descriptor of memory, which travels over a socket of its own. A descriptor whose call failed is dropped by the other side
 * at the next exchange: numbers ascend. */
#include <unistd.h>

#include "base/files/descriptor.h"
#include "pool/bounds.h"
#include "pool/workers/worker_internal.h"

static enum status shares_nothing(struct problem *why)
{
    return problem_set(why, STATUS_INVALID_FIELD, "workers of this service do not share memory");
}

/* On success share_lock is held: the caller unlocks after the call that names the descriptor. */
static enum status exchange_begin(struct worker *w, uint64_t *number, struct problem *why)
{
    if (w->share_fd < 0)
        return shares_nothing(why);
    pthread_mutex_lock(&w->share_lock);
    *number = ++w->share_number;
    return STATUS_OK;
}

/* The same with a descriptor for the worker. A worker that takes none fills its own socket and harms only itself. */
static enum status lend_begin(struct worker *w, int fd, uint64_t *number, struct problem *why)
{
    enum status st = exchange_begin(w, number, why);

    if (st || descriptor_send(w->share_fd, number, sizeof *number, fd) == (ssize_t)sizeof *number)
        return st;
    pthread_mutex_unlock(&w->share_lock);
    return problem_set(why, STATUS_OVERLOADED, "the worker does not accept file descriptors");
}

enum status worker_mem_alloc_file(struct worker *w, struct msg_mem_alloc_shared *m, int fd, struct msg_mem_alloc_shared_reply *reply,
                                  uint64_t deadline_ns, struct problem *why)
{
    enum status st = lend_begin(w, fd, &m->file, why);

    if (st)
        return st;
    st = worker_mem_alloc_shared(w, m, reply, deadline_ns, why);
    pthread_mutex_unlock(&w->share_lock);
    return st;
}

enum status worker_host_map_file(struct worker *w, struct msg_host_map *m, int fd, struct msg_host_map_reply *reply, uint64_t deadline_ns,
                                 struct problem *why)
{
    enum status st = lend_begin(w, fd, &m->file, why);

    if (st)
        return st;
    st = worker_host_map(w, m, reply, deadline_ns, why);
    pthread_mutex_unlock(&w->share_lock);
    return st;
}

/* Under share_lock. Other descriptors that the worker sent are closed unseen. -1: none came under that number. */
static int take_descriptor(struct worker *w, uint64_t number)
{
    int right = -1;

    for (unsigned i = 0; i < SHARE_MESSAGES_MAX; i++) {
        uint64_t got = 0;
        int      fd;
        ssize_t  n = descriptor_receive(w->share_fd, &got, sizeof got, &fd);

        if (n <= 0)
            break;
        if (n == (ssize_t)sizeof got && got == number && right < 0)
            right = fd;
        else if (fd >= 0)
            close(fd);
    }
    return right;
}

enum status worker_mem_export_file(struct worker *w, struct msg_mem_export *m, int *fd, uint64_t deadline_ns, struct problem *why)
{
    enum status st = exchange_begin(w, &m->file, why);

    if (st)
        return st;
    st = worker_mem_export(w, m, NULL, deadline_ns, why);
    if (!st) {
        *fd = take_descriptor(w, m->file);
        st = *fd >= 0 ? STATUS_OK : problem_set(why, STATUS_OVERLOADED, "the worker sent no file descriptor");
    }
    pthread_mutex_unlock(&w->share_lock);
    return st;
}
