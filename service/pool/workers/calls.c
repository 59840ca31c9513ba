/* Calls to a worker: submit, drain answers, wait, deadlines. Every call ends exactly once. */
#include "pool/bounds.h"
#include "pool/workers/worker_internal.h"

#include <linux/futex.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/metrics.h"
#include "base/threads/spin.h"

enum { SLEEP_MS = 200 };

static void futex_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec timeout = timespec_of_ns(timeout_ns);

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void calls_init(struct worker *w)
{
    ring_init(&w->commands, w->shm.commands, sizeof(struct command));
    ring_init(&w->completions, w->shm.completions, sizeof(struct completion));
    for (unsigned i = 0; i < RING_SLOTS; i++)
        w->free_slots[i] = (uint16_t)(RING_SLOTS - 1 - i);
    w->free_count = RING_SLOTS;
}

/* The low bits of a call's number name its slot; a number is never used twice. */
static struct call_slot *slot_of(struct worker *w, uint64_t number)
{
    return &w->slots[number & (RING_SLOTS - 1)];
}

/* ---- submit ---- */

/* Messages that run kernels: they leave some calls free, and running too long is the kernels' fault. */
static bool runs_kernels(uint32_t m)
{
    return m == MESSAGE_LAUNCH || m == MESSAGE_COMMAND_LIST || m == MESSAGE_GRAPH_RUN;
}

static uint64_t answer_max(enum message m, const void *body)
{
    if (m == MESSAGE_MODULE_LOAD)
        return ((const struct msg_module_load *)body)->table_to.bytes;
    if (m == MESSAGE_TAKE_OUTPUT)
        return ((const struct msg_take_output *)body)->to.bytes;
    return m == MESSAGE_LAUNCH ? KERNEL_OUTPUT_BYTES_MAX : UINT64_MAX;
}

/* Under lock. */
static struct call_slot *slot_take(struct worker *w, enum message m, struct call *c, uint64_t most)
{
    uint16_t          i = w->free_slots[--w->free_count];
    struct call_slot *slot = &w->slots[i];

    c->number = ++w->numbers * RING_SLOTS + i;
    slot->call = c;
    slot->message = m;
    slot->deadline_ns = c->deadline_ns;
    slot->started = false;
    slot->answer_max = most;
    atomic_store(&slot->number, c->number);
    w->unfinished++;
    w->computing += runs_kernels(m);
    return slot;
}

/* Under lock. */
static void slot_give(struct worker *w, struct call_slot *slot)
{
    w->computing -= runs_kernels(slot->message);
    slot->call = NULL;
    w->free_slots[w->free_count++] = (uint16_t)(slot - w->slots);
    w->unfinished--;
    atomic_store(&slot->number, 0);
}

static void call_reset(struct call *c, enum message m)
{
    c->status = STATUS_PENDING;
    c->worker_session_lost = false;
    c->started_wall_ns = 0;
    c->message = m;
    c->problem.status = STATUS_OK;
}

static enum status push_command(struct worker *w, enum message m, const void *body, size_t bytes, const struct call *c)
{
    static _Thread_local struct command command; /* 33 KiB */

    command.call = c->number;
    command.message = m;
    command.bytes = (uint32_t)bytes;
    memcpy(&command.body, body, bytes);
    return ring_push(&w->commands, &command, offsetof(struct command, body) + bytes);
}

/* Under lock. */
static enum status submit_call(struct worker *w, enum message m, const void *body, size_t bytes, struct call *c)
{
    struct call_slot *slot;

    if (worker_state_of(w) != WORKER_READY)
        return STATUS_WORKER_LOST;
    if (w->free_count <= (runs_kernels(m) ? CALLS_RESERVED : 0))
        return STATUS_OVERLOADED;
    call_reset(c, m);
    slot = slot_take(w, m, c, answer_max(m, body));
    if (push_command(w, m, body, bytes, c) == STATUS_OK)
        return STATUS_OK;
    slot_give(w, slot); /* the table is smaller than the ring: only a hostile index gets here */
    return STATUS_INTERNAL;
}

