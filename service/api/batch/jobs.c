/* Batches in the background: started, followed, their results fetched, ended. */
#include "api/batch/jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/batch/request.h"
#include "api/batch/task.h"
#include "api/endpoints.h"
#include "api/etag.h"
#include "http/message/precondition.h"
#include "session/life/run_place.h"

/* A request that holds a job, maybe over several calls of its handler. In the request's arena; released by on_finish. */
struct following {
    struct batch_job *job; /* a reference */
    bool              hidden;
    bool              async, wait_asked;
    uint64_t          wait_s; /* as granted */
    uint64_t          deadline_ns;
    bool              watching;
    bool              cancel_unless_answered; /* the job was made by this request */
    bool              answered;
};

enum { JOB_ETAG_BYTES = 64 };

/* ---- what all have in common ---- */

static void stop_watching(struct request *r, struct following *f)
{
    if (f->watching)
        batch_job_unwatch(f->job, &r->waker);
    f->watching = false;
    r->wake_at_ns = DEADLINE_NEVER;
}

/* Also the end of a request whose client went away: what is still queued then has nobody to wait for it. */
static void end_following(struct request *r)
{
    struct following *f = r->progress;
    bool              cancelled;

    stop_watching(r, f);
    if (f->cancel_unless_answered && !f->answered)
        batch_job_cancel(f->job, false, &cancelled, NULL);
    batch_job_return(f->job);
}

/* Takes the reference. */
static enum status follow_take(struct request *r, struct batch_job *j, bool hidden, struct following **out)
{
    struct prefer     prefer = request_prefer(r);
    struct following *f = arena_alloc(&r->arena, sizeof *f);

    if (!f) {
        batch_job_return(j);
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    }
    f->job = j;
    f->hidden = hidden;
    f->async = prefer.respond_async;
    f->wait_asked = prefer.wait_s != UINT64_MAX;
    f->wait_s = !f->wait_asked ? 0 : prefer.wait_s < WAIT_S_MAX ? prefer.wait_s : WAIT_S_MAX;
    f->deadline_ns = deadline_after_ns(f->wait_s * NS_PER_S);
    r->progress = f;
    r->on_finish = end_following;
    *out = f;
    return STATUS_OK;
}

/* Without a hidden session there are no batches of it. */
static enum status session_of_jobs(struct request *r, bool hidden, struct session **out)
{
    struct tenant t = tenant_of(r);

    if (!hidden)
        return session_of(r, out);
    if (implicit_session_find(app_of(r)->registry, &t, out, NULL) == STATUS_OK)
        return STATUS_OK;
    return problem_set(&r->problem, STATUS_BATCH_NOT_FOUND, "unknown batch, or its result has expired");
}

static enum status find(struct request *r, bool hidden, struct batch_job **out)
{
    struct session *s;
    enum status     st = session_of_jobs(r, hidden, &s);

    if (st)
        return st;
    st = batch_job_borrow(s, r->params[hidden ? 0 : 1], out, &r->problem);
    session_return(s);
    return st;
}

/* ---- the job as JSON ---- */

/* A state is entered once, and server ids are never used twice. */
static struct span etag_of_job(const struct batch_job_info *i, char out[JOB_ETAG_BYTES])
{
    int n = snprintf(out, JOB_ETAG_BYTES, "\"%" PRIu64 "-%s\"", i->created_wall_ns, batch_job_state_name(i->state));
    return (struct span){out, (size_t)n};
}

static const char *path_of(struct request *r, bool hidden, const char *id, const char *more)
{
    const char *path = hidden ? arena_printf(&r->arena, "/v1/run/%s%s", id, more)
                              : arena_printf(&r->arena, "/v1/sessions/%.*s/batches/%s%s", SPAN_ARG(r->params[0]), id, more);

    return path ? path : "";
}

static void add_members(struct json_writer *w, struct request *r, bool hidden, const struct batch_job_info *i)
{
    json_add_text(w, "id", i->id);
    json_add_text(w, "state", batch_job_state_name(i->state));
    json_add_time(w, "created_at", i->created_wall_ns);
    if (i->started_wall_ns)
        json_add_time(w, "started_at", i->started_wall_ns);
    if (i->finished_wall_ns)
        json_add_time(w, "finished_at", i->finished_wall_ns);
    if (i->expires_wall_ns)
        json_add_time(w, "expires_at", i->expires_wall_ns);
    if (i->state == BATCH_JOB_SUCCEEDED)
        json_add_text(w, "result", path_of(r, hidden, i->id, "/result"));
    add_problem(w, "problem", r, &i->problem);
}

