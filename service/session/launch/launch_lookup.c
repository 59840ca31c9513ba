/* What becomes of launches: borrowed, described, cancelled, listed. */
#include "session/bounds.h"
#include "session/launch/internal.h"

const char *work_state_name(enum work_state s)
{
    static const char *const names[] = {[WORK_QUEUED] = "queued",
                                        [WORK_RUNNING] = "running",
                                        [WORK_SUCCEEDED] = "succeeded",
                                        [WORK_FAILED] = "failed",
                                        [WORK_CANCELLED] = "cancelled"};

    return names[s];
}

bool work_state_find_ended(struct span name, enum work_state *out)
{
    for (*out = WORK_SUCCEEDED; *out <= WORK_CANCELLED; (*out)++)
        if (span_is(name, work_state_name(*out)))
            return true;
    return false;
}

enum status launch_borrow(struct session *s, struct span id, struct launch **out, struct problem *why)
{
    struct launch *l;

    pthread_mutex_lock(&s->lock);
    l = s->worker_session ? (struct launch *)table_get(&s->worker_session->launches, id) : NULL;
    if (l)
        l->refs++;
    pthread_mutex_unlock(&s->lock);
    if (!l)
        return problem_set(why, STATUS_LAUNCH_NOT_FOUND, "the session has no launch with this id");
    session_pin(s);
    *out = l;
    return STATUS_OK;
}

struct waitlist *launch_end(struct launch *l)
{
    return &l->end;
}

static void describe(const struct launch *l, struct launch_info *out)
{
    static const struct problem unknown = {.status = STATUS_INTERNAL,
                                           .detail = "the launch failed"}; /* there was no memory for the reason */

    memset(out, 0, sizeof *out);
    memcpy(out->id, l->entry.id, sizeof out->id);
    memcpy(out->module, l->module_id, sizeof out->module);
    memcpy(out->dtype, l->dtype, sizeof out->dtype);
    memcpy(out->stream, l->stream, sizeof out->stream);
    out->vendor = l->vendor;
    out->kernel = l->kernel;
    memcpy(out->grid, l->grid, sizeof out->grid);
    memcpy(out->block, l->block, sizeof out->block);
    out->shared_bytes = l->shared_bytes;
    out->state = l->state;
    out->created_wall_ns = l->created_wall_ns;
    out->started_wall_ns = l->started_wall_ns;
    out->finished_wall_ns = l->finished_wall_ns;
    out->untimed = l->untimed;
    out->gpu_us = l->gpu_us;
    if (waitlist_over(&l->end))
        out->output = (struct span){l->output, l->output_bytes};
    out->output_truncated = l->output_truncated;
    if (l->problem || l->state == WORK_FAILED)
        out->problem = l->problem ? l->problem : &unknown;
}

void launch_info_of(struct launch *l, struct launch_info *out)
{
    struct session *s = l->worker_session->session;

    if (waitlist_over(&l->end)) {
        describe(l, out);
        return;
    }
    pthread_mutex_lock(&s->lock);
    describe(l, out);
    pthread_mutex_unlock(&s->lock);
}

/* ---- cancelling ---- */

/* What could be done at once: not running, and not in the backlog any more. True when the worker is still to be asked. */
static bool cancel_here(struct session *s, struct launch *l, bool *cancelled, enum status *st, struct problem *why)
{
    struct worker_session *c = l->worker_session;
    bool                   ask;

    pthread_mutex_lock(&c->submit_lock);
    pthread_mutex_lock(&s->lock);
    ask = !waitlist_over(&l->end);
    if (ask && l->state == WORK_RUNNING) {
        *st = problem_set(why, STATUS_LAUNCH_RUNNING, "the launch is running");
        ask = false;
    } else if (ask && launch_withdraw(c, l)) {
        *cancelled = true;
        ask = false;
    }
    pthread_mutex_unlock(&s->lock);
    pthread_mutex_unlock(&c->submit_lock);
    return ask;
}

/* Asks the worker for one that may not have been given to the device yet, and waits for its end then. */
static enum status cancel_in_ring(struct worker_session *c, struct launch *l, bool *cancelled, struct problem *why)
{
    struct session                *s = c->session;
    struct msg_launch_cancel       m = {l->number};
    struct msg_launch_cancel_reply got = {0};
    enum status                    st = worker_launch_cancel(c->worker, &m, &got, deadline_after_ms(WORKER_CALL_DEADLINE_MS), why);

    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    while (got.cancelled && !waitlist_over(&l->end))
        pthread_cond_wait(&s->changed, &s->lock);
    *cancelled = l->state == WORK_CANCELLED;
    if (!waitlist_over(&l->end))
        st = problem_set(why, STATUS_LAUNCH_RUNNING, "the launch is running, or waits on the device, which cannot give it back");
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum status launch_cancel(struct session *s, struct launch *l, bool *cancelled, struct problem *why)
{
    struct worker_session *c = l->worker_session;
    enum status            st = STATUS_OK;

    *cancelled = false;
    if (!cancel_here(s, l, cancelled, &st, why))
        return st;
    if (!worker_session_use(c))
        return STATUS_OK; /* a reset or delete is ending it this very moment */
    return worker_session_leave_with(c, cancel_in_ring(c, l, cancelled, why), why);
}

/* Without memory, or room in the ring, it runs for nobody. */
void launch_abandon(struct launch *l)
{
    struct worker_session *c = l->worker_session;
    enum status            st = STATUS_OK;
    bool                   cancelled;

    if (cancel_here(c->session, l, &cancelled, &st, NULL))
        worker_session_call_async(c, MESSAGE_LAUNCH_CANCEL, &(struct msg_launch_cancel){l->number}, NULL, NULL);
}

unsigned launch_list(struct session *s, struct page *page, struct launch **items)
{
    const struct worker_session *c;
    struct entry *const         *at;
    unsigned                     n;

    pthread_mutex_lock(&s->lock);
    c = s->worker_session;
    n = table_page(c ? &c->launches : NULL, page, &at);
    for (unsigned i = 0; i < n; i++) {
        items[i] = (struct launch *)at[i];
        items[i]->refs++;
        session_pin(s);
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}
