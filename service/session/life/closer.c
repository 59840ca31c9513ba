/* The closer thread: waits for the ends of workers whose sessions already go on with others. */
#include "session/bounds.h"
#include "session/life/internal.h"

uint64_t closer_count(struct registry *r)
{
    uint64_t closed;

    pthread_mutex_lock(&r->lock);
    closed = r->closed_count;
    pthread_mutex_unlock(&r->lock);
    return closed;
}

/* In naps, because a worker session that is closed meanwhile may be the very one whose end waits for its caller to leave. */
bool closer_await(struct worker_session *c, uint64_t destroyed, uint64_t deadline_ns)
{
    struct registry *r = c->session->registry;
    bool             pending = true, ended = false;

    while (pending && !ended && !worker_session_is_closed(c)) {
        struct timespec until = timespec_of_ns(deadline_after_ms(MEMORY_RETURN_NAP_MS));

        pthread_mutex_lock(&r->lock);
        if (r->closing_count && r->closed_count == destroyed)
            pthread_cond_timedwait(&r->closing_changed, &r->lock, &until);
        ended = r->closed_count != destroyed;
        pending = r->closing_count && deadline_left_ns(deadline_ns) > 0;
        pthread_mutex_unlock(&r->lock);
    }
    return ended;
}

void closer_take(struct worker_session *c)
{
    struct registry *r = c->session->registry;

    pthread_mutex_lock(&r->lock);
    c->session->pins++;
    c->closing_next = NULL;
    if (r->closing)
        r->closing_last->closing_next = c;
    else
        r->closing = c;
    r->closing_last = c;
    r->closing_count++;
    pthread_cond_broadcast(&r->closing_changed);
    pthread_mutex_unlock(&r->lock);
}

/* Its process has ended and nobody is in it any more, maybe for a compilation: it can be destroyed without waiting. */
static bool has_ended(struct worker_session *c)
{
    bool ended;

    pthread_mutex_lock(&c->session->lock);
    ended = !c->uses && worker_state_of(c->worker) == WORKER_DEAD;
    pthread_mutex_unlock(&c->session->lock);
    return ended;
}

/* With registry.lock held, which is given up meanwhile: others only append. One that can be destroyed, so that nobody waits behind another's driver that
 * takes its time, or another's request; out of the list. NULL: all of them still end. */
static struct worker_session *take_ended(struct registry *r)
{
    struct worker_session *before = NULL, *c = r->closing;

    while (c) {
        bool ended;

        pthread_mutex_unlock(&r->lock);
        ended = has_ended(c);
        pthread_mutex_lock(&r->lock);
        if (ended)
            break;
        before = c;
        c = c->closing_next;
    }
    if (!c)
        return NULL;
    if (before)
        before->closing_next = c->closing_next;
    else
        r->closing = c->closing_next;
    if (r->closing_last == c)
        r->closing_last = before;
    return c;
}

/* With registry.lock held, which is given up meanwhile. */
static void finish(struct registry *r, struct worker_session *c)
{
    struct session *s = c->session;

    pthread_mutex_unlock(&r->lock);
    worker_session_destroy(c);
    session_close_finish(s);
    session_unpin(s, false);
    pthread_mutex_lock(&r->lock);
    r->closing_count--;
    r->closed_count++;
    pthread_cond_broadcast(&r->closing_changed);
}

/* Deaths are the pool's to see, and nobody here is told of them. */
static void wait_for_death(struct registry *r)
{
    struct timespec until = timespec_of_ns(deadline_after_ms(CLOSER_TICK_MS));

    pthread_cond_timedwait(&r->closing_changed, &r->lock, &until);
}

static void *closer_main(void *argument)
{
    struct registry *r = argument;

    pthread_mutex_lock(&r->lock);
    for (;;) {
        struct worker_session *c = take_ended(r);

        if (c)
            finish(r, c);
        else if (r->closing)
            wait_for_death(r);
        else if (r->closer_stop)
            break;
        else
            pthread_cond_wait(&r->closing_changed, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

bool closer_start(struct registry *r)
{
    return pthread_create(&r->closer, NULL, closer_main, r) == 0;
}

void closer_stop(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    r->closer_stop = true;
    pthread_cond_broadcast(&r->closing_changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->closer, NULL);
}
