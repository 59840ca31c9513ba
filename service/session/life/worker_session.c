/* A worker while a session uses it: uses, loss, end. */
#include <assert.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"
#include "base/metrics.h"
#include "base/threads/contended.h"
#include "base/threads/held.h"
#include "kernels/kernels.h"
#include "session/life/parts.h"

/* Freeing this many objects leaves tens of MiB cached in the allocator. */
enum { TRIM_OBJECTS = 8192 };

/* 0: nothing of ours uses it. */
static uint32_t library_bit(const char *name)
{
    for (unsigned l = BUILTIN_LIBRARY_NONE + 1; l < BUILTIN_LIBRARIES; l++)
        if (strcmp(name, builtin_library_name(l)) == 0)
            return 1u << l;
    return 0;
}

void device_facts_of(const struct device_info *info, struct device_facts *f)
{
    *f = (struct device_facts){0};
    memcpy(f->arch, info->compile_arch, sizeof f->arch);
    f->arch[sizeof f->arch - 1] = '\0';
    f->compiles_cuda = strcmp(info->compiler, "nvrtc") == 0;
    f->wants_ptx = info->code_format == DEVICE_CODE_PTX;
    f->wants_spirv = info->code_format == DEVICE_CODE_SPIRV;
    f->wants_amdgpu = info->code_format == DEVICE_CODE_AMDGPU;
    f->on_host = info->on_host != 0;
    f->multiprocessors = info->multiprocessors;
    f->max_threads_per_block = info->max_threads_per_block;
    memcpy(f->max_block, info->max_block, sizeof f->max_block);
    memcpy(f->max_grid, info->max_grid, sizeof f->max_grid);
    f->max_shared_bytes_per_block = info->max_shared_bytes_per_block;
    f->sharing = info->sharing_unit ? info->sharing : DEVICE_SHARES_NOTHING;
    f->sharing_unit = info->sharing_unit;
    for (unsigned i = 0; i < DEVICE_LIBRARIES_MAX; i++)
        f->libraries |= library_bit(info->libraries[i].name);
}

static void submit_waiting(struct reap_item *item);
static void end_worker_session(struct reap_item *item);
static void note_worker_gone(struct waker *waker);

enum status worker_session_create(struct session *s, struct worker *w, const struct pool_device *device, struct worker_session **out)
{
    struct worker_session *c = calloc(1, sizeof *c);

    if (!c)
        return STATUS_OUT_OF_MEMORY;
    c->session = s;
    c->worker = w;
    c->refs = 1;
    TAILQ_INIT(&c->backlog);
    TAILQ_INIT(&c->finished);
    c->submit_item.run = submit_waiting;
    c->end_item.run = end_worker_session;
    c->end_waker.wake = note_worker_gone;
    device_facts_of(&device->info, &c->facts);
    pthread_mutex_init(&c->load_lock, NULL);
    contended_init(&c->submit_lock);
    *out = c;
    return STATUS_OK;
}

static void worker_session_free(struct worker_session *c)
{
    assert(c->uses == 0 && TAILQ_EMPTY(&c->backlog) && !c->outputs && !c->unloads && LIST_EMPTY(&c->transfers) && c->in_ring == 0);
    table_finish(&c->buffers);
    table_finish(&c->textures);
    table_finish(&c->temp_buffers);
    table_finish(&c->programs);
    table_finish(&c->modules);
    table_finish(&c->builtins);
    table_finish(&c->launches);
    pthread_mutex_destroy(&c->submit_lock);
    pthread_mutex_destroy(&c->load_lock);
    free(c);
}

void worker_session_ref(struct worker_session *c)
{
    assert(held(&c->session->lock));
    assert(c->refs > 0);
    c->refs++;
}

void worker_session_unref(struct worker_session *c)
{
    assert(held(&c->session->lock));
    assert(c->refs > 0);
    if (--c->refs == 0)
        worker_session_free(c);
}

static void end_if_over(struct worker_session *c)
{
    assert(held(&c->session->lock));
    if (!c->worker_gone || c->uses || c->end_posted)
        return;
    c->end_posted = true;
    reaper_post(&c->session->registry->reaper, &c->end_item);
}

void worker_session_unuse(struct worker_session *c)
{
    assert(c->uses > 0);
    c->uses--;
    end_if_over(c);
}

/* Either this sees that the worker is gone, or note_worker_gone() sees that nobody uses it. */
void worker_session_leave_referenced(struct worker_session *c)
{
    unsigned before = c->uses--;

    assert(before > 0);
    if (before > 1 || !c->worker_gone)
        return;
    pthread_mutex_lock(&c->session->lock);
    end_if_over(c);
    pthread_mutex_unlock(&c->session->lock);
}

