/* Writes and reads of buffers, synchronous and asynchronous, over one or several connections. */
#include <stdio.h>
#include <stdlib.h>

#include "batch/batch.h"
#include "session/op.h"

/* Exactly one of src and dst is set. cancel may be NULL. */
struct transfer {
    const struct buffer_entry *buffer;
    size_t                     offset, bytes;
    const char                *src;
    char                      *dst;
    struct cancel             *cancel;
};

/* ---- one connection's part ---- */

struct shared;

struct part {
    struct shared *shared;
    size_t         offset, bytes; /* in the transfer */
    struct cancel  cancel;
    pthread_t      thread;
    bool           has_thread;
    gpurest_status status;
    struct failure failure;
};

struct shared {
    gpurest_session       *session;
    const struct transfer *transfer;
    struct progress        progress;
    struct part            parts[BULK_CONNECTIONS_MAX];
    int                    count;
};

static gpurest_status transfer_range(struct shared *h, size_t offset, size_t bytes, struct cancel *cancel)
{
    const struct transfer *t = h->transfer;
    unsigned long long     from = t->offset + offset, to = from + bytes - 1;
    struct path            path = session_path(h->session, "/buffers/%s/data", t->buffer->name);
    struct piece           body = {t->src ? t->src + offset : NULL, bytes};
    struct exchange        x;
    char                   range[96];
    gpurest_status         st;

    exchange_init(&x, t->src ? "PUT" : "GET", path.text);
    if (t->src) {
        snprintf(range, sizeof range, "Content-Range: bytes %llu-%llu/*\r\n", from, to);
        x.content_type = "application/octet-stream";
        x.upload = &body;
        x.upload_count = 1;
        x.sending = &h->progress;
    } else {
        snprintf(range, sizeof range, "Range: bytes=%llu-%llu\r\n", from, to);
        x.into = t->dst + offset;
        x.into_bytes = bytes;
        x.receiving = &h->progress;
    }
    x.headers = range;
    x.cancel = cancel;
    st = session_perform(h->session, &x);
    exchange_finish(&x);
    return st;
}

/* ---- several connections ---- */

static void cancel_parts(void *arg)
{
    struct shared *h = arg;

    for (int i = 0; i < h->count; i++)
        cancel_ask(&h->parts[i].cancel);
}

/* The first failure cancels the others. */
static void transfer_part(struct part *p)
{
    p->status = transfer_range(p->shared, p->offset, p->bytes, &p->cancel);
    if (!p->status)
        return;
    failure_copy(&p->failure, failure_last());
    cancel_parts(p->shared);
}

static void *part_thread(void *argument)
{
    transfer_part(argument);
    return NULL;
}

static void set_parts(struct shared *h)
{
    size_t each = h->transfer->bytes / (size_t)h->count, at = 0;

    for (int i = 0; i < h->count; i++) {
        struct part *p = &h->parts[i];
        p->shared = h;
        p->offset = at;
        p->bytes = i == h->count - 1 ? h->transfer->bytes - at : each;
        at += p->bytes;
        cancel_init(&p->cancel);
        failure_init(&p->failure);
    }
}

/* Prefers the failure that cancelled the others. */
static gpurest_status first_failure(const struct shared *h)
{
    const struct part *worst = NULL;

    for (int i = 0; i < h->count; i++)
        if (h->parts[i].status && (!worst || worst->status == GPUREST_E_CANCELLED))
            worst = &h->parts[i];
    return worst ? failure_raise(&worst->failure) : GPUREST_OK;
}

/* This thread also transfers the parts that get no thread. */
static gpurest_status transfer_parts(struct shared *h)
{
    gpurest_status st;

    set_parts(h);
    if (cancel_enter(h->transfer->cancel, cancel_parts, h)) {
        for (int i = 1; i < h->count; i++)
            h->parts[i].has_thread = thread_make(&h->parts[i].thread, part_thread, &h->parts[i]);
        for (int i = 0; i < h->count; i++)
            if (!h->parts[i].has_thread)
                transfer_part(&h->parts[i]);
        for (int i = 1; i < h->count; i++)
            if (h->parts[i].has_thread)
                pthread_join(h->parts[i].thread, NULL);
        cancel_leave(h->transfer->cancel);
        st = first_failure(h);
    } else {
        st = fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled");
    }
    for (int i = 0; i < h->count; i++) {
        cancel_finish(&h->parts[i].cancel);
        failure_finish(&h->parts[i].failure);
    }
    return st;
}

