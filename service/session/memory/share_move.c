/* Copies between a buffer and the memory that clients map for it: the worker has both, so that each byte is copied once. */
#include "base/metrics.h"
#include "base/threads/held.h"
#include "session/memory/share.h"
#include "session/memory/share_internal.h"

struct copy {
    enum share_direction direction;
    uint64_t             offset, bytes;
    struct buffer       *buffer; /* pinned */
    struct share        *memory; /* held */
};

static enum status begin_share_copy(struct worker_session *c, struct span id, struct copy *k, struct problem *why)
{
    enum status st = buffer_pin(c, id, &k->buffer, why);

    assert(held(&c->session->lock));
    if (st)
        return st;
    st = range_check(k->buffer, k->offset, k->bytes, why);
    if (!st && !k->buffer->share)
        st = problem_set(why, STATUS_SHARE_NOT_FOUND, "the buffer's memory is not shared");
    if (st) {
        buffer_unpin(k->buffer);
        return st;
    }
    k->memory = k->buffer->share;
    k->memory->refs++;
    c->session->epoch += k->direction == SHARE_TO_DEVICE;
    return STATUS_OK;
}

/* With session.lock held: what the worker is to unmap. */
static uint32_t end_share_copy(struct worker_session *c, struct copy *k)
{
    assert(held(&c->session->lock));
    c->session->epoch += k->direction == SHARE_TO_DEVICE;
    buffer_unpin(k->buffer);
    return share_unref(k->memory);
}

static enum status copy_bytes(struct worker_session *c, const struct copy *k, struct problem *why)
{
    bool           to_device = k->direction == SHARE_TO_DEVICE;
    uint64_t       address = k->buffer->address + k->offset;
    uint32_t       host = k->memory->host;
    struct shm_ref piece = {k->offset, k->bytes};
    enum status    st;

    if (to_device)
        st = worker_mem_write(c->worker, &(struct msg_mem_write){.host = host, .to = address, .from = piece}, NULL, DEADLINE_NEVER, why);
    else
        st = worker_mem_read(c->worker, &(struct msg_mem_read){.host = host, .from = address, .to = piece}, NULL, DEADLINE_NEVER, why);
    if (!st)
        use_add_bytes(c->session, to_device, k->bytes);
    return st;
}

/* Of the buffer's own memory there is nothing to copy: what was submitted before is to be done. */
static enum status copy_share(struct worker_session *c, const struct copy *k, struct problem *why)
{
    enum status st = worker_session_wait_order(c, why);

    if (st || !k->bytes)
        return st;
    if (k->memory->direct)
        return worker_stream_sync(c->worker, &(struct msg_stream_sync){.all = 1}, NULL, DEADLINE_NEVER, why);
    return copy_bytes(c, k, why);
}

enum status share_move(struct session *s, struct span buffer, enum share_direction direction, uint64_t offset, uint64_t bytes,
                       struct problem *why)
{
    struct copy            k = {.direction = direction, .offset = offset, .bytes = bytes};
    struct worker_session *c;
    uint32_t               host;
    enum status            st = worker_session_enter_to_change(s, &c, why);

    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    st = begin_share_copy(c, buffer, &k, why);
    pthread_mutex_unlock(&s->lock);
    if (!st) {
        st = copy_share(c, &k, why);
        pthread_mutex_lock(&s->lock);
        host = end_share_copy(c, &k);
        pthread_mutex_unlock(&s->lock);
        share_unmap(c, host);
        if (host) /* the share was closed during the copy, so the copy's end frees it */
            reaper_flush(&s->registry->reaper);
    }
    return worker_session_leave_with(c, st, why);
}
