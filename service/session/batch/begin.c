/* Begins runs of programs that are one graph, on threads that must not wait, such as a loop: two changes of threads less for a request. */
#include "base/threads/held.h"
#include "base/threads/spin.h"
#include "ipc/command_list.h"
#include "session/batch/program_internal.h"
#include "session/life/parts.h"

/* No launch waits to be sent before it. */
static bool is_in_order(struct worker_session *c)
{
    bool ordered;

    pthread_mutex_lock(&c->session->lock);
    ordered = launch_order(c) == 0;
    pthread_mutex_unlock(&c->session->lock);
    return ordered;
}

/* In its turn. */
static bool send(struct batch *b)
{
    const struct program_graph *g = program_graph_fixed(b, 0);
    struct problem              why = {0}; /* whoever does it all finds it again */
    struct slice                state;
    bool                        sent = false;

    if (g && !staging_take(b->worker_session->worker, sizeof(struct run_state), &state, NULL))
        program_graph_repeat(b, g, &state, &sent, &why);
    return sent;
}

static bool send_in_turn(struct batch *b)
{
    bool sent;

    if (!program_try_enter(b->spec->program))
        return false;
    sent = send(b);
    if (!sent)
        program_leave(b->spec->program, false);
    return sent;
}

static struct flight_call *flight_of(struct batch *b)
{
    assert(b->begun && b->count == 1);
    return &b->flights[b->head];
}

bool batch_begin(struct batch *b)
{
    struct worker_session *c = b->worker_session;

    assert(!b->begun && b->submitted == 0);
    if (!b->spec->program || !program_is_one_graph(b->spec->program) || !worker_session_use(c))
        return false;
    b->began_ns = now_ns();
    b->clock.limit_ns = batch_limit_ns(b);
    b->begun = is_in_order(c) && send_in_turn(b);
    if (b->begun)
        call_spin(c->worker, &flight_of(b)->call, spin_budgets()->call_ns);
    else
        worker_session_leave(c);
    return b->begun;
}

bool batch_is_under_way(const struct batch *b)
{
    return b->begun;
}

bool batch_landed(struct batch *b, struct waker *w)
{
    const struct flight_call *f = flight_of(b);
    bool                      landed;

    pthread_mutex_lock(&b->lock);
    landed = f->landed;
    b->end_waker = landed ? NULL : w;
    pthread_mutex_unlock(&b->lock);
    return landed;
}

void batch_end_later(struct batch *b, struct reap_item *item)
{
    const struct flight_call *f = flight_of(b);

    pthread_mutex_lock(&b->lock);
    b->end_waker = NULL;
    b->end_item = item;
    if (f->landed)
        batch_tell_end(b);
    pthread_mutex_unlock(&b->lock);
}

void batch_tell_end(struct batch *b)
{
    assert(held(&b->lock));
    if (b->end_waker)
        b->end_waker->wake(b->end_waker);
    if (b->end_item)
        reaper_post(&b->session->registry->reaper, b->end_item);
    b->end_waker = NULL;
    b->end_item = NULL;
}
