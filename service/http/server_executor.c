/* Threads for handlers that may block: started as needed, joined when they have been idle for a while. Probes overtake the rest, and
 * EXECUTOR_THREADS_RESERVED of the threads are theirs: handlers that wait for long cannot make the service look dead. */
#include <stdlib.h>

#include "base/log.h"
#include "http/server_internal.h"

enum slot_state { SLOT_FREE, SLOT_RUNNING, SLOT_ENDED };

struct executor_slot {
    struct executor *executor;
    pthread_t        thread;
    enum slot_state  state;
};

struct queue {
    struct exchange *head, *tail;
    unsigned         count;
};

struct executor {
    pthread_mutex_t      lock; /* guards everything */
    pthread_cond_t       work;
    struct queue         probes, others;
    unsigned             idle;
    unsigned             others_running;
    bool                 stopping;
    struct executor_slot slots[EXECUTOR_THREADS_MAX];
};

static bool is_probe(const struct exchange *x)
{
    return x->r.endpoint->probe;
}

static void push(struct queue *q, struct exchange *x)
{
    x->executor_next = NULL;
    if (q->tail)
        q->tail->executor_next = x;
    else
        q->head = x;
    q->tail = x;
    q->count++;
}

static struct exchange *pop(struct queue *q)
{
    struct exchange *x = q->head;

    if (!x)
        return NULL;
    q->head = x->executor_next;
    if (!q->head)
        q->tail = NULL;
    q->count--;
    return x;
}

/* What a thread may take, or NULL. */
static struct exchange *next(struct executor *e)
{
    if (e->probes.head)
        return pop(&e->probes);
    return e->others_running < EXECUTOR_THREADS_MAX - EXECUTOR_THREADS_RESERVED ? pop(&e->others) : NULL;
}

/* Under the lock. NULL: idle for long enough, or stopping. */
static struct exchange *wait_for_work(struct executor *e)
{
    struct timespec  until = timespec_of_ns(deadline_after_ms(EXECUTOR_IDLE_MS));
    struct exchange *x = NULL;
    int              timed_out = 0;

    e->idle++;
    while (!e->stopping && !(x = next(e)) && !timed_out)
        timed_out = pthread_cond_timedwait(&e->work, &e->lock, &until);
    e->idle--;
    return x;
}

static void *executor_run(void *argument)
{
    struct executor_slot *slot = argument;
    struct executor      *e = slot->executor;
    struct exchange      *x;

    pthread_mutex_lock(&e->lock);
    while ((x = wait_for_work(e))) {
        unsigned others = !is_probe(x); /* x is the loop's as soon as it is posted */

        e->others_running += others;
        pthread_mutex_unlock(&e->lock);
        x->executor_result = exchange_run_handler(x);
        loop_post(x, EXCHANGE_EXECUTED);
        pthread_mutex_lock(&e->lock);
        e->others_running -= others;
        if (e->probes.head && e->others.head) /* it takes the probe: the other request is for one who sleeps */
            pthread_cond_signal(&e->work);
    }
    slot->state = SLOT_ENDED;
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* Under the lock, which an ended thread has let go of for good. */
static void reap(struct executor_slot *slot)
{
    if (slot->state == SLOT_ENDED)
        pthread_join(slot->thread, NULL);
    slot->state = SLOT_FREE;
}

/* Under the lock. True if a thread runs that was not there before. */
static bool add_thread(struct executor *e)
{
    for (size_t i = 0; i < COUNT(e->slots); i++) {
        struct executor_slot *slot = &e->slots[i];
        if (slot->state == SLOT_RUNNING)
            continue;
        reap(slot);
        slot->executor = e;
        slot->state = SLOT_RUNNING;
        if (thread_start(&slot->thread, executor_run, slot))
            return true;
        slot->state = SLOT_FREE;
        log_warn("http", "an executor thread cannot be started");
        return false;
    }
    return false;
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
    unsigned running, most = q == &e->probes ? EXECUTOR_THREADS_MAX : EXECUTOR_THREADS_MAX - EXECUTOR_THREADS_RESERVED;

    if (q->count < e->idle)
        return true;
    running = threads_running(e);
    return running >= most || add_thread(e) || running > 0;
}

enum status executor_create(struct executor **out, struct problem *why)
{
    struct executor   *e = calloc(1, sizeof *e);
    pthread_condattr_t monotonic;

    if (!e)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "no memory for the executor");
    pthread_mutex_init(&e->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&e->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = e;
    return STATUS_OK;
}

enum status executor_submit(struct executor *e, struct exchange *x)
{
    struct queue *q = is_probe(x) ? &e->probes : &e->others;
    bool          accepted;

    pthread_mutex_lock(&e->lock);
    accepted = !e->stopping && q->count < EXECUTOR_QUEUE_MAX && find_thread(e, q);
    if (accepted) {
        push(q, x);
        pthread_cond_signal(&e->work);
    }
    pthread_mutex_unlock(&e->lock);
    return accepted ? STATUS_OK : problem_set(&x->r.problem, STATUS_OVERLOADED, "too many requests wait for a thread");
}

static void return_queued(struct executor *e)
{
    struct exchange *x;

    while ((x = pop(e->probes.head ? &e->probes : &e->others))) {
        x->executor_result = problem_set(&x->r.problem, STATUS_DRAINING, "the server is shutting down");
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
    return_queued(e);
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
