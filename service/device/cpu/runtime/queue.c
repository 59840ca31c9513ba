/* Streams and events of the `cpu` device: a list of operations and the one thread that executes them. */
#include "device/cpu/runtime/queue.h"
#include "device/cpu/bounds.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "device/cpu/runtime/memcheck.h"

enum operation_kind {
    OPERATION_WRITE,
    OPERATION_READ,
    OPERATION_COPY,
    OPERATION_FILL,
    OPERATION_FREE,
    OPERATION_LAUNCH,
    OPERATION_RECORD,
    OPERATION_FORGET
};

struct operation {
    struct operation   *next;
    enum operation_kind kind;
    uint64_t            to;    /* device addresses are host addresses here */
    uint64_t            from;  /* or the fill pattern */
    uint64_t            bytes; /* or the fill count */
    uint32_t            pattern_bytes;
    struct cpu_event   *event;  /* of a LAUNCH the one before it, NULL allowed */
    struct cpu_event   *after;  /* LAUNCH: NULL allowed */
    struct cpu_launch   launch; /* params point behind the struct */
};

#define SEQUENCE_NEVER UINT64_MAX

/* `sequence` belongs to the command thread, `time_ns` to the dispatcher until the sequence is done. */
struct cpu_event {
    uint64_t      sequence; /* of the last record; 0 = never recorded */
    atomic_ullong time_ns;
};

struct cpu_queue {
    struct cpu_memory *memory;
    struct cpu_engine *engine;
    pthread_t          thread;
    pthread_mutex_t    lock; /* guards first, last, problem, stopping, waiting flags */
    pthread_cond_t     work; /* something was queued, or stop */
    pthread_cond_t     done; /* something was finished */
    struct operation  *first;
    struct operation  *last;
    bool               sleeping; /* the dispatcher waits on `work` */
    bool               watched;  /* the command thread waits on `done` */
    bool               stopping;
    struct problem     problem; /* how the context was lost; valid once lost */
    atomic_bool        lost;
    atomic_ullong      issued;   /* sequence numbers: every operation has one, from 1 */
    atomic_ullong      finished; /* all up to here are executed; stops once lost */
    uint64_t           seen;     /* `finished` at the last wait_progress */
};

static void fill_pattern(unsigned char *to, uint64_t pattern, uint32_t bytes, uint64_t count)
{
    if (bytes == 1) {
        memset(to, (int)(pattern & 255), count);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + i * bytes, &pattern, bytes);
}

/* For memcheck. Reading by the host is not checked: it may fetch a buffer that kernels wrote only in part. */
static void note_copy(struct cpu_queue *q, const struct operation *o)
{
    struct cpu_shadow *shadow = cpu_memory_shadow(q->memory);

    if (o->kind == OPERATION_WRITE)
        cpu_shadow_set(shadow, o->to, o->bytes, SHADOW_WRITTEN);
    else if (o->kind == OPERATION_COPY)
        cpu_shadow_copy(shadow, o->to, o->from, o->bytes);
}

static void run_copy(struct cpu_queue *q, const struct operation *o)
{
    note_copy(q, o);
    memmove((void *)(uintptr_t)o->to, (const void *)(uintptr_t)o->from, o->bytes);
}

static void stamp_event(struct cpu_event *e)
{
    if (e)
        atomic_store_explicit(&e->time_ns, now_ns(), memory_order_relaxed);
}

static enum status run_launch(struct cpu_queue *q, struct operation *o, struct problem *why)
{
    enum status st;

    stamp_event(o->event);
    st = cpu_engine_run(q->engine, &o->launch, why);
    stamp_event(o->after);
    return st;
}

static enum status run_operation(struct cpu_queue *q, struct operation *o, struct problem *why)
{
    switch (o->kind) {
    case OPERATION_WRITE:
        cpu_memory_expect_write(q->memory, o->to, o->bytes);
        run_copy(q, o);
        return STATUS_OK;
    case OPERATION_READ:
    case OPERATION_COPY:
        run_copy(q, o);
        return STATUS_OK;
    case OPERATION_FILL:
        cpu_shadow_set(cpu_memory_shadow(q->memory), o->to, o->bytes * o->pattern_bytes, SHADOW_WRITTEN);
        fill_pattern((unsigned char *)(uintptr_t)o->to, o->from, o->pattern_bytes, o->bytes);
        return STATUS_OK;
    case OPERATION_FREE:
        if (cpu_memory_free(q->memory, o->to))
            return problem_set(why, STATUS_DEVICE_ERROR, "cannot free device memory");
        return STATUS_OK;
    case OPERATION_LAUNCH:
        return run_launch(q, o, why);
    case OPERATION_RECORD:
        stamp_event(o->event);
        return STATUS_OK;
    case OPERATION_FORGET:
        free(o->event);
        return STATUS_OK;
    }
    return STATUS_INTERNAL;
}

static void finish_operation(struct cpu_queue *q, enum status st, const struct problem *why)
{
    pthread_mutex_lock(&q->lock);
    if (st) {
        q->problem = *why;
        q->problem.status = st;
        atomic_store(&q->lost, true);
    } else {
        atomic_fetch_add(&q->finished, 1);
    }
    if (q->watched)
        pthread_cond_signal(&q->done);
    pthread_mutex_unlock(&q->lock);
}

