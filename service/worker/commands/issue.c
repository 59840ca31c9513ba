/* Gives one command of a stream to the device, single or from a list. */
#include "worker/commands/internal.h"

/* Any event may report how the context was lost; one that is not done yet surely does, as one does whose record is refused. OK: none knows. */
static enum status how_lost(struct device_worker *w, const struct device_event *own, struct problem *why)
{
    struct device_event *last = own ? (struct device_event *)(uintptr_t)own : w->canary.done;
    enum status          st = STATUS_OK;

    for (unsigned i = 0; i < w->streams_end && !status_is_fatal(st); i++) {
        struct device_event *first = stream_first_event(&w->streams[i]);

        if (first && first != own)
            st = w->ops->event_query(w->device, first, why);
    }
    if (!status_is_fatal(st) && last && !own)
        w->ops->event_record(w->device, NULL, last);
    if (!status_is_fatal(st) && last)
        st = w->ops->event_query(w->device, last, why);
    return status_is_fatal(st) ? st : STATUS_OK;
}

enum status issue_refused(struct device_worker *w, const struct device_event *own, enum status st, const char *what, struct problem *why)
{
    enum status lost = status_is_fatal(st) ? how_lost(w, own, why) : STATUS_OK;

    return lost ? lost : problem_set(why, st, "%s", what);
}

bool issue_blocked(const struct device_worker *w, uint32_t message, const void *body)
{
    return message == MESSAGE_EVENT_WAIT && !event_is_recorded(w, ((const struct msg_event_wait *)body)->event);
}

enum status launch_describe(struct device_worker *w, const struct msg_launch *m, struct device_launch *out, struct problem *why)
{
    *out = (struct device_launch){.module = loaded_module_find(w, m->module),
                                  .kernel = m->kernel,
                                  .grid = {m->grid[0], m->grid[1], m->grid[2]},
                                  .block = {m->block[0], m->block[1], m->block[2]},
                                  .shared_bytes = m->shared_bytes,
                                  .cooperative = m->cooperative != 0,
                                  .params = m->params,
                                  .params_bytes = m->params_bytes,
                                  .deadline_ms = m->timeout_ms};
    return out->module ? STATUS_OK : problem_set(why, STATUS_INVALID_REQUEST, "the launch names no loaded module");
}

static enum status issue_launch(struct device_worker *w, struct stream *s, const struct msg_launch *m, const struct issue_events *events,
                                struct problem *why)
{
    struct device_launch l;
    enum status          st = launch_describe(w, m, &l, why);

    l.before = events->before;
    l.after = events->after;
    l.mark = events->mark;
    if (!st && (st = w->ops->launch(w->device, s->handle, &l, why)) != STATUS_OK && why->status != st)
        st = issue_refused(w, events->after, st, "the launch could not be watched", why);
    return st;
}

/* The piece was checked when the command came, and has not changed since. */
static enum status issue_copy(struct device_worker *w, struct stream *s, uint32_t message, const union message_body *b)
{
    unsigned char *at;
    enum status    st;

    if (message == MESSAGE_MEM_WRITE) {
        st = piece_find(w, b->mem_write.host, b->mem_write.from, &at);
        return st ? st : w->ops->mem_write(w->device, s->handle, b->mem_write.to, at, b->mem_write.from.bytes);
    }
    st = piece_find(w, b->mem_read.host, b->mem_read.to, &at);
    return st ? st : w->ops->mem_read(w->device, s->handle, at, b->mem_read.from, b->mem_read.to.bytes);
}

static enum status issue_other(struct device_worker *w, struct stream *s, uint32_t message, const void *body)
{
    const union message_body *b = body; /* only the member of that message is there */

    if (message == MESSAGE_MEM_WRITE || message == MESSAGE_MEM_READ)
        return issue_copy(w, s, message, b);
    if (message == MESSAGE_MEM_COPY)
        return w->ops->mem_copy(w->device, s->handle, b->mem_copy.to, b->mem_copy.from, b->mem_copy.bytes);
    if (message == MESSAGE_MEM_FILL)
        return w->ops->mem_fill(w->device, s->handle, b->mem_fill.to, b->mem_fill.pattern, b->mem_fill.pattern_bytes, b->mem_fill.count);
    if (message == MESSAGE_EVENT_RECORD)
        return named_event_record(w, s->handle, b->event_record.event);
    return message == MESSAGE_EVENT_WAIT ? named_event_wait(w, s->handle, b->event_wait.event) : STATUS_INTERNAL;
}

enum status issue_command(struct device_worker *w, struct stream *s, uint32_t message, const void *body, const struct issue_events *events,
                          struct problem *why)
{
    enum status st;

    if (message == MESSAGE_LAUNCH)
        st = issue_launch(w, s, body, events, why);
    else if ((st = issue_other(w, s, message, body)) != STATUS_OK)
        st = issue_refused(w, events->after, st, "the device refused the operation", why);
    if (st || !events->after || message == MESSAGE_LAUNCH)
        return st;
    st = w->ops->event_record(w->device, s->handle, events->after);
    if (!st)
        return st;
    /* It runs and its end would not be seen: the context is lost, too. */
    return issue_refused(w, events->after, status_is_fatal(st) ? st : STATUS_DEVICE_ERROR, "the device recorded no event", why);
}