/* Only LAUNCH has a tail of variable length; the worker refuses one that is too long. */
static size_t body_bytes(enum message m, const void *body)
{
    const struct msg_launch *l = body;

    if (m != MESSAGE_LAUNCH)
        return message_bytes(m);
    return message_bytes(m) + (l->params_bytes <= KERNEL_PARAM_BYTES_MAX ? l->params_bytes : 0);
}

enum status call_submit(struct worker *w, enum message m, const void *body, struct call *c)
{
    uint64_t    deadline = c->deadline_ns;
    enum status st;

    pthread_mutex_lock(&w->lock);
    st = submit_call(w, m, body, body_bytes(m, body), c);
    pthread_mutex_unlock(&w->lock);
    if (st == STATUS_INTERNAL) {
        worker_kill(w, STATUS_WORKER_LOST, NULL);
        return STATUS_WORKER_LOST;
    }
    if (!st && deadline < atomic_load(&w->drain_until_ns))
        ring_poke(&w->completions);
    return st;
}

/* ---- answers ---- */

/* Under drain_lock. Afterwards only the owner touches the call. */
static void deliver_done(struct worker *w, struct call_slot *slot)
{
    struct call *c = slot->call;

    if (c->on_event)
        c->on_event(c, CALL_DONE);
    pthread_mutex_lock(&w->lock);
    slot_give(w, slot);
    pthread_mutex_unlock(&w->lock);
    atomic_fetch_add(&slot->serial, 1);
    if (atomic_exchange(&slot->waiting, 0))
        futex_wake_all(&slot->serial);
}

static void problem_of(const struct completion *d, struct problem *out)
{
    problem_set(out, (enum status)d->status, "%.*s", (int)strnlen(d->detail, sizeof d->detail), d->detail);
    out->of_other_work = d->status == STATUS_WORKER_LOST; /* for nothing else does one say so of itself */
    out->cuda_result = d->cuda_result;
    out->access = d->access;
    memcpy(out->cuda_name, d->cuda_name, sizeof d->cuda_name);
    out->cuda_name[sizeof d->cuda_name - 1] = '\0';
    out->limit_max = d->limit_max;
    out->limit_used = d->limit_used;
    out->limit_requested = d->limit_requested;
    if (d->limit_max)
        snprintf(out->limit_name, sizeof out->limit_name, "%s",
                 d->status == STATUS_DEVICE_MEMORY_EXHAUSTED ? "device_memory_bytes" : "bytes");
}

/* The worker reported that it is lost: it ends by itself soon, or it is killed. */
static void worker_lost(struct worker *w, const struct completion *d)
{
    pthread_mutex_lock(&w->lock);
    if (!w->end.status) {
        problem_of(d, &w->end);
        w->told = true;
    }
    if (worker_state_of(w) == WORKER_READY || worker_state_of(w) == WORKER_STARTING)
        worker_set_state(w, WORKER_STOPPING);
    if (w->kill_ns == DEADLINE_NEVER)
        w->kill_ns = deadline_after_ms(WORKER_GRACE_MS);
    pthread_mutex_unlock(&w->lock);
}

/* The rest of the time is the process's: its memory, its loader, and the linked libraries. */
static void start_measure(const struct worker *w, const struct completion *d)
{
    uint64_t ns = now_ns() - w->started_ns;

    times_add(TIMES_WORKER_START_TIME, ns);
    log_write(ns > WORKER_SLOW_MS * NS_PER_MS ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG, "pool",
              "worker %d of %s:%u took %llu ms to start: device %u, canary %u, lock %u", (int)w->process.pid, w->options.backend,
              w->options.index, (unsigned long long)(ns / NS_PER_MS), d->start_ms[WORKER_START_DEVICE], d->start_ms[WORKER_START_CANARY],
              d->start_ms[WORKER_START_LOCK]);
}

/* False: it reported so before, or the report is impossible. */
static bool start_report(struct worker *w, const struct completion *d)
{
    bool came_up;

    if (w->reported || d->kind != COMPLETION_DONE || d->sandbox > WORKER_SANDBOX_ALLOW_LIST)
        return false;
    w->reported = true;
    if (d->status) {
        worker_lost(w, d);
        return true;
    }
    atomic_store(&w->sandbox, d->sandbox);
    pthread_mutex_lock(&w->lock);
    came_up = worker_state_of(w) == WORKER_STARTING;
    if (came_up)
        worker_set_state(w, WORKER_READY);
    pthread_mutex_unlock(&w->lock);
    if (came_up)
        start_measure(w, d);
    return true;
}