static enum status answer_job(struct request *r, bool hidden, const struct batch_job_info *i, unsigned http_status)
{
    struct answer a;
    char          etag[JOB_ETAG_BYTES];

    etag_of_job(i, etag);
    reply_header_text(&r->reply, "ETag", etag);
    if (http_status == 202)
        reply_header_text(&r->reply, "Location", path_of(r, hidden, i->id, ""));
    answer_begin(&a);
    add_members(&a.w, r, hidden, i);
    return answer_end(&a, r, http_status);
}

static enum status info_of(struct request *r, struct batch_job *j, struct batch_job_info **out)
{
    *out = arena_alloc(&r->arena, sizeof **out);
    if (!*out)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the batch");
    batch_job_info_of(j, *out);
    return STATUS_OK;
}

/* ---- the result ---- */

struct job_owner {
    struct batch_answer_owner owner;
    struct batch_job         *job;
};

static void release_job(struct batch_answer_owner *o)
{
    batch_job_return(((struct job_owner *)o)->job);
    free(o);
}

/* Takes the reference, of one that has succeeded. */
static enum status send_result_take(struct request *r, struct batch_job *j)
{
    struct batch_task *t = batch_job_result(j);
    struct job_owner  *o = calloc(1, sizeof *o);

    if (!t || !o) {
        free(o);
        batch_job_return(j);
        return problem_set(&r->problem, t ? STATUS_OUT_OF_MEMORY : STATUS_INTERNAL, "the result cannot be sent");
    }
    *o = (struct job_owner){{release_job}, j};
    return batch_answer_send_take(batch_task_answer(t), r, &o->owner);
}

/* The outcome of one that has not succeeded. What the problem borrows lives as long as the reference. */
static enum status no_result(struct request *r, const struct batch_job_info *i)
{
    switch (i->state) {
    case BATCH_JOB_QUEUED:
    case BATCH_JOB_RUNNING:
        return problem_set(&r->problem, STATUS_LAUNCH_RUNNING, "the batch is %s; it has no result yet", batch_job_state_name(i->state));
    case BATCH_JOB_CANCELLED:
        return problem_set(&r->problem, STATUS_CANCELLED, "the batch was cancelled");
    case BATCH_JOB_FAILED:
    case BATCH_JOB_SUCCEEDED:
        break;
    }
    r->problem = i->problem;
    return i->problem.status;
}

/* ---- following ---- */

/* Waits without holding the thread. OK: finished, or the time is up. */
static enum status wait_for_end(struct request *r, struct following *f)
{
    if (batch_job_finished(f->job) || now_ns() >= f->deadline_ns)
        return STATUS_OK;
    if (request_gone(r))
        return problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected");
    if (request_revoked(r))
        return wait_revoked(r);
    if (!f->watching) {
        f->watching = batch_job_watch(f->job, &r->waker);
        if (!f->watching)
            return STATUS_OK;
    }
    r->wake_at_ns = f->deadline_ns;
    return STATUS_PENDING;
}

static void applied(struct request *r, const struct following *f)
{
    if (f->async)
        reply_header_text(&r->reply, "Preference-Applied", "respond-async");
    else if (f->wait_asked)
        reply_header(&r->reply, "Preference-Applied", "wait=%" PRIu64, f->wait_s);
}

/* ---- POST ---- */

/* What was answered is kept no longer: nobody knows its id. */
static enum status deliver(struct request *r, struct following *f)
{
    struct batch_job *j = f->job;

    batch_job_forget(j);
    r->progress = NULL;
    r->on_finish = NULL;
    return send_result_take(r, j);
}

enum status batch_follow(struct request *r)
{
    struct following      *f = r->progress;
    struct batch_job_info *i;
    enum status            st = f->async ? STATUS_OK : wait_for_end(r, f);

    if (!st)
        st = info_of(r, f->job, &i);
    if (st)
        return st;
    stop_watching(r, f);
    applied(r, f);
    f->answered = true;
    if (i->state == BATCH_JOB_QUEUED || i->state == BATCH_JOB_RUNNING || f->async)
        return answer_job(r, f->hidden, i, 202);
    if (i->state == BATCH_JOB_SUCCEEDED)
        return deliver(r, f);
    batch_job_forget(f->job);
    return no_result(r, i);
}