/* For what has begun: what is to leave waits for it. */
static enum status usable_on(struct session *s, struct problem *why)
{
    assert(held(&s->lock));
    switch (s->state) {
    case SESSION_READY:
        if (s->worker_session && s->worker_session->sleep != SLEEP_NONE)
            return problem_set(why, STATUS_SESSION_BUSY, "the session is hibernated, or on its way there or back; send the request again");
        return STATUS_OK;
    case SESSION_FAULTED:
        problem_set(why, STATUS_SESSION_FAULTED, "the session faulted (%s: %.300s); reset or delete it", status_code(s->fault.status),
                    s->fault.detail);
        if (why) {
            why->cuda_result = s->fault.cuda_result;
            memcpy(why->cuda_name, s->fault.cuda_name, sizeof why->cuda_name);
        }
        return STATUS_SESSION_FAULTED;
    case SESSION_STARTING:
        return problem_set(why, STATUS_SESSION_BUSY, "the session is starting");
    case SESSION_CLOSING:
    case SESSION_HIBERNATED:
        break;
    }
    return ended_problem(s, why);
}

enum status session_usable_locked(struct session *s, struct problem *why)
{
    enum status st = usable_on(s, why);

    return !st && s->move.leaving ? moving_problem(why) : st;
}

enum status session_changeable_locked(struct session *s, struct problem *why)
{
    enum status st = session_usable_locked(s, why);

    if (!st && session_moving_locked(s))
        st = moving_problem(why);
    else if (!st && s->snapshots)
        st = problem_set(why, STATUS_SESSION_BUSY, "a snapshot of the session is being taken, and nothing may change meanwhile; try again");
    s->changes += !st;
    return st;
}

