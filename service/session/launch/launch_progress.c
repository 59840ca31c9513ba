/* How far the launches of a worker session are: their order, what runs, what is overdue, and the events that say so. With session.lock held,
 * except what looks at all sessions. */
#include "session/events/event_ring.h"
#include "session/launch/internal.h"

#include "base/threads/held.h"

uint64_t launch_order(const struct worker_session *c)
{
    return TAILQ_EMPTY(&c->backlog) ? 0 : TAILQ_LAST(&c->backlog, launch_queue)->number;
}

bool launch_ordered(const struct worker_session *c, uint64_t number)
{
    return TAILQ_EMPTY(&c->backlog) || TAILQ_FIRST(&c->backlog)->number > number;
}

bool launch_is_running(const struct worker_session *c)
{
    assert(held(&c->session->lock));
    for (const struct launch *l = LIST_FIRST(&c->unfinished); l; l = LIST_NEXT(l, unfinished))
        if (l->state == WORK_RUNNING && !l->ended)
            return true;
    return false;
}

uint64_t launch_overdue(const struct worker_session *c, uint64_t now)
{
    assert(held(&c->session->lock));
    for (const struct launch *l = LIST_FIRST(&c->unfinished); l; l = LIST_NEXT(l, unfinished))
        if (l->state == WORK_RUNNING && !l->ended && now > l->started_ns &&
            now - l->started_ns > (l->timeout_ms + LAUNCH_GRACE_MS) * NS_PER_MS)
            return l->timeout_ms;
    return 0;
}

static void count_waiting(struct session *s, void *context)
{
    struct waiting_work *w = context;

    pthread_mutex_lock(&s->lock);
    w->batches += s->batches.queued.count;
    if (s->worker_session)
        for (const struct launch *l = LIST_FIRST(&s->worker_session->unfinished); l; l = LIST_NEXT(l, unfinished))
            w->launches += l->state == WORK_QUEUED;
    pthread_mutex_unlock(&s->lock);
}

struct waiting_work registry_waiting(struct registry *r)
{
    struct waiting_work w = {0};

    registry_each(r, count_waiting, &w);
    return w;
}

void launch_publish(const struct launch *l, enum event_type type)
{
    struct event e = {.type = type,
                      .wall_ns = type == EVENT_LAUNCH_FINISHED ? l->finished_wall_ns : 0,
                      .state.launch = l->state,
                      .status = l->problem ? l->problem->status : STATUS_OK,
                      .timed = l->state == WORK_SUCCEEDED && !l->untimed,
                      .gpu_us = l->gpu_us,
                      .truncated = type == EVENT_KERNEL_PRINTF && l->output_truncated};

    assert(held(&l->worker_session->session->lock));
    span_copy(span_of(l->entry.id), e.launch, sizeof e.launch);
    events_publish(l->worker_session->session, &e,
                   type == EVENT_KERNEL_PRINTF ? (struct span){l->output, l->output_bytes} : (struct span){0});
}
