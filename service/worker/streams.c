/* Work on streams: issues it to the device in order, and answers it in order as it gets done.
 *
 * Copies and fills go to the device up to a window; a launch goes alone, and nothing behind it until it is done: so everything that
 * waits can still be cancelled, and a deadline counts the one launch that runs. */
#include "base/deadline.h"
#include "worker/internal.h"

static enum status event_take(struct device_worker *w, struct device_event **out)
{
    if (w->events_count == 0)
        return w->ops->event_create(w->device, out);
    *out = w->events_free[--w->events_count];
    return STATUS_OK;
}

static void event_give(struct device_worker *w, struct device_event *e)
{
    if (!e)
        return;
    if (w->events_count < COUNT(w->events_free))
        w->events_free[w->events_count++] = e;
    else
        w->ops->event_destroy(w->device, e);
}

struct stream *stream_find(struct device_worker *w, uint32_t id)
{
    uint32_t slot = id & 0xffff;

    if (slot >= w->streams_end || !w->streams[slot].used || w->streams[slot].generation != id >> 16)
        return NULL;
    return &w->streams[slot];
}

/* ---- issue ---- */

/* Any event may tell how the context was lost, one that is not done yet surely does. OK: none knows. */
static enum status how_lost(struct device_worker *w, const struct work *k, struct problem *why)
{
    struct device_event *any = k->after ? k->after : w->canary.done;
    enum status          st = STATUS_OK;

    for (unsigned i = 0; i < w->streams_end && !status_is_fatal(st); i++) {
        const struct work *first = w->streams[i].queue.first;

        if (first && first != k && first->issued && !first->refused)
            st = w->ops->event_query(w->device, first->after, why);
    }
    if (!status_is_fatal(st) && any)
        st = w->ops->event_query(w->device, any, why);
    return status_is_fatal(st) ? st : STATUS_OK;
}

/* Recording and copying give no more than a status. */
static enum status refused(struct device_worker *w, struct work *k, enum status st, const char *what)
{
    enum status lost = status_is_fatal(st) ? how_lost(w, k, &k->why) : STATUS_OK;

    return lost ? lost : problem_set(&k->why, st, "%s", what);
}

/* Before anything is issued: what runs must be seen to end. */
static enum status take_events(struct device_worker *w, struct work *k)
{
    enum status st = event_take(w, &k->after);

    if (!st && k->command.message == MESSAGE_LAUNCH)
        st = event_take(w, &k->before);
    return st ? refused(w, k, st, "the device made no event") : STATUS_OK;
}

static enum status issue_launch(struct device_worker *w, struct stream *s, struct work *k)
{
    const struct msg_launch *m = &k->command.body.launch;
    struct device_launch     l = {.module = loaded_module_find(w, m->module),
                                  .kernel = m->kernel,
                                  .grid = {m->grid[0], m->grid[1], m->grid[2]},
                                  .block = {m->block[0], m->block[1], m->block[2]},
                                  .shared_bytes = m->shared_bytes,
                                  .params = m->params,
                                  .params_bytes = m->params_bytes,
                                  .deadline_ms = m->timeout_ms};
    enum status              st;

    if (!l.module)
        return problem_set(&k->why, STATUS_INVALID_REQUEST, "the launch names no loaded module");
    st = w->ops->event_record(w->device, s->handle, k->before);
    if (st)
        return refused(w, k, st, "the launch could not be timed");
    return w->ops->launch(w->device, s->handle, &l, &k->why);
}

/* Offsets were checked when the command came; staging does not move. */
static enum status issue_copy(struct device_worker *w, struct stream *s, struct work *k)
{
    const union message_body *b = &k->command.body;
    enum status               st = STATUS_INTERNAL;

    if (k->command.message == MESSAGE_MEM_WRITE)
        st = w->ops->mem_write(w->device, s->handle, b->mem_write.to, w->shm.staging + b->mem_write.from.offset, b->mem_write.from.bytes);
    else if (k->command.message == MESSAGE_MEM_READ)
        st = w->ops->mem_read(w->device, s->handle, w->shm.staging + b->mem_read.to.offset, b->mem_read.from, b->mem_read.to.bytes);
    else if (k->command.message == MESSAGE_MEM_COPY)
        st = w->ops->mem_copy(w->device, s->handle, b->mem_copy.to, b->mem_copy.from, b->mem_copy.bytes);
    else if (k->command.message == MESSAGE_MEM_FILL)
        st = w->ops->mem_fill(w->device, s->handle, b->mem_fill.to, b->mem_fill.pattern, b->mem_fill.pattern_bytes, b->mem_fill.count);
    return st ? refused(w, k, st, "the device refused the copy") : STATUS_OK;
}

static enum status issue(struct device_worker *w, struct stream *s, struct work *k)
{
    enum status st = take_events(w, k);

    if (!st)
        st = k->command.message == MESSAGE_LAUNCH ? issue_launch(w, s, k) : issue_copy(w, s, k);
    if (st)
        return st;
    st = w->ops->event_record(w->device, s->handle, k->after);
    /* It runs and nobody would see it end: that is the context's end too. */
    return st ? refused(w, k, status_is_fatal(st) ? st : STATUS_DEVICE_ERROR, "the device recorded no event") : STATUS_OK;
}

