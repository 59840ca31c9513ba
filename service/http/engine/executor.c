/* Threads for handlers that may block: started as needed, joined when they have been idle for a while. A caller has a portion of them. Probes
 * overtake the rest, and EXECUTOR_THREADS_RESERVED of the threads are theirs: handlers that wait for long cannot make the service look dead. */
#include <stdlib.h>

#include "base/log/crash.h"
#include "base/log/log.h"
#include "base/portion.h"
#include "base/threads/held.h"
#include "base/threads/spin.h"
#include "http/bounds.h"
#include "http/engine/internal.h"

enum slot_state { SLOT_FREE, SLOT_RUNNING, SLOT_ENDED };

struct executor_slot {
    struct executor *executor;
    pthread_t        thread;
    enum slot_state  state;
};

enum { THREADS_FOR_CALLERS = EXECUTOR_THREADS_MAX - EXECUTOR_THREADS_RESERVED };

struct queue {
    TAILQ_HEAD(, exchange) requests;
    unsigned count;
};

struct executor {
    pthread_mutex_t      lock; /* guards everything */
    pthread_cond_t       work;
    struct queue         probes, others;
    unsigned             idle;
    bool                 spinning;  /* one of the idle ones looks for work instead of sleeping */
    atomic_uint          submitted; /* so far, modulo its range; changed under the lock */
    unsigned             busy;      /* threads at a request that is no probe; a caller's of them are counted in caller.executor_threads */
    bool                 stopping;
    struct executor_slot slots[EXECUTOR_THREADS_MAX];
};

static bool is_probe(const struct exchange *x)
{
    return x->r.endpoint->probe;
}

static struct queue *queue_of(struct executor *e, const struct exchange *x)
{
    return is_probe(x) ? &e->probes : &e->others;
}

/* Whose caller has its portion of the threads waits for one of his own to be free. */
static bool may_run(const struct executor *e, const struct exchange *x)
{
    const struct portion threads = {"executor_threads", THREADS_FOR_CALLERS, e->busy, x->r.caller->executor_threads};

    return portion_fits(&threads, 1);
}

/* The oldest probe, else the oldest that may run; NULL: none. */
static struct exchange *next(const struct executor *e)
{
    struct exchange *x = TAILQ_FIRST(&e->probes.requests);

    if (x)
        return x;
    for (x = TAILQ_FIRST(&e->others.requests); x && !may_run(e, x); x = TAILQ_NEXT(x, executor_link))
        continue;
    return x;
}

static void take_out(struct queue *q, struct exchange *x)
{
    TAILQ_REMOVE(&q->requests, x, executor_link);
    assert(q->count > 0);
    q->count--;
}

/* Under the lock, which is given up meanwhile: for as long as a client takes to send its next request. One thread at a time, and none where processors
 * are few. */
static void spin(struct executor *e)
{
    uint64_t budget_ns = spin_budgets()->loop_ns, until = deadline_after_ns(budget_ns);
    unsigned seen = atomic_load(&e->submitted);

    assert(held(&e->lock));
    if (!budget_ns || e->spinning)
        return;
    e->spinning = true;
    pthread_mutex_unlock(&e->lock);
    while (atomic_load_explicit(&e->submitted, memory_order_relaxed) == seen && deadline_left_ns(until))
        spin_relax();
    pthread_mutex_lock(&e->lock);
    e->spinning = false;
}

/* Under the lock. NULL: idle for long enough, or stopping. */
static struct exchange *wait_for_work(struct executor *e)
{
    struct timespec  until = timespec_of_ns(deadline_after_ms(EXECUTOR_IDLE_MS));
    struct exchange *x;
    int              timed_out = 0;

    assert(held(&e->lock));
    e->idle++;
    if (!next(e) && !e->stopping)
        spin(e);
    while (!(x = next(e)) && !e->stopping && !timed_out)
        timed_out = pthread_cond_clockwait(&e->work, &e->lock, CLOCK_MONOTONIC, &until);
    assert(e->idle > 0);
    e->idle--;
    if (e->stopping || !x)
        return NULL;
    take_out(queue_of(e, x), x);
    return x;
}

/* Under the lock, which is given up meanwhile. x is the loop's as soon as it is posted. */
static void run_one(struct executor *e, struct exchange *x)
{
    struct caller *caller = is_probe(x) ? NULL : x->r.caller;

    assert(held(&e->lock));
    if (caller) {
        e->busy++;
        caller->executor_threads++;
    }
    pthread_mutex_unlock(&e->lock);
    x->executor_result = x->r.prepare ? exchange_run_prepare(x) : exchange_run_handler(x);
    loop_post(x, EXCHANGE_EXECUTED);
    pthread_mutex_lock(&e->lock);
    if (caller) {
        assert(caller->executor_threads > 0 && e->busy > 0);
        caller->executor_threads--;
        e->busy--;
    }
}