/* Of a launch that began and ended here: at least 0, finite, and not much beyond its deadline. */
static bool time_fits(float us)
{
    return isfinite(us) && us >= 0 && (double)us <= (double)GPU_TIME_US_MAX;
}

/* Events of several streams may be in either order. */
static bool elapsed_fits(float us)
{
    return time_fits(fabsf(us));
}

/* The bytes that the worker claims to have written into staging must fit its slice, and its measurements must be plausible times. */
static bool reply_fits(const struct call_slot *slot, const struct call *c, const struct completion *d)
{
    if (d->status)
        return true;
    if (c->message == MESSAGE_MODULE_LOAD)
        return d->reply.module_load.table_bytes <= slot->answer_max;
    if (c->message == MESSAGE_TAKE_OUTPUT)
        return d->reply.take_output.bytes <= slot->answer_max;
    if (c->message == MESSAGE_EVENT_ELAPSED)
        return elapsed_fits(d->reply.event_elapsed.us);
    return c->message != MESSAGE_LAUNCH || (d->reply.launch.output_bytes <= slot->answer_max && time_fits(d->reply.launch.gpu_us));
}

/* Outcomes that a worker may report, and for a lost context only those that lose one. Only a launch can be cancelled. */
static bool outcome_fits(const struct completion *d)
{
    return d->kind <= COMPLETION_DONE && message_status_fits(d->status) && problem_access_valid(&d->access) &&
           (d->access.error == ACCESS_NONE || d->status == STATUS_KERNEL_FAULT) &&
           (!d->worker_session_lost || (d->worker_session_lost == 1 && d->status));
}

/* What runs kernels starts once. False: no worker reports this. */
static bool call_started(struct worker *w, struct call_slot *slot)
{
    struct call *c = slot->call;

    if (slot->started || !runs_kernels(c->message))
        return false;
    slot->started = true;
    c->started_wall_ns = wall_ns();
    if (c->on_event)
        c->on_event(c, CALL_STARTED);
    pthread_mutex_lock(&w->lock);
    slot->deadline_ns = c->deadline_ns;
    pthread_mutex_unlock(&w->lock);
    return true;
}

/* False: no worker reports such a thing. */
static bool completion_handle(struct worker *w, const struct completion *d)
{
    struct call_slot *slot = slot_of(w, d->call);
    struct call      *c;

    if (!outcome_fits(d))
        return false;
    if (d->call == 0)
        return start_report(w, d);
    if (atomic_load(&slot->number) != d->call)
        return false;
    if (d->kind == COMPLETION_STARTED)
        return call_started(w, slot);
    c = slot->call;
    if (!reply_fits(slot, c, d) || (d->status == STATUS_CANCELLED && c->message != MESSAGE_LAUNCH))
        return false;
    c->status = (enum status)d->status;
    c->worker_session_lost = d->worker_session_lost != 0;
    c->reply = d->reply;
    if (c->status)
        problem_of(d, &c->problem);
    if (c->worker_session_lost)
        worker_lost(w, d);
    deliver_done(w, slot);
    return true;
}

/* Under drain_lock. Nothing that it wrote, or still writes, counts any more. */
static void unmask_completions(struct worker *w)
{
    struct problem why;

    atomic_store(&w->malicious, true);
    log_warn("pool", "killing worker %d of %s:%u: it sent an invalid message", (int)w->process.pid, w->options.backend, w->options.index);
    problem_set(&why, STATUS_WORKER_LOST, "the worker malfunctioned: it sent an invalid message");
    worker_kill(w, STATUS_WORKER_LOST, &why);
}

/* It is as long as what it tells: texts of a failure alone, an access of some faults alone. */
static bool completion_whole(struct completion *d, size_t bytes)
{
    if (bytes < offsetof(struct completion, cuda_name))
        return false;
    if (bytes != sizeof *d)
        d->access = (struct problem_access){0};
    return bytes == completion_bytes(d);
}