static bool may_issue(const struct stream *s)
{
    if (!s->waiting || s->launching)
        return false;
    return s->issued < COPIES_IN_FLIGHT_MAX;
}

static void issue_next(struct device_worker *w, struct stream *s)
{
    struct work *k = s->waiting;

    s->waiting = k->next;
    k->issued = true;
    k->started_ns = now_ns();
    s->issued++;
    k->refused = issue(w, s, k);
    if (k->refused)
        return;
    s->launching = k->command.message == MESSAGE_LAUNCH;
    if (s->launching)
        work_started(w, k);
}

static bool issue_some(struct device_worker *w, struct stream *s)
{
    bool any = false;

    for (; !w->lost && may_issue(s); any = true)
        issue_next(w, s);
    return any;
}

void stream_push(struct device_worker *w, struct stream *s, struct work *k)
{
    queue_push(&s->queue, k);
    if (!s->waiting)
        s->waiting = k;
    issue_some(w, s);
}

/* ---- reap ---- */

static bool overdue(const struct work *k)
{
    uint64_t limit_ns = k->command.body.launch.timeout_ms * NS_PER_MS; /* bounded when it was accepted */

    return k->command.message == MESSAGE_LAUNCH && now_ns() - k->started_ns > limit_ns;
}

static enum status query(struct device_worker *w, struct work *k, struct problem *why)
{
    enum status st;

    if (k->refused) {
        *why = k->why;
        why->status = k->refused;
        return k->refused;
    }
    st = w->ops->event_query(w->device, k->after, why);
    if (st != STATUS_PENDING || !overdue(k))
        return st;
    if (w->ops->cancel)
        w->ops->cancel(w->device);
    return problem_set(why, STATUS_EXECUTION_TIMEOUT, "the kernel ran longer than its timeout of %llu ms",
                       (unsigned long long)k->command.body.launch.timeout_ms);
}

static void launch_reply(struct device_worker *w, const struct stream *s, const struct work *k, struct msg_launch_reply *r)
{
    if (w->ops->event_elapsed(w->device, k->before, k->after, &r->gpu_us))
        r->gpu_us = 0;
    r->output_bytes = output_keep(w, s->handle, k->command.body.launch.tag);
}

/* Answers the oldest one when it is done. */
static bool reap_first(struct device_worker *w, struct stream *s)
{
    struct completion done = {0};
    struct problem    why = {0};
    struct work      *k = s->queue.first;
    enum status       st;

    if (!k || !k->issued || (st = query(w, k, &why)) == STATUS_PENDING)
        return false;
    if (status_is_fatal(st)) {
        why.status = st;
        worker_lose(w, &why);
        return true;
    }
    queue_pop(&s->queue);
    s->issued--;
    if (k->command.message == MESSAGE_LAUNCH && !k->refused)
        s->launching = false; /* a refused one ran nothing: another may run behind it */
    if (k->command.message == MESSAGE_LAUNCH && !st)
        launch_reply(w, s, k, &done.reply.launch);
    event_give(w, k->before);
    event_give(w, k->after);
    work_answer(w, k, st, &done, &why);
    return true;
}

bool streams_advance(struct device_worker *w)
{
    bool moved = false;

    for (unsigned i = 0; i < w->streams_end; i++) {
        struct stream *s = &w->streams[i];

        while (!w->lost && reap_first(w, s))
            moved = true;
        moved = issue_some(w, s) || moved;
    }
    return moved;
}

bool streams_in_flight(const struct device_worker *w)
{
    for (unsigned i = 0; i < w->streams_end; i++)
        if (w->streams[i].issued > 0)
            return true;
    return false;
}

bool streams_passed(const struct device_worker *w, const struct stream *s, uint64_t sequence)
{
    if (s)
        return !s->queue.first || s->queue.first->sequence > sequence;
    for (unsigned i = 0; i < w->streams_end; i++)
        if (w->streams[i].queue.first && w->streams[i].queue.first->sequence < sequence)
            return false;
    return true;
}

/* ---- taking out ---- */

/* `before` is the work ahead of k, NULL when k is the first. */
static void unlink_work(struct stream *s, struct work *before, struct work *k)
{
    if (s->waiting == k)
        s->waiting = k->next;
    if (before)
        before->next = k->next;
    else
        s->queue.first = k->next;
    if (s->queue.last == k)
        s->queue.last = before;
    k->next = NULL;
}

struct work *streams_withdraw(struct device_worker *w, uint64_t tag)
{
    for (unsigned i = 0; i < w->streams_end; i++) {
        struct work *before = NULL;

        for (struct work *k = w->streams[i].queue.first; k; before = k, k = k->next) {
            if (k->command.message != MESSAGE_LAUNCH || k->command.body.launch.tag != tag)
                continue;
            if (k->issued)
                return NULL;
            unlink_work(&w->streams[i], before, k);
            return k;
        }
    }
    return NULL;
}

struct work *streams_pop_any(struct device_worker *w)
{
    for (unsigned i = 0; i < w->streams_end; i++) {
        struct stream *s = &w->streams[i];

        s->waiting = NULL;
        s->issued = 0;
        if (s->queue.first)
            return queue_pop(&s->queue);
    }
    return NULL;
}
