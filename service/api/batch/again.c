/* Makes a run's batch once more, on another hidden session, from the body that it came with. */
#include "api/batch/again.h"
#include "api/bounds.h"

#include <pthread.h>

#include "api/batch/frame.h"

/* Somebody who may wait, where segments find no staging memory. */
struct feeder {
    struct waker    waker; /* first: wake() finds the feeder by it */
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    bool            woken;
};

static void wake(struct waker *w)
{
    struct feeder *f = (struct feeder *)w;

    pthread_mutex_lock(&f->lock);
    f->woken = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void await_wake(struct feeder *f)
{
    pthread_mutex_lock(&f->lock);
    while (!f->woken)
        pthread_cond_wait(&f->changed, &f->lock);
    f->woken = false;
    pthread_mutex_unlock(&f->lock);
}

static enum status write_all(struct batch *b, unsigned segment, struct span data, struct feeder *f, struct problem *why)
{
    enum status st = STATUS_OK;

    while (data.bytes && !st) {
        size_t consumed = 0;
        st = batch_write(b, segment, data, &consumed, &f->waker, why);
        data = span_from(data, consumed);
        if (st == STATUS_PENDING) {
            await_wake(f);
            st = STATUS_OK;
        }
    }
    return st;
}

static enum status feed_inline_json(struct batch_work *w, struct feeder *f, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < w->message.spec.segments_count && !st; i++)
        st = write_all(w->batch, i, w->message.segments[i].data, f, why);
    return st;
}

/* The frame was checked when it came. */
static enum status feed_framed(struct batch_work *w, struct feeder *f, struct problem *why)
{
    const struct batch_spec *spec = &w->message.spec;
    struct span              rest = span_from(buf_span(&w->body), BATCH_HEAD_BYTES + (size_t)w->json_bytes);
    struct batch_position    position = {0};
    enum status              st = STATUS_OK;

    while (rest.bytes && !st) {
        bool   data;
        size_t n = batch_next(&position, spec->segments, spec->segments_count, rest.bytes, &data);
        if (n == 0)
            return problem_set(why, STATUS_INTERNAL, "the batch's body was not checked");
        if (data)
            st = write_all(w->batch, position.segment, span_first(rest, n), f, why);
        batch_took(&position, data, n);
        rest = span_from(rest, n);
    }
    return st;
}

static enum status feed(struct batch_work *w, struct problem *why)
{
    struct feeder f = {.waker = {.wake = wake}, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    enum status   st = w->inline_json ? feed_inline_json(w, &f, why) : feed_framed(w, &f, why);

    if (st) /* it may have registered the waker, and goes no further */
        batch_work_unmake(w);
    pthread_cond_destroy(&f.changed);
    pthread_mutex_destroy(&f.lock);
    return st;
}

static bool has_body(const struct batch_work *w)
{
    return w->inline_json || w->message.spec.segments_count == 0 || w->body.bytes;
}

/* Before it begins, a run meets faults of others only. */
static bool ends_session(enum status st)
{
    static const enum status all[] = {STATUS_SESSION_FAULTED, STATUS_SESSION_BUSY,      STATUS_SESSION_NOT_FOUND, STATUS_WORKER_LOST,
                                      STATUS_KERNEL_FAULT,    STATUS_EXECUTION_TIMEOUT, STATUS_DEVICE_ERROR};

    for (size_t i = 0; i < COUNT(all); i++)
        if (st == all[i])
            return true;
    return false;
}

bool batch_work_lost(const struct batch_work *w, enum status st)
{
    return w->hidden && ends_session(st) && !(w->batch && batch_begun(w->batch));
}

enum status batch_work_verdict(const struct batch_work *w, enum status st, struct problem *why)
{
    if (!batch_work_lost(w, st))
        return st;
    *why = (struct problem){0};
    return problem_set(why, STATUS_SESSION_BUSY,
                       "the implicit session of this run was lost before the run started; send the request again");
}

static enum status run(struct batch_work *w, struct problem *why)
{
    batch_watch(w->batch, w->unwanted, w->unwanted_context, w->place.taken);
    return batch_run(w->batch, &w->arena, why);
}

static bool is_unwanted(const struct batch_work *w)
{
    return w->unwanted && w->unwanted(w->unwanted_context);
}

enum status batch_work_run(struct batch_work *w, struct problem *why)
{
    enum status st = run(w, why);

    for (unsigned i = 0; i < RUN_TRIES_MAX && batch_work_lost(w, st) && has_body(w) && !is_unwanted(w); i++) {
        batch_work_unmake(w);
        *why = (struct problem){0};
        st = batch_work_prepare(w, why);
        if (!st)
            st = feed(w, why);
        if (!st)
            st = run(w, why);
    }
    return batch_work_verdict(w, st, why);
}