bool batch_follows(const struct request *r)
{
    return r->on_finish == end_following;
}

enum status batch_start(struct request *r)
{
    struct batch_work *w = batch_request_take(r);
    struct session    *s = w->session; /* borrowed by the work, then by the job */
    bool               hidden = w->hidden;
    struct batch_task *t = batch_task_create_take(w);
    struct batch_job  *j;
    struct following  *f;
    enum status        st;

    st = t ? batch_job_create_take(s, t, &j, &r->problem)
           : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the batch");
    if (!st)
        st = follow_take(r, j, hidden, &f);
    if (st)
        return st;
    f->cancel_unless_answered = true;
    return batch_follow(r);
}

/* ---- GET ---- */

static enum status answer_followed(struct request *r, struct following *f)
{
    struct batch_job_info *i;
    char                   etag[JOB_ETAG_BYTES];
    struct span            seen = request_header(r, "If-None-Match");
    enum status            st = info_of(r, f->job, &i);

    if (st)
        return st;
    stop_watching(r, f);
    f->async = false;
    applied(r, f);
    if (seen.bytes && etag_listed(seen, etag_of_job(i, etag), true)) {
        reply_header_text(&r->reply, "ETag", etag);
        return reply_empty(&r->reply, 304);
    }
    return answer_job(r, f->hidden, i, 200);
}

/* With Prefer: wait the answer is held until the batch has ended: a long poll. */
static enum status get(struct request *r, bool hidden)
{
    struct following *f = r->progress;
    struct batch_job *j;
    enum status       st = f ? STATUS_OK : query_check(r, NULL);

    if (!st && !f)
        st = conditions_check(r);
    if (!st && !f)
        st = find(r, hidden, &j);
    if (!st && !f)
        st = follow_take(r, j, hidden, &f);
    if (!st && f->wait_asked)
        st = wait_for_end(r, f);
    return st ? st : answer_followed(r, f);
}

enum status batches_get(struct request *r)
{
    return get(r, false);
}

enum status run_get(struct request *r)
{
    return get(r, true);
}

static enum status get_result(struct request *r, bool hidden)
{
    struct batch_job_info *i;
    struct following      *f;
    struct batch_job      *j;
    enum status            st = query_check(r, NULL);

    if (!st)
        st = find(r, hidden, &j);
    if (!st)
        st = follow_take(r, j, hidden, &f);
    if (!st)
        st = info_of(r, j, &i);
    if (st)
        return st;
    if (i->state != BATCH_JOB_SUCCEEDED)
        return no_result(r, i);
    r->progress = NULL;
    r->on_finish = NULL;
    return send_result_take(r, j);
}

enum status batches_result(struct request *r)
{
    return get_result(r, false);
}

enum status run_result(struct request *r)
{
    return get_result(r, true);
}

/* ---- DELETE ---- */

/* Running work is stopped only with its worker: the whole session starts anew. A finished one's result goes. */
static enum status end_job(struct request *r, struct session *s, struct batch_job *j, bool hidden)
{
    struct batch_job_info *i;
    bool                   cancelled, force, reset;
    bool                   finished = batch_job_finished(j);
    enum status            st = force_of(r, &force);

    if (st)
        return st;
    st = batch_job_cancel(j, force, &cancelled, &r->problem);
    reset = st == STATUS_LAUNCH_RUNNING && force;
    if (reset)
        st = session_reset(s, &r->problem);
    if (!st)
        st = info_of(r, j, &i);
    if (st)
        return st;
    if (!finished)
        return answer_job(r, hidden, i, reset ? 202 : 200);
    batch_job_forget(j);
    return reply_empty(&r->reply, 204);
}

static enum status delete_job(struct request *r, bool hidden)
{
    struct batch_job *j;
    struct session   *s;
    enum status       st = session_of_jobs(r, hidden, &s);

    if (st)
        return st;
    st = batch_job_borrow(s, r->params[hidden ? 0 : 1], &j, &r->problem);
    if (!st) {
        st = end_job(r, s, j, hidden);
        batch_job_return(j);
    }
    session_return(s);
    return st;
}

enum status batches_delete(struct request *r)
{
    return delete_job(r, false);
}

enum status run_delete(struct request *r)
{
    return delete_job(r, true);
}