/* A lost context executes nothing more, but what operations own must be freed. */
static void drop_operation(struct operation *o)
{
    if (o->kind == OPERATION_FORGET)
        free(o->event);
    free(o);
}

static bool spin_for_work(struct cpu_queue *q)
{
    uint64_t until = deadline_after_ns(SPIN_BUDGET_US * NS_PER_US);

    do {
        if (atomic_load(&q->issued) != atomic_load(&q->finished))
            return true;
        sched_yield();
    } while (now_ns() < until);
    return false;
}

/* NULL when the queue ends. */
static struct operation *take_operation(struct cpu_queue *q)
{
    struct operation *o;

    if (!atomic_load(&q->lost))
        spin_for_work(q);
    pthread_mutex_lock(&q->lock);
    while (!q->first && !q->stopping) {
        q->sleeping = true;
        pthread_cond_wait(&q->work, &q->lock);
        q->sleeping = false;
    }
    o = q->stopping ? NULL : q->first;
    if (o) {
        q->first = o->next;
        if (!q->first)
            q->last = NULL;
    }
    pthread_mutex_unlock(&q->lock);
    return o;
}

static void *run_queue(void *context)
{
    struct cpu_queue *q = context;
    struct operation *o;
    struct problem    why = {0};
    enum status       st;

    while ((o = take_operation(q))) {
        if (atomic_load(&q->lost)) {
            drop_operation(o);
            continue;
        }
        st = run_operation(q, o, &why);
        free(o);
        finish_operation(q, st, &why);
    }
    return NULL;
}

enum status cpu_queue_create(struct cpu_memory *memory, struct cpu_engine *engine, struct cpu_queue **out)
{
    struct cpu_queue  *q = calloc(1, sizeof *q);
    pthread_condattr_t monotonic;

    if (!q)
        return STATUS_OUT_OF_MEMORY;
    q->memory = memory;
    q->engine = engine;
    pthread_mutex_init(&q->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&q->work, NULL);
    pthread_cond_init(&q->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&q->thread, NULL, run_queue, q) != 0) {
        pthread_cond_destroy(&q->done);
        pthread_cond_destroy(&q->work);
        pthread_mutex_destroy(&q->lock);
        free(q);
        return STATUS_OUT_OF_MEMORY;
    }
    *out = q;
    return STATUS_OK;
}

void cpu_queue_destroy(struct cpu_queue *q)
{
    if (!q)
        return;
    cpu_engine_cancel(q->engine);
    pthread_mutex_lock(&q->lock);
    q->stopping = true;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    while (q->first) {
        struct operation *o = q->first;
        q->first = o->next;
        drop_operation(o);
    }
    pthread_cond_destroy(&q->done);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

static enum status lost_as(struct cpu_queue *q, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&q->lock);
    st = q->problem.status;
    if (why)
        *why = q->problem;
    pthread_mutex_unlock(&q->lock);
    return st;
}

enum status cpu_queue_lost(struct cpu_queue *q, struct problem *why)
{
    return atomic_load(&q->lost) ? lost_as(q, why) : STATUS_OK;
}

/* Takes o. */
static enum status push_operation(struct cpu_queue *q, struct operation *o)
{
    if (!o)
        return STATUS_OUT_OF_MEMORY;
    if (atomic_load(&q->issued) - atomic_load(&q->finished) >= CPU_QUEUED_OPERATIONS_MAX && o->kind != OPERATION_FORGET) {
        free(o);
        return STATUS_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&q->lock);
    if (q->last)
        q->last->next = o;
    else
        q->first = o;
    q->last = o;
    atomic_fetch_add(&q->issued, 1);
    if (q->sleeping)
        pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
    return STATUS_OK;
}

static enum status push_plain(struct cpu_queue *q, const struct operation *like)
{
    struct operation *o;

    if (atomic_load(&q->lost))
        return lost_as(q, NULL);
    o = malloc(sizeof *o);
    if (o)
        *o = *like;
    return push_operation(q, o);
}

enum status cpu_queue_write(struct cpu_queue *q, uint64_t to, const void *from, size_t bytes)
{
    return push_plain(q, &(struct operation){.kind = OPERATION_WRITE, .to = to, .from = (uintptr_t)from, .bytes = bytes});
}

enum status cpu_queue_read(struct cpu_queue *q, void *to, uint64_t from, size_t bytes)
{
    return push_plain(q, &(struct operation){.kind = OPERATION_READ, .to = (uintptr_t)to, .from = from, .bytes = bytes});
}

enum status cpu_queue_copy(struct cpu_queue *q, uint64_t to, uint64_t from, uint64_t bytes)
{
    return push_plain(q, &(struct operation){.kind = OPERATION_COPY, .to = to, .from = from, .bytes = bytes});
}

enum status cpu_queue_fill(struct cpu_queue *q, uint64_t to, uint64_t pattern, uint32_t pattern_bytes, uint64_t count)
{
    return push_plain(
        q, &(struct operation){.kind = OPERATION_FILL, .to = to, .from = pattern, .bytes = count, .pattern_bytes = pattern_bytes});
}

