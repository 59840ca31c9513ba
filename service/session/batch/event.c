/* What batches do with streams and events. Events have places, which are taken as a batch records, and free again when it is done. */
#include "session/batch/batch_internal.h"

#include "base/threads/held.h"

enum { BITS = 64 };

static_assert(EVENTS_PER_SESSION_MAX % BITS == 0, "places are counted by words");

/* With session.lock held. False: all are taken. */
static bool find_free(const struct worker_session *c, uint32_t *place)
{
    assert(held(&c->session->lock));
    for (uint32_t i = 0; i < COUNT(c->events_taken); i++)
        if (~c->events_taken[i]) {
            *place = i * BITS + (uint32_t)__builtin_ctzll(~c->events_taken[i]);
            return true;
        }
    return false;
}

void device_events_give(struct worker_session *c, const struct batch_event *events, unsigned count)
{
    struct session *s = c->session;

    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < count; i++)
        c->events_taken[events[i].id.place / BITS] &= ~(1ull << events[i].id.place % BITS);
    pthread_mutex_unlock(&s->lock);
}

/* ---- operations ---- */

/* The last record of that name. */
static struct batch_event *event_find(struct batch *b, struct span name)
{
    for (unsigned i = b->events_count; i-- > 0;)
        if (span_equal(b->events[i].name, name))
            return &b->events[i];
    return NULL;
}

static enum status no_event(const char *pointer, struct problem *why)
{
    return problem_field(why, STATUS_INVALID_FIELD, pointer, "not_found", "no earlier operation records an event with this name");
}

static enum status add_event(struct batch *b, struct span name, uint32_t stream, struct event_name *id, struct problem *why)
{
    struct worker_session *c = b->worker_session;
    uint32_t               place = 0;
    bool                   found;

    pthread_mutex_lock(&c->session->lock);
    found = find_free(c, &place);
    if (found) {
        c->events_taken[place / BITS] |= 1ull << place % BITS;
        c->event_number += c->event_number == UINT32_MAX ? 2 : 1;
        *id = (struct event_name){place, c->event_number};
    }
    pthread_mutex_unlock(&c->session->lock);
    if (!found)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "events", EVENTS_PER_SESSION_MAX, EVENTS_PER_SESSION_MAX, 1);
    b->events[b->events_count++] = (struct batch_event){name, stream, *id};
    return STATUS_OK;
}

enum status batch_run_record(struct batch *b, unsigned i, struct problem *why)
{
    const struct batch_op *op = &b->spec->ops[i];
    struct batch_item      item = {.op = i, .message = MESSAGE_EVENT_RECORD};
    uint32_t               stream;
    enum status            st = stream_number(b->worker_session, op->stream, &stream, why);

    if (st)
        return batch_noted(b->worker_session, st, why);
    st = add_event(b, op->to, stream, &item.event, why);
    return st ? st : command_batch_add(b, stream, &item, why);
}

/* Alone, so that what stands behind it begins when it is over: until then other work may run for as long as it likes. */
static enum status add_wait(struct batch *b, uint32_t stream, const struct batch_item *item, struct problem *why)
{
    enum status st = command_batch_send(b, why);

    if (!st)
        st = command_batch_add(b, stream, item, why);
    return st ? st : command_batch_send(b, why);
}

/* The device waits, not we. */
enum status batch_run_wait(struct batch *b, unsigned i, struct problem *why)
{
    const struct batch_op    *op = &b->spec->ops[i];
    const struct batch_event *e = event_find(b, op->to);
    struct batch_item         item = {.op = i, .message = MESSAGE_EVENT_WAIT};
    uint32_t                  stream;
    enum status               st;

    if (!e)
        return no_event("/event", why);
    st = stream_number(b->worker_session, op->stream, &stream, why);
    if (st)
        return batch_noted(b->worker_session, st, why);
    item.event = e->id;
    return stream == e->stream ? STATUS_OK : add_wait(b, stream, &item, why);
}

/* The worker answers when both events are done; nothing else waits for that. */
enum status batch_run_elapsed(struct batch *b, unsigned i, struct problem *why)
{
    const struct batch_op    *op = &b->spec->ops[i];
    const struct batch_event *from = event_find(b, op->from);
    const struct batch_event *to = event_find(b, op->to);
    struct batch_order        o;
    enum status               st;

    if (!from || !to)
        return no_event(from ? "/to" : "/from", why);
    batch_order_init(&o, i, MESSAGE_EVENT_ELAPSED);
    o.body.event_elapsed = (struct msg_event_elapsed){from->id, to->id};
    st = command_batch_send(b, why);
    return st ? st : batch_submit(b, &o, NULL, why);
}

enum status batch_run_sync(struct batch *b, unsigned i, struct problem *why)
{
    const struct batch_op *op = &b->spec->ops[i];
    struct batch_order     o;
    enum status            st = command_batch_send(b, why);

    batch_order_init(&o, i, MESSAGE_STREAM_SYNC);
    o.body.stream_sync.all = !op->has_stream;
    if (!st)
        st = stream_number(b->worker_session, op->stream, &o.body.stream_sync.stream, why);

    if (st)
        return batch_noted(b->worker_session, st, why);
    st = batch_submit(b, &o, NULL, why);
    return st || b->preparing ? st : batch_reap_until(b, b->submitted, why);
}
