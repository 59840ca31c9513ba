/* Deals turns to compile. Each waiting turn is a waiting thread, so there are few: scans are cheap, and nothing is stored per caller. */
#include "pool/compile/turns.h"
#include "pool/bounds.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/deadline.h"
#include "base/threads/held.h"
#include "limits.h"

void compile_turns_init(struct compile_turns *t, unsigned turns, unsigned turns_of_caller)
{
    *t = (struct compile_turns){.turns = turns, .turns_of_caller = turns_of_caller};
    TAILQ_INIT(&t->all);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->dealt, NULL);
}

void compile_turns_finish(struct compile_turns *t)
{
    assert(TAILQ_EMPTY(&t->all));
    pthread_cond_destroy(&t->dealt);
    pthread_mutex_destroy(&t->lock);
}

/* ---- all below under the lock ---- */

static bool same_caller(const struct compile_turn *a, const struct compile_turn *b)
{
    const char *x = a->whom.caller ? a->whom.caller : "", *y = b->whom.caller ? b->whom.caller : "";

    return strcmp(x, y) == 0;
}

/* Those of that kind that run or wait: of the caller of `of`, or of all when NULL. */
static unsigned count_turns(const struct compile_turns *t, const struct compile_turn *of, bool builtin, bool running)
{
    const struct compile_turn *c;
    unsigned                   n = 0;

    TAILQ_FOREACH(c, &t->all, listed)
        n += c->whom.builtin == builtin && c->running == running && (!of || same_caller(c, of));
    return n;
}

static bool may_run(const struct compile_turns *t, const struct compile_turn *c)
{
    unsigned sources = count_turns(t, NULL, false, true), builtins = count_turns(t, NULL, true, true);

    if (c->whom.builtin && builtins < COMPILE_BUILTIN_TURNS)
        return true;
    if (builtins > COMPILE_BUILTIN_TURNS)
        sources += builtins - COMPILE_BUILTIN_TURNS;
    return sources < t->turns && (c->whom.builtin || count_turns(t, c, false, true) < t->turns_of_caller);
}

/* Whether a goes before b, which came earlier. */
static bool goes_before(const struct compile_turns *t, const struct compile_turn *a, const struct compile_turn *b)
{
    unsigned of_a = count_turns(t, a, a->whom.builtin, true), of_b = count_turns(t, b, b->whom.builtin, true);

    if (a->whom.builtin != b->whom.builtin)
        return a->whom.builtin;
    return of_a != of_b ? of_a < of_b : a->served < b->served;
}

static struct compile_turn *choose_turn(const struct compile_turns *t)
{
    struct compile_turn *c, *best = NULL;

    TAILQ_FOREACH(c, &t->all, listed)
        if (!c->running && may_run(t, c) && (!best || goes_before(t, c, best)))
            best = c;
    return best;
}

static void mark_served(struct compile_turns *t, const struct compile_turn *of)
{
    struct compile_turn *c;

    t->served++;
    TAILQ_FOREACH(c, &t->all, listed)
        if (same_caller(c, of))
            c->served = t->served;
}

static void deal_turns(struct compile_turns *t)
{
    struct compile_turn *c;
    bool                 any = false;

    assert(held(&t->lock));
    while (!t->closed && (c = choose_turn(t))) {
        c->running = any = true;
        mark_served(t, c);
    }
    if (any)
        pthread_cond_broadcast(&t->dealt);
}

/* At the end. The caller's last turn counts for this one, too. */
static void enter_turn(struct compile_turns *t, struct compile_turn *turn)
{
    struct compile_turn *c;

    assert(held(&t->lock));
    TAILQ_FOREACH(c, &t->all, listed)
        if (same_caller(c, turn))
            turn->served = c->served;
    TAILQ_INSERT_TAIL(&t->all, turn, listed);
}

/* ---- without it ---- */

enum status compile_turn_take(struct compile_turns *t, struct compile_turn *turn, struct compile_for whom, uint64_t deadline_ns)
{
    struct timespec until = timespec_of_ns(deadline_ns);
    enum status     st = STATUS_OK;

    *turn = (struct compile_turn){.whom = whom};
    pthread_mutex_lock(&t->lock);
    if (!whom.builtin && count_turns(t, turn, false, false) >= COMPILE_WAITING_PER_CALLER_MAX) {
        pthread_mutex_unlock(&t->lock);
        return STATUS_TOO_MANY_IN_FLIGHT;
    }
    enter_turn(t, turn);
    deal_turns(t);
    while (!turn->running && !t->closed && pthread_cond_clockwait(&t->dealt, &t->lock, CLOCK_MONOTONIC, &until) == 0) {
    }
    if (!turn->running) {
        TAILQ_REMOVE(&t->all, turn, listed);
        st = t->closed ? STATUS_DRAINING : STATUS_OVERLOADED;
    }
    pthread_mutex_unlock(&t->lock);
    return st;
}

void compile_turns_close(struct compile_turns *t)
{
    pthread_mutex_lock(&t->lock);
    t->closed = true;
    pthread_cond_broadcast(&t->dealt);
    pthread_mutex_unlock(&t->lock);
}

unsigned compile_turns_waiting(struct compile_turns *t, const char *caller)
{
    const struct compile_turn of = {.whom = {.caller = caller}};
    unsigned                  n;

    pthread_mutex_lock(&t->lock);
    n = count_turns(t, &of, false, false);
    pthread_mutex_unlock(&t->lock);
    return n;
}

bool compile_turn_give(struct compile_turns *t, struct compile_turn *turn)
{
    bool quiet;

    pthread_mutex_lock(&t->lock);
    assert(turn->running);
    TAILQ_REMOVE(&t->all, turn, listed);
    deal_turns(t);
    quiet = count_turns(t, NULL, false, true) + count_turns(t, NULL, true, true) == 0;
    pthread_mutex_unlock(&t->lock);
    return quiet;
}