/* At once when nothing is queued, so that the next query sees the memory as free. Only the command thread queues. */
enum status cpu_queue_free(struct cpu_queue *q, uint64_t address)
{
    bool idle = !atomic_load(&q->lost) && atomic_load(&q->issued) == atomic_load(&q->finished);

    if (idle && cpu_memory_free(q->memory, address) == STATUS_OK)
        return STATUS_OK;
    return push_plain(q, &(struct operation){.kind = OPERATION_FREE, .to = address});
}

enum status cpu_queue_launch(struct cpu_queue *q, const struct cpu_launch *l, struct cpu_event *before, struct cpu_event *after)
{
    struct operation *o;
    enum status       st;

    if (atomic_load(&q->lost))
        return lost_as(q, NULL);
    if (l->params_bytes > KERNEL_PARAM_BYTES_MAX)
        return STATUS_ARGUMENT_MISMATCH;
    o = malloc(sizeof *o + l->params_bytes);
    if (!o)
        return STATUS_OUT_OF_MEMORY;
    *o = (struct operation){.kind = OPERATION_LAUNCH, .event = before, .after = after, .launch = *l};
    if (l->params_bytes)
        memcpy(o + 1, l->params, l->params_bytes);
    o->launch.params = o + 1;
    st = push_operation(q, o);
    if (!st && before)
        before->sequence = atomic_load(&q->issued);
    if (!st && after)
        after->sequence = atomic_load(&q->issued);
    return st;
}

enum status cpu_event_create(struct cpu_event **out)
{
    struct cpu_event *e = calloc(1, sizeof *e);

    if (!e)
        return STATUS_OUT_OF_MEMORY;
    *out = e;
    return STATUS_OK;
}

static bool event_done(struct cpu_queue *q, const struct cpu_event *e)
{
    return e->sequence <= atomic_load(&q->finished);
}

void cpu_event_destroy(struct cpu_queue *q, struct cpu_event *e)
{
    struct operation *o;

    if (!e)
        return;
    if (event_done(q, e)) {
        free(e);
        return;
    }
    o = calloc(1, sizeof *o);
    if (!o)
        return; /* if out of memory it leaks: the dispatcher still writes to it */
    o->kind = OPERATION_FORGET;
    o->event = e;
    push_operation(q, o);
}

enum status cpu_event_record(struct cpu_queue *q, struct cpu_event *e)
{
    enum status st = push_plain(q, &(struct operation){.kind = OPERATION_RECORD, .event = e});

    if (st == STATUS_OK)
        e->sequence = atomic_load(&q->issued);
    else if (atomic_load(&q->lost))
        e->sequence = SEQUENCE_NEVER; /* a query must report how the context was lost, not an earlier record */
    return st;
}

enum status cpu_event_query(struct cpu_queue *q, struct cpu_event *e, struct problem *why)
{
    if (event_done(q, e))
        return STATUS_OK;
    return atomic_load(&q->lost) ? lost_as(q, why) : STATUS_PENDING;
}

enum status cpu_event_elapsed(struct cpu_event *from, struct cpu_event *to, float *us)
{
    uint64_t start = atomic_load(&from->time_ns), end = atomic_load(&to->time_ns);

    if (!start || !end)
        return STATUS_INTERNAL;
    *us = (float)((double)((int64_t)(end - start)) / 1000.0);
    return STATUS_OK;
}

void cpu_queue_progress(struct cpu_queue *q, uint64_t *queued, uint64_t *done)
{
    *done = atomic_load(&q->finished);
    *queued = atomic_load(&q->issued);
}

static bool queue_progressed(struct cpu_queue *q)
{
    return atomic_load(&q->finished) != q->seen || atomic_load(&q->lost) || atomic_load(&q->finished) == atomic_load(&q->issued);
}

void cpu_queue_wait_progress(struct cpu_queue *q, uint64_t ns)
{
    uint64_t        deadline = deadline_after_ns(ns);
    struct timespec at = timespec_of_ns(deadline);

    while (!queue_progressed(q) && deadline_left_ns(deadline) > 0 && deadline_left_ns(deadline) + SPIN_BUDGET_US * NS_PER_US > ns)
        sched_yield();
    pthread_mutex_lock(&q->lock);
    q->watched = true;
    while (!queue_progressed(q) && pthread_cond_timedwait(&q->done, &q->lock, &at) == 0)
        ;
    q->watched = false;
    pthread_mutex_unlock(&q->lock);
    q->seen = atomic_load(&q->finished);
}

enum status cpu_queue_drain(struct cpu_queue *q, struct problem *why)
{
    while (atomic_load(&q->finished) != atomic_load(&q->issued) && !atomic_load(&q->lost))
        cpu_queue_wait_progress(q, NS_PER_S);
    return atomic_load(&q->lost) ? lost_as(q, why) : STATUS_OK;
}

void cpu_queue_cancel(struct cpu_queue *q)
{
    cpu_engine_cancel(q->engine);
}
