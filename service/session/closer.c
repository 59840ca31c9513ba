/* The closer thread: waits for the ends of workers whose sessions already go on with others. */
#include "session/internal.h"

uint64_t closer_count(struct registry *r)
{
    uint64_t closed;

    pthread_mutex_lock(&r->lock);
    closed = r->closed_count;
    pthread_mutex_unlock(&r->lock);
    return closed;
}

bool closer_await(struct registry *r, uint64_t buried, uint64_t deadline_ns)
{
    struct timespec until = timespec_of_ns(deadline_ns);
    bool            ended;
    int             e = 0;

    pthread_mutex_lock(&r->lock);
    while (r->closing_count && r->closed_count == buried && e == 0)
        e = pthread_cond_timedwait(&r->closing_changed, &r->lock, &until);
    ended = r->closed_count != buried;
    pthread_mutex_unlock(&r->lock);
    return ended;
}

void closer_take(struct context *c)
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

static void *closer_main(void *argument)
{
    struct registry *r = argument;

    pthread_mutex_lock(&r->lock);
    for (;;) {
        struct context *c = r->closing;
        if (c) {
            struct session *s = c->session;
            r->closing = c->closing_next;
            pthread_mutex_unlock(&r->lock);
            context_bury(c);
            session_unpin(s, false);
            pthread_mutex_lock(&r->lock);
            r->closing_count--;
            r->closed_count++;
            pthread_cond_broadcast(&r->closing_changed);
        } else if (r->closer_stop) {
            break;
        } else {
            pthread_cond_wait(&r->closing_changed, &r->lock);
        }
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