/* Under drain_lock. A turn is bounded, however fast the worker writes; callers that want more come again. */
static void drain_completions(struct worker *w)
{
    static _Thread_local struct completion d; /* each function reads of it what this one's length covers */
    size_t                                 bytes = 0;
    enum status                            st = STATUS_OK;

    for (unsigned n = 0; n < DRAIN_TURN_MAX && !st && !atomic_load(&w->malicious); n++) {
        st = ring_pop(&w->completions, &d, &bytes);
        if (st == STATUS_INTERNAL || (!st && !(completion_whole(&d, bytes) && completion_handle(w, &d))))
            unmask_completions(w);
    }
}

void calls_drain(struct worker *w)
{
    if (ring_ready(&w->completions))
        calls_last(w);
}

/* ---- the end of the worker ---- */

void calls_last(struct worker *w)
{
    pthread_mutex_lock(&w->drain_lock);
    drain_completions(w);
    pthread_mutex_unlock(&w->drain_lock);
}

/* The unfinished call that was submitted first. */
static struct call_slot *slot_oldest(struct worker *w)
{
    struct call_slot *oldest = NULL;

    for (unsigned i = 0; i < RING_SLOTS; i++) {
        uint64_t number = atomic_load(&w->slots[i].number);

        if (number && (!oldest || number < atomic_load(&oldest->number)))
            oldest = &w->slots[i];
    }
    return oldest;
}

/* The worker has answered all that it had accepted: a kernel that is left has not run. */
static bool is_unaccepted(const struct worker *w, const struct call_slot *slot)
{
    return w->told && runs_kernels(slot->message) && (w->end.status == STATUS_KERNEL_FAULT || w->end.status == STATUS_EXECUTION_TIMEOUT);
}

static void end_call(const struct worker *w, struct call_slot *slot, const struct problem *end)
{
    struct call *c = slot->call;

    c->problem = *end;
    if (is_unaccepted(w, slot)) {
        problem_set(&c->problem, STATUS_WORKER_LOST, "ended for other work of the session: %.400s", end->detail);
        c->problem.of_other_work = true;
    }
    c->status = c->problem.status;
    c->worker_session_lost = true;
}

void calls_fail(struct worker *w)
{
    struct call_slot *slot;
    struct problem    end;

    pthread_mutex_lock(&w->drain_lock);
    drain_completions(w);
    worker_end_problem(w, &end);
    if (!end.status)
        problem_set(&end, STATUS_WORKER_LOST, "the worker process died");
    if (!end.detail[0])
        snprintf(end.detail, sizeof end.detail, "the worker process was stopped");
    while ((slot = slot_oldest(w))) {
        end_call(w, slot, &end);
        deliver_done(w, slot);
    }
    pthread_mutex_unlock(&w->drain_lock);
}

/* Under lock. The earliest deadline; *launch: whether it is a launch's. */
static uint64_t earliest_deadline(struct worker *w, bool *launch)
{
    uint64_t first = w->kill_ns;

    *launch = false;
    if (worker_state_of(w) == WORKER_STARTING && w->start_deadline_ns < first)
        first = w->start_deadline_ns;
    for (unsigned i = 0; i < RING_SLOTS && w->unfinished; i++) {
        struct call_slot *slot = &w->slots[i];

        if (!slot->call || slot->deadline_ns >= first)
            continue;
        first = slot->deadline_ns;
        *launch = runs_kernels(slot->message); /* not the call: it may have ended, and be gone */
    }
    return first;
}

bool worker_computes(const struct worker *w)
{
    return atomic_load(&w->computing) > 0;
}

