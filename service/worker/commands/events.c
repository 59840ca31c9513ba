/* Device events: a pool of them for reuse, and those that batches record, wait for and measure between. */
#include "worker/commands/internal.h"

enum status event_take(struct device_worker *w, struct device_event **out)
{
    if (w->events_count == 0)
        return w->ops->event_create(w->device, out);
    *out = w->events_free[--w->events_count];
    return STATUS_OK;
}

void event_give(struct device_worker *w, struct device_event *e)
{
    if (!e)
        return;
    if (w->events_count < COUNT(w->events_free))
        w->events_free[w->events_count++] = e;
    else
        w->ops->event_destroy(w->device, e);
}

bool event_name_valid(struct event_name n)
{
    return n.place < EVENTS_PER_SESSION_MAX && n.number != 0;
}

bool event_is_recorded(const struct device_worker *w, struct event_name n)
{
    return w->named[n.place].number == n.number;
}

enum status named_event_record(struct device_worker *w, struct device_stream *s, struct event_name n)
{
    struct named_event *e = &w->named[n.place];
    enum status         st = e->event ? STATUS_OK : event_take(w, &e->event);

    if (!st)
        st = w->ops->event_record(w->device, s, e->event);
    e->number = n.number; /* even if that failed: nothing may wait for it for ever */
    return st;
}

enum status named_event_wait(struct device_worker *w, struct device_stream *s, struct event_name n)
{
    return w->named[n.place].event ? w->ops->stream_wait(w->device, s, w->named[n.place].event) : STATUS_OK;
}

enum status named_event_query(struct device_worker *w, struct event_name n, struct problem *why)
{
    const struct named_event *e = &w->named[n.place];

    if (!event_is_recorded(w, n))
        return STATUS_PENDING;
    return e->event ? w->ops->event_query(w->device, e->event, why) : STATUS_OK;
}

enum status named_event_elapsed(struct device_worker *w, struct event_name from, struct event_name to, float *us)
{
    struct device_event *a = w->named[from.place].event, *b = w->named[to.place].event;

    /* Without an event its record failed, which was answered there and is no end of the context. */
    return a && b ? w->ops->event_elapsed(w->device, a, b, us) : STATUS_INVALID_REQUEST;
}