/* Under the lock. RUNNING to FREE: its thread did not start. */
static void set_state(struct executor_slot *slot, enum slot_state next)
{
    static const bool may[SLOT_ENDED + 1][SLOT_ENDED + 1] = {
        [SLOT_FREE] = {[SLOT_RUNNING] = 1},
        [SLOT_RUNNING] = {[SLOT_ENDED] = 1, [SLOT_FREE] = 1},
        [SLOT_ENDED] = {[SLOT_FREE] = 1},
    };

    assert(held(&slot->executor->lock));
    assert(may[slot->state][next]);
    slot->state = next;
}

/* Under the lock, which an ended thread has let go of for good. */
static void reap(struct executor_slot *slot)
{
    if (slot->state != SLOT_ENDED)
        return;
    pthread_join(slot->thread, NULL);
    set_state(slot, SLOT_FREE);
}

static void *executor_run(void *slot);

/* Under the lock. True if a thread runs that was not there before. */
static bool add_thread(struct executor *e)
{
    assert(held(&e->lock));
    for (size_t i = 0; i < COUNT(e->slots); i++) {
        struct executor_slot *slot = &e->slots[i];
        if (slot->state == SLOT_RUNNING)
            continue;
        reap(slot);
        slot->executor = e;
        set_state(slot, SLOT_RUNNING);
        if (crash_thread_start(&slot->thread, executor_run, slot))
            return true;
        set_state(slot, SLOT_FREE);
        log_warn("http", "cannot start an executor thread");
        return false;
    }
    return false;
}

/* Under the lock: a request has ended, and more than the next one may be able to run now. */
static void look_again(struct executor *e)
{
    assert(held(&e->lock));
    if (e->stopping || !next(e))
        return;
    if (e->idle)
        pthread_cond_broadcast(&e->work);
    else
        add_thread(e);
}

static void *executor_run(void *argument)
{
    struct executor_slot *slot = argument;
    struct executor      *e = slot->executor;
    struct exchange      *x;

    pthread_mutex_lock(&e->lock);
    while ((x = wait_for_work(e))) {
        run_one(e, x);
        look_again(e);
    }
    set_state(slot, SLOT_ENDED);
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static unsigned threads_running(const struct executor *e)
{
    unsigned count = 0;

    for (size_t i = 0; i < COUNT(e->slots); i++)
        count += e->slots[i].state == SLOT_RUNNING;
    return count;
}

/* Under the lock: what is queued has as many threads as it may have, or gets one more. False: nobody would ever do it. */
static bool find_thread(struct executor *e, const struct queue *q)
{
    unsigned running, most = q == &e->probes ? EXECUTOR_THREADS_MAX : THREADS_FOR_CALLERS;

    assert(held(&e->lock));
    if (q->count < e->idle)
        return true;
    running = threads_running(e);
    return running >= most || add_thread(e) || running > 0;
}

enum status executor_create(struct executor **out, struct problem *why)
{
    struct executor *e = calloc(1, sizeof *e);

    if (!e)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the executor");
    TAILQ_INIT(&e->probes.requests);
    TAILQ_INIT(&e->others.requests);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    *out = e;
    return STATUS_OK;
}

enum status executor_submit(struct executor *e, struct exchange *x)
{
    struct queue *q = queue_of(e, x);
    bool          accepted;

    pthread_mutex_lock(&e->lock);
    accepted = !e->stopping && q->count < EXECUTOR_QUEUE_MAX && find_thread(e, q);
    if (accepted) {
        TAILQ_INSERT_TAIL(&q->requests, x, executor_link);
        q->count++;
        atomic_fetch_add(&e->submitted, 1);
        if (!e->spinning || e->probes.count + e->others.count > 1) /* else the one that spins takes it */
            pthread_cond_signal(&e->work);
    }
    pthread_mutex_unlock(&e->lock);
    return accepted ? STATUS_OK : problem_set(&x->r.problem, STATUS_OVERLOADED, "too many requests wait for a thread");
}

static void return_queued(struct queue *q)
{
    struct exchange *x;

    while ((x = TAILQ_FIRST(&q->requests))) {
        take_out(q, x);
        x->executor_result = problem_set(&x->r.problem, STATUS_DRAINING, "the service is shutting down");
        loop_post(x, EXCHANGE_EXECUTED);
    }
}

/* `stopping` keeps new threads away, so each slot is looked at once. */
static void join_all(struct executor *e)
{
    for (size_t i = 0; i < COUNT(e->slots); i++) {
        bool used;

        pthread_mutex_lock(&e->lock);
        used = e->slots[i].state != SLOT_FREE;
        pthread_mutex_unlock(&e->lock);
        if (used)
            pthread_join(e->slots[i].thread, NULL);
    }
}

void executor_stop(struct executor *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    return_queued(&e->probes);
    return_queued(&e->others);
    pthread_cond_broadcast(&e->work);
    pthread_mutex_unlock(&e->lock);
    join_all(e);
}

void executor_destroy(struct executor *e)
{
    if (!e)
        return;
    pthread_cond_destroy(&e->work);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