uint64_t calls_check_deadlines(struct worker *w)
{
    struct problem why;
    bool           launch, starting;
    uint64_t       first;

    pthread_mutex_lock(&w->lock);
    first = earliest_deadline(w, &launch);
    starting = worker_state_of(w) == WORKER_STARTING;
    pthread_mutex_unlock(&w->lock);
    if (first == DEADLINE_NEVER || deadline_left_ns(first) > 0)
        return first;
    if (launch)
        problem_set(&why, STATUS_EXECUTION_TIMEOUT,
                    "operations of the session did not finish before their deadline, or faulted: the worker does not tell");
    else if (starting)
        problem_set(&why, STATUS_EXECUTION_TIMEOUT, "the worker did not start in time");
    else
        problem_set(&why, STATUS_WORKER_LOST, "the worker did not answer before the deadline");
    worker_kill(w, why.status, &why);
    return DEADLINE_NEVER;
}

/* ---- waiting ---- */

static bool is_done(struct worker *w, const struct call *c)
{
    return atomic_load_explicit(&slot_of(w, c->number)->number, memory_order_acquire) != c->number;
}

static void try_drain(struct worker *w)
{
    if (!ring_ready(&w->completions) || pthread_mutex_trylock(&w->drain_lock))
        return;
    drain_completions(w);
    pthread_mutex_unlock(&w->drain_lock);
}

/* While a thread spins, the worker need not wake the drainer. */
static void spin_begin(struct worker *w)
{
    if (atomic_fetch_add(&w->spinners, 1) == 0)
        ring_set_sleeping(&w->completions, false);
}

/* A completion between the last check and the flag wakes nobody: check once more. */
static void spin_end(struct worker *w)
{
    if (atomic_fetch_sub(&w->spinners, 1) != 1)
        return;
    ring_set_sleeping(&w->completions, true);
    calls_drain(w);
}

bool call_spin(struct worker *w, struct call *c, uint64_t budget_ns)
{
    uint64_t until;

    if (is_done(w, c))
        return true;
    until = deadline_after_ns(budget_ns);
    spin_begin(w);
    do {
        try_drain(w);
        spin_relax();
    } while (!is_done(w, c) && deadline_left_ns(until) > 0);
    spin_end(w);
    return is_done(w, c);
}

bool call_wait_until(struct worker *w, struct call *c, uint64_t deadline_ns)
{
    struct call_slot *slot = slot_of(w, c->number);
    bool              done = call_spin(w, c, spin_budgets()->call_ns);

    while (!done && deadline_left_ns(deadline_ns) > 0) {
        uint32_t serial = atomic_load(&slot->serial);
        uint64_t left = deadline_left_ns(deadline_ns);

        atomic_store(&slot->waiting, 1);
        done = is_done(w, c);
        if (!done)
            futex_sleep(&slot->serial, serial, left < SLEEP_MS * NS_PER_MS ? left : SLEEP_MS * NS_PER_MS);
        done = done || is_done(w, c);
    }
    return done;
}

enum status call_wait(struct worker *w, struct call *c)
{
    while (!call_wait_until(w, c, DEADLINE_NEVER))
        continue;
    return c->status;
}

/* ---- one function per message ---- */

static enum status call_command_list(struct worker *w, enum message m, const void *body, struct call *c, struct problem *why)
{
    enum status st = call_submit(w, m, body, c);

    if (st)
        return problem_set(why, st, st == STATUS_OVERLOADED ? "too many calls to the worker are in progress" : "the worker has exited");
    st = call_wait(w, c);
    if (st && why)
        *why = c->problem;
    return st;
}

#define MESSAGE(NAME, name)                                                                                                                \
    enum status worker_submit_##name(struct worker *w, const struct msg_##name *m, struct call *c)                                         \
    {                                                                                                                                      \
        return call_submit(w, MESSAGE_##NAME, m, c);                                                                                       \
    }                                                                                                                                      \
    enum status worker_##name(struct worker *w, const struct msg_##name *m, struct msg_##name##_reply *reply, uint64_t deadline_ns,        \
                              struct problem *why)                                                                                         \
    {                                                                                                                                      \
        struct call c = {.deadline_ns = deadline_ns};                                                                                      \
        enum status st = call_command_list(w, MESSAGE_##NAME, m, &c, why);                                                                 \
                                                                                                                                           \
        if (!st && reply)                                                                                                                  \
            *reply = c.reply.name;                                                                                                         \
        return st;                                                                                                                         \
    }
#include "ipc/messages.def"
#undef MESSAGE
