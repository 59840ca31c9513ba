/* The ring of a session's events, and its followers. */
#include "session/events/events.h"
#include "base/threads/held.h"
#include "session/bounds.h"

#include <stdlib.h>

#include "session/life/internal.h"

/* ---- the ring; with session.lock held ---- */

static struct kept_event *at(const struct event_ring *ring, uint64_t id)
{
    return &ring->items[id % EVENTS_KEPT_MAX];
}

static void drop_oldest(struct event_ring *ring)
{
    struct kept_event *e = at(ring, ring->oldest++);

    assert(ring->text_bytes >= e->text_bytes);
    ring->text_bytes -= e->text_bytes;
    free(e->text);
    *e = (struct kept_event){0};
}

void event_ring_finish(struct event_ring *ring)
{
    while (ring->items && ring->oldest <= ring->newest)
        drop_oldest(ring);
    free(ring->items);
    *ring = (struct event_ring){0};
}

/* No session has a million events each second for long, and the number is a whole one in JSON. */
void event_ring_go_on(struct event_ring *ring)
{
    assert(!ring->items && !ring->newest);
    ring->newest = wall_ns() / 1000;
    ring->oldest = ring->newest + 1;
}

/* Room for one more; NULL without memory. It counts once the watchers are woken. */
static struct kept_event *push(struct event_ring *ring)
{
    if (!ring->items) {
        ring->items = calloc(EVENTS_KEPT_MAX, sizeof *ring->items);
        ring->oldest = ring->newest + 1;
    }
    ring->newest++;
    if (!ring->items) {
        ring->oldest = ring->newest + 1;
        return NULL;
    }
    if (ring->newest - ring->oldest == EVENTS_KEPT_MAX)
        drop_oldest(ring);
    return at(ring, ring->newest);
}

/* Gives the newest event as much of the text as fits. The oldest events are dropped to make space. */
static void keep_text(struct event_ring *ring, struct kept_event *e, struct span text)
{
    e->event.truncated = e->event.truncated || text.bytes > EVENT_TEXT_BYTES_MAX;
    text = span_first(text, EVENT_TEXT_BYTES_MAX);
    while (ring->text_bytes + text.bytes > EVENT_TEXTS_BYTES_MAX && ring->oldest < ring->newest)
        drop_oldest(ring);
    e->text = text.bytes ? malloc(text.bytes) : NULL;
    if (!e->text) {
        e->event.truncated = e->event.truncated || text.bytes;
        return;
    }
    memcpy(e->text, text.data, text.bytes);
    e->text_bytes = text.bytes;
    ring->text_bytes += text.bytes;
}

void events_publish(struct session *s, const struct event *what, struct span text)
{
    struct kept_event *e = push(&s->events);

    assert(held(&s->lock));
    if (e) {
        *e = (struct kept_event){.event = *what};
        e->event.id = s->events.newest;
        e->event.wall_ns = what->wall_ns ? what->wall_ns : wall_ns();
        keep_text(&s->events, e, text);
    }
    waitlist_wake(&s->events.watchers);
}

void events_publish_session(struct session *s)
{
    struct event e = {.type = EVENT_SESSION_STATE,
                      .state.session = session_state_shown(s),
                      .generation = s->generation,
                      .status = s->state == SESSION_FAULTED ? s->fault.status : STATUS_OK};

    events_publish(s, &e, (struct span){0});
}

void events_publish_device(struct session *s, enum device_state state, enum recovery_step step)
{
    events_publish(s, &(struct event){.type = EVENT_DEVICE_HEALTH, .state.device = state, .step = step}, (struct span){0});
}

void events_publish_budget(struct session *s, bool spent)
{
    events_publish(s, &(struct event){.type = EVENT_FAULTS_BUDGET, .state.spent = spent}, (struct span){0});
}

void events_publish_memory(struct session *s, uint64_t requested, enum status st)
{
    struct event e = {.type = EVENT_MEMORY_LOW,
                      .state.memory = {.used = s->memory_bytes, .limit = s->memory_limit, .requested = requested},
                      .status = st};

    events_publish(s, &e, (struct span){0});
}

void events_end(struct session *s)
{
    waitlist_end(&s->events.watchers);
}

/* ---- following ---- */

uint64_t events_newest(struct session *s)
{
    uint64_t newest;

    pthread_mutex_lock(&s->lock);
    newest = s->events.newest;
    pthread_mutex_unlock(&s->lock);
    return newest;
}

/* With session.lock held. */
static enum event_next next(struct event_ring *ring, struct event_cursor *c, struct event *out, struct buf *text)
{
    if (c->last > ring->newest || (c->last < ring->newest && c->last + 1 < ring->oldest)) {
        c->last = c->last > ring->newest ? ring->newest : ring->oldest - 1;
        return EVENTS_GAP;
    }
    while (c->last < ring->newest) {
        const struct kept_event *e = at(ring, ++c->last);
        if (c->types & 1u << e->event.type) {
            *out = e->event;
            buf_add(text, e->text, e->text_bytes);
            return EVENTS_ONE;
        }
    }
    return waitlist_over(&ring->watchers) ? EVENTS_OVER : EVENTS_NONE;
}

enum event_next events_next(struct session *s, struct event_cursor *c, struct event *out, struct buf *text)
{
    enum event_next found;

    pthread_mutex_lock(&s->lock);
    waitlist_remove(&s->events.watchers, &c->waker);
    found = next(&s->events, c, out, text);
    if (found == EVENTS_NONE)
        waitlist_add(&s->events.watchers, &c->waker);
    pthread_mutex_unlock(&s->lock);
    return found;
}

void events_unwatch(struct session *s, struct event_cursor *c)
{
    waitlist_unwatch(&s->events.watchers, &c->waker);
}

enum status session_observe(struct session *s, struct problem *why)
{
    enum status st = STATUS_OK;

    pthread_mutex_lock(&s->lock);
    if (s->events.followers >= EVENT_STREAMS_PER_SESSION_MAX)
        st = problem_limit(why, STATUS_TOO_MANY_IN_FLIGHT, "event_streams_per_session", EVENT_STREAMS_PER_SESSION_MAX, s->events.followers,
                           1);
    else
        s->events.followers++;
    pthread_mutex_unlock(&s->lock);
    if (!st)
        registry_observe(s, 1);
    return st;
}

void session_unobserve(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    s->events.followers--;
    pthread_mutex_unlock(&s->lock);
    registry_observe(s, -1);
    s->renewed_ns = now_ns(); /* the client was there until now */
    session_unpin(s, false);
}

static void end_locked(struct session *s, void *unused)
{
    (void)unused;
    pthread_mutex_lock(&s->lock);
    events_end(s);
    pthread_mutex_unlock(&s->lock);
}

void events_end_all(struct registry *r)
{
    registry_each(r, end_locked, NULL);
}
