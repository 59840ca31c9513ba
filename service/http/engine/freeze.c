/* Standing still: so that what the sessions are can be kept while nobody changes them, and the sockets go to another process with all that clients have
 * sent since. */
#include "http/engine/internal.h"

void server_pause(struct server *s)
{
    atomic_store(&s->paused, true);
    server_quiesce(s);
}

void loop_end_endless(struct loop *loop)
{
    for (struct exchange *x = LIST_FIRST(&loop->suspended), *next; x; x = next) {
        next = LIST_NEXT(x, suspended_link);
        if (x->state == EXCHANGE_ANSWERED && exchange_is_endless(x)) {
            x->woken = true;
            exchange_advance(x);
        }
    }
}

void loop_stand(struct loop *loop)
{
    struct server *s = loop->server;

    pthread_mutex_lock(&s->freeze_lock);
    s->standing++;
    pthread_cond_broadcast(&s->freeze_changed);
    while (atomic_load(&s->freezing))
        pthread_cond_wait(&s->freeze_changed, &s->freeze_lock);
    assert(s->standing > 0);
    s->standing--;
    pthread_mutex_unlock(&s->freeze_lock);
}

void server_thaw(struct server *s)
{
    pthread_mutex_lock(&s->freeze_lock);
    atomic_store(&s->freezing, false);
    pthread_cond_broadcast(&s->freeze_changed);
    pthread_mutex_unlock(&s->freeze_lock);
}

static void stand_all(struct server *s)
{
    pthread_mutex_lock(&s->freeze_lock);
    atomic_store(&s->freezing, true);
    wake_loops(s);
    while (s->standing < s->loops_count)
        pthread_cond_wait(&s->freeze_changed, &s->freeze_lock);
    pthread_mutex_unlock(&s->freeze_lock);
}

/* Nothing is between its two ends but what is in the socket. What a proxy says of its client before the first request
 * would be lost. */
static bool can_go(const struct connection *c)
{
    struct sockaddr_storage a = {0};
    socklen_t               bytes = sizeof a;
    struct ip_address       peer;

    if (c->exchange || c->is_tls || c->linger || c->framing.refused || c->framing.begun != c->framing.ended || c->begun != c->framing.begun)
        return false;
    if (getpeername(c->fd, (struct sockaddr *)&a, &bytes))
        return false;
    peer = ip_of_peer(&a);
    return c->is_unix || memcmp(&peer, &c->client, sizeof peer) == 0;
}

/* A part of a request, or of what comes before the first one, is here and not in the socket. */
static bool is_between(const struct connection *c)
{
    return c->exchange || c->framing.begun != c->framing.ended || c->begun != c->framing.begun || (!c->used && !can_go(c));
}

static bool has_parts(const struct loop *loop)
{
    for (const struct connection *c = LIST_FIRST(&loop->connections); c; c = LIST_NEXT(c, link))
        if (is_between(c))
            return true;
    return !LIST_EMPTY(&loop->reborn) || !LIST_EMPTY(&loop->adopting);
}

static bool is_ready(struct server *s, bool patient)
{
    bool ready = server_in_flight(s) == 0;

    for (unsigned i = 0; i < s->loops_count && ready && patient; i++)
        ready = !has_parts(&s->loops[i]);
    return ready;
}

bool server_freeze(struct server *s, bool patient)
{
    if (server_in_flight(s))
        return false;
    stand_all(s);
    if (is_ready(s, patient))
        return true;
    server_thaw(s);
    return false;
}

void server_go_on(struct server *s)
{
    atomic_store(&s->paused, false);
    atomic_store(&s->quiescing, false);
    server_thaw(s);
    wake_loops(s);
}

void server_leave(struct server *s)
{
    assert(atomic_load(&s->freezing));
    executor_stop(s->executor);
    offload_stop(s->offload_threads);
}

unsigned server_sockets(struct server *s, int out[SOCKETS_INHERITED_MAX])
{
    unsigned count = 0;

    assert(atomic_load(&s->freezing));
    for (unsigned i = 0; i < s->listeners_count; i++)
        for (unsigned k = 0; k < s->loops_count; k++)
            out[count++] = s->listeners[i].fds[k];
    for (unsigned i = 0; i < s->loops_count; i++)
        for (struct connection *c = LIST_FIRST(&s->loops[i].connections); c && count < SOCKETS_INHERITED_MAX; c = LIST_NEXT(c, link))
            if (can_go(c))
                out[count++] = c->fd;
    return count;
}