static gpurest_status transfer_run(gpurest_session *s, const struct transfer *t)
{
    struct shared *h;
    gpurest_status st;

    if (t->bytes == 0)
        return GPUREST_OK;
    h = calloc(1, sizeof *h);
    if (!h)
        return fail_memory();
    h->session = s;
    h->transfer = t;
    client_progress(s->client, &h->progress, t->bytes);
    h->count = t->bytes < BULK_BYTES_MIN ? 1 : s->client->bulk_connections;
    while (h->count > 1 && t->bytes / (size_t)h->count < PIECE_BYTES_MIN)
        h->count--;
    st = h->count > 1 ? transfer_parts(h) : transfer_range(h, 0, t->bytes, t->cancel);
    progress_finish(&h->progress);
    free(h);
    return st;
}

/* ---- public functions ---- */

gpurest_status gpurest_write(gpurest_session *s, gpurest_buffer buffer, size_t offset, const void *src, size_t bytes)
{
    struct buffer_entry e;
    gpurest_status      st = session_check(s);
    gpurest_batch      *b = st ? NULL : session_batch(s);

    if (!st && !src && bytes)
        st = fail_invalid("src is NULL");
    if (!st)
        st = session_range(s, buffer, b, offset, bytes, &e);
    if (st || b)
        return st ? st : batch_write(b, &e, offset, src, bytes);
    lane_drain(s);
    return transfer_run(s, &(struct transfer){.buffer = &e, .offset = offset, .bytes = bytes, .src = src});
}

gpurest_status gpurest_read(gpurest_session *s, gpurest_buffer buffer, size_t offset, void *dst, size_t bytes)
{
    struct buffer_entry e;
    gpurest_status      st = session_check(s);
    gpurest_batch      *b = st ? NULL : session_batch(s);

    if (!st && !dst && bytes)
        st = fail_invalid("dst is NULL");
    if (!st)
        st = session_range(s, buffer, b, offset, bytes, &e);
    if (st || b)
        return st ? st : batch_read(b, &e, offset, dst, bytes);
    lane_drain(s);
    return transfer_run(s, &(struct transfer){.buffer = &e, .offset = offset, .bytes = bytes, .dst = dst});
}

/* ---- asynchronous ---- */

struct transfer_work {
    struct transfer     transfer;
    struct buffer_entry buffer;
};

static gpurest_status transfer_work_perform(gpurest_op *op, void *work, bool *followed)
{
    struct transfer_work *w = work;

    (void)followed;
    w->transfer.buffer = &w->buffer;
    w->transfer.cancel = &op->pending.cancel;
    return transfer_run(op->session, &w->transfer);
}

static const struct op_work transfer_kind = {.perform = transfer_work_perform, .release = free};

static gpurest_status begin_transfer(gpurest_session *s, gpurest_buffer buffer, const struct transfer *t, gpurest_op **out)
{
    struct transfer_work *w;
    struct buffer_entry   e;
    gpurest_status        st = session_check(s);

    if (!st && (!out || (t->bytes && !t->src && !t->dst)))
        st = fail_invalid("out, src or dst is NULL");
    if (!st)
        st = session_range(s, buffer, NULL, t->offset, t->bytes, &e);
    if (st)
        return st;
    w = malloc(sizeof *w);
    if (!w)
        return fail_memory();
    *w = (struct transfer_work){.transfer = *t, .buffer = e};
    return op_begin(s, &transfer_kind, w, out);
}

gpurest_status gpurest_write_async(gpurest_session *s, gpurest_buffer buffer, size_t offset, const void *src, size_t bytes,
                                   gpurest_op **out)
{
    return begin_transfer(s, buffer, &(struct transfer){.offset = offset, .bytes = bytes, .src = src}, out);
}

gpurest_status gpurest_read_async(gpurest_session *s, gpurest_buffer buffer, size_t offset, void *dst, size_t bytes, gpurest_op **out)
{
    return begin_transfer(s, buffer, &(struct transfer){.offset = offset, .bytes = bytes, .dst = dst}, out);
}