/* With session.lock held; releases it. */
static enum status enter_as(struct session *s, enum status st, struct worker_session **out)
{
    if (!st) {
        *out = s->worker_session;
        s->worker_session->uses++;
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum status worker_session_enter(struct session *s, struct worker_session **out, struct problem *why)
{
    pthread_mutex_lock(&s->lock);
    return enter_as(s, session_usable_locked(s, why), out);
}

enum status worker_session_enter_to_change(struct session *s, struct worker_session **out, struct problem *why)
{
    pthread_mutex_lock(&s->lock);
    return enter_as(s, session_changeable_locked(s, why), out);
}

bool worker_session_use(struct worker_session *c)
{
    bool open;

    pthread_mutex_lock(&c->session->lock);
    open = !c->closed;
    if (open)
        c->uses++;
    pthread_mutex_unlock(&c->session->lock);
    return open;
}

bool worker_session_is_closed(struct worker_session *c)
{
    bool closed;

    pthread_mutex_lock(&c->session->lock);
    closed = c->closed;
    pthread_mutex_unlock(&c->session->lock);
    return closed;
}

void worker_session_leave(struct worker_session *c)
{
    struct session *s = c->session;

    pthread_mutex_lock(&s->lock);
    worker_session_unuse(c);
    pthread_mutex_unlock(&s->lock);
}

/* Outcomes that end a worker session, with what counts them; the last row counts the rest. */
static const struct {
    enum status  status;
    enum counter counter;
} ends[] = {{STATUS_KERNEL_FAULT, COUNTER_RESTARTS_KERNEL_FAULT},           {STATUS_EXECUTION_TIMEOUT, COUNTER_RESTARTS_EXECUTION_TIMEOUT},
            {STATUS_DEVICE_ERROR, COUNTER_RESTARTS_DEVICE_ERROR},           {STATUS_DEVICE_OVERHEATED, COUNTER_RESTARTS_DEVICE_OVERHEATED},
            {STATUS_DEVICE_RESET, COUNTER_RESTARTS_DEVICE_RESET},           {STATUS_DEVICE_LOST, COUNTER_RESTARTS_DEVICE_LOST},
            {STATUS_FAULT_DOMAIN_LOST, COUNTER_RESTARTS_FAULT_DOMAIN_LOST}, {STATUS_WORKER_LOST, COUNTER_RESTARTS_WORKER_LOST}};

static bool ends_worker_session(enum status st)
{
    for (size_t i = 0; i < COUNT(ends); i++)
        if (ends[i].status == st)
            return true;
    return false;
}

static enum counter restarts_of(enum status st)
{
    size_t i = 0;

    while (i < COUNT(ends) - 1 && ends[i].status != st)
        i++;
    return ends[i].counter;
}

/* The first report counts, unless it only said that the worker is gone and this one gives the reason. */
static void worker_session_lose(struct worker_session *c, const struct problem *why)
{
    struct session *s = c->session;
    struct problem  own;

    assert(held(&s->lock));
    if (c->closed || s->worker_session != c)
        return;
    if (c->lost) {
        if (s->fault.status == STATUS_WORKER_LOST && why->status != STATUS_WORKER_LOST)
            s->fault = *why;
        return;
    }
    why = domain_lose(c, why, &own);
    counter_add(restarts_of(why->status), 1);
    budget_charge(s, why->status);
    c->lost = true;
    c->lost_ns = now_ns();
    pending_free_lost(c);
    s->fault = *why;
    session_set_state(s, SESSION_FAULTED);
    log_info("session", "a session faulted: %s", status_code(why->status));
    launch_flush(c);
    temp_buffer_drop_abandoned(c);
    transfer_wake_all(c);
}

void worker_session_check_call(struct worker_session *c, const struct call *call)
{
    struct problem why;

    assert(held(&c->session->lock));
    if (call->status == STATUS_OK || (!call->worker_session_lost && !ends_worker_session(call->status)))
        return;
    why = call->problem;
    why.status = call->status;
    worker_session_lose(c, &why);
}

enum status worker_session_not_submitted(struct worker_session *c, enum status st, struct problem *why)
{
    struct problem end;

    assert(held(&c->session->lock));
    if (st == STATUS_OVERLOADED)
        return problem_set(why, st, "too many calls are waiting for the device");
    worker_end_problem(c->worker, &end);
    problem_set(why, st, "the session's worker has exited");
    worker_session_lose(c, end.status ? &end : why);
    return st;
}

enum status worker_session_leave_with(struct worker_session *c, enum status st, const struct problem *why)
{
    struct session *s = c->session;

    pthread_mutex_lock(&s->lock);
    if (ends_worker_session(st)) {
        struct problem p;
        problem_set(&p, st, "%s", status_title(st));
        worker_session_lose(c, why ? why : &p);
    }
    worker_session_unuse(c);
    pthread_mutex_unlock(&s->lock);
    return st;
}

struct async_call {
    struct call            call;
    struct worker_session *worker_session; /* in use until the answer */
    call_ended            *ended;
    void                  *what;
};

static void on_async_event(struct call *call, enum call_event event)
{
    struct async_call     *f = call->context;
    struct worker_session *c = f->worker_session;
    struct session        *s = c->session;

    if (event != CALL_DONE)
        return;
    pthread_mutex_lock(&s->lock);
    worker_session_check_call(c, call);
    if (f->ended)
        f->ended(c, call, f->what);
    worker_session_unuse(c);
    pthread_mutex_unlock(&s->lock);
    free(f);
}

bool worker_session_call_async(struct worker_session *c, enum message m, const void *body, call_ended *ended, void *what)
{
    struct async_call *f = calloc(1, sizeof *f);

    if (!f || !worker_session_use(c)) {
        free(f);
        return false;
    }
    *f = (struct async_call){{.on_event = on_async_event, .context = f, .deadline_ns = DEADLINE_NEVER}, c, ended, what};
    if (call_submit(c->worker, m, body, &f->call) == STATUS_OK)
        return true;
    worker_session_leave(c);
    free(f);
    return false;
}

enum status worker_session_still_usable(const struct worker_session *c, struct problem *why)
{
    assert(held(&c->session->lock));
    if (c->closed)
        return problem_set(why, STATUS_SESSION_BUSY, "the session was reset or deleted during the request");
    return usable_on(c->session, why);
}

enum status worker_session_wait_order(struct worker_session *c, struct problem *why)
{
    struct session *s = c->session;
    enum status     st;
    uint64_t        number;

    pthread_mutex_lock(&s->lock);
    number = launch_order(c);
    while ((st = worker_session_still_usable(c, why)) == STATUS_OK && !launch_ordered(c, number))
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return st;
}

struct staging_wait {
    struct waker    waker;
    struct session *session;
    bool            woken; /* under session.lock */
};

static void staging_woken(struct waker *w)
{
    struct staging_wait *at = (struct staging_wait *)w;

    pthread_mutex_lock(&at->session->lock);
    at->woken = true;
    pthread_cond_broadcast(&at->session->changed);
    pthread_mutex_unlock(&at->session->lock);
}

enum status worker_session_no_staging(enum status st, struct problem *why)
{
    return problem_set(why, st, st == STATUS_WORKER_LOST ? "the session's worker has exited" : "no staging memory is free");
}

enum status worker_session_staging(struct worker_session *c, uint64_t bytes, struct slice *out, struct problem *why)
{
    struct session *s = c->session;
    enum status     st;

    for (;;) {
        struct staging_wait at = {.waker = {.wake = staging_woken}, .session = s};
        st = staging_take(c->worker, bytes, out, &at.waker);
        if (st != STATUS_PENDING)
            break;
        pthread_mutex_lock(&s->lock);
        while ((st = worker_session_still_usable(c, why)) == STATUS_OK && !at.woken)
            pthread_cond_wait(&s->changed, &s->lock);
        pthread_mutex_unlock(&s->lock);
        staging_unwatch(c->worker, &at.waker);
        if (st)
            return st;
    }
    return st ? worker_session_no_staging(st, why) : STATUS_OK;
}

static void drop_objects(struct worker_session *c)
{
    assert(held(&c->session->lock));
    hibernation_drop(c);
    texture_drop_all(c);
    buffer_drop_all(c);
    program_drop_all(c);
    temp_buffer_drop_all(c);
    module_drop_all(c);
    launch_drop_all(c);
}

/* Adds to the worker sessions that are closing, which keep the session until they have ended. */
static void count_closing(struct session *s, int change)
{
    struct registry *r = s->registry;

    pthread_mutex_lock(&r->lock);
    assert(change > 0 || r->closing_count > 0);
    r->closing_count += (unsigned)change;
    pthread_cond_broadcast(&r->closing_changed);
    pthread_mutex_unlock(&r->lock);
}

void worker_session_detach(struct worker_session *c, const char *reason)
{
    struct session *s = c->session;
    struct problem  why;

    session_pin(s);
    count_closing(s, 1);
    pthread_mutex_lock(&s->lock);
    assert(s->worker_session != c && s->closing > 0);
    domain_detach(c, reason);
    c->closed = true;
    pending_free_begin(c, c->quota_bytes);
    share_detach_all(c);
    quota_release_all(c);
    launch_flush(c);
    temp_buffer_drop_abandoned(c);
    transfer_wake_all(c);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);

    problem_set(&why, STATUS_WORKER_LOST, "%s", reason);
    worker_kill(c->worker, STATUS_WORKER_LOST, &why);
    transfer_unwatch_all(c);
    worker_watch_end(c->worker, &c->end_waker); /* the last touch of c */
}

static void note_worker_gone(struct waker *waker)
{
    struct worker_session *c = (struct worker_session *)((char *)waker - offsetof(struct worker_session, end_waker));
    struct session        *s = c->session;

    pthread_mutex_lock(&s->lock);
    c->worker_gone = true;
    end_if_over(c);
    pthread_mutex_unlock(&s->lock);
}

/* The worker is gone and nobody uses the worker session. Waiters for its memory are woken after its objects are dropped. */
static void end_worker_session(struct reap_item *item)
{
    struct worker_session *c = (struct worker_session *)((char *)item - offsetof(struct worker_session, end_item));
    struct session        *s = c->session;
    bool                   many;

    pool_give_back(s->registry->config.pool, c->worker);
    pthread_mutex_lock(&s->lock);
    c->worker = NULL;
    many = c->buffers.count >= TRIM_OBJECTS;
    drop_objects(c);
    pending_free_end(c);
    worker_session_unref(c);
    assert(s->closing > 0);
    s->closing--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (many)
        malloc_trim(0);
    session_close_finish(s);
    count_closing(s, -1);
    session_unpin(s, false);
}

/* ---- what the events of calls make possible but may not do themselves ---- */

void submit_later(struct worker_session *c)
{
    assert(held(&c->session->lock));
    if (!reaper_post(&c->session->registry->submitter, &c->submit_item))
        return;
    c->refs++; /* the submitter takes session.lock before it touches them */
    session_pin(c->session);
}

static void submit_waiting(struct reap_item *item)
{
    struct worker_session *c = (struct worker_session *)((char *)item - offsetof(struct worker_session, submit_item));
    struct session        *s = c->session;

    if (worker_session_use(c)) {
        pthread_mutex_lock(&c->submit_lock);
        launch_pump(c);
        pthread_mutex_unlock(&c->submit_lock);
        launch_fetch_outputs(c);
        module_unload_some(c);
        temp_buffer_free_some(c);
        janitor_ping(c);
        worker_session_leave(c);
    }
    pthread_mutex_lock(&s->lock);
    worker_session_unref(c);
    pthread_mutex_unlock(&s->lock);
    session_unpin(s, false);
}
