/* Batches: done at once or in the background, answered in the form in which they came; followed, their results fetched, ended. */
#include "api/batch/request.h"
#include "api/bounds.h"
#include "api/endpoints.h"
#include "api/follow.h"

enum { JSON_VALUE_BYTES = 96 }; /* of host memory, for one value of a parsed text */

/* A request that holds a job in the background, maybe over several calls of its handler. In the request's arena; released by on_finish. */
struct job_request {
    struct batch_job *job; /* a reference */
    struct follow     follow;
    bool              unanswered; /* the job was made by this request, which has not told its id yet */
};

/* ---- what all have in common ---- */

/* Also the end of a request whose client went away: what is still queued then has nobody to wait for it. */
static void end_following(struct request *r)
{
    struct job_request *q = r->progress;

    follow_stop(&q->follow, r);
    if (q->unanswered)
        batch_job_cancel(q->job, false, NULL);
    batch_job_return(q->job);
}

static struct job_request *make_following(struct request *r)
{
    struct job_request *q = arena_alloc(&r->arena, sizeof *q);

    if (!q)
        problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    return q;
}

/* Takes the reference. */
static void follow_take(struct request *r, struct job_request *q, struct batch_job *j)
{
    q->job = j;
    follow_begin(&q->follow, r, &j->end);
    r->progress = q;
    r->on_finish = end_following;
}

/* Of runs, not of batches of a session. */
static bool is_run(const struct request *r)
{
    return span_starts(r->path, "/v1/run");
}

/* Without an implicit session there are no batches of it. */
static enum status session_of_jobs(struct request *r, struct session **out)
{
    struct tenant t = tenant_of(r);

    if (!is_run(r))
        return session_of(r, out);
    if (implicit_session_find(app_of(r)->registry, &t, out, NULL) == STATUS_OK)
        return STATUS_OK;
    return problem_set(&r->problem, STATUS_BATCH_NOT_FOUND, "unknown batch, or its result has expired");
}

static enum status borrow_job(struct request *r, struct session *s, struct batch_job **out)
{
    return batch_job_borrow(s, r->params[is_run(r) ? 0 : 1], out, &r->problem);
}

/* The job that the path names, followed. */
static enum status find_job(struct request *r, struct job_request **out)
{
    struct job_request *q = make_following(r);
    struct batch_job   *j;
    struct session     *s;
    enum status         st = q ? session_of_jobs(r, &s) : STATUS_OUT_OF_MEMORY;

    if (st)
        return st;
    st = borrow_job(r, s, &j);
    session_return(s);
    if (st)
        return st;
    follow_take(r, q, j);
    *out = q;
    return STATUS_OK;
}

/* ---- the job as JSON ---- */

static const char *path_of(struct request *r, const char *id, const char *more)
{
    const char *path = is_run(r) ? arena_printf(&r->arena, "/v1/run/%s%s", id, more)
                                 : arena_printf(&r->arena, "/v1/sessions/%.*s/batches/%s%s", SPAN_ARG(sid_of(r)), id, more);

    return path ? path : "";
}

static void add_members(struct json_writer *w, struct request *r, const struct batch_job_info *i)
{
    json_add_text(w, "id", i->id);
    json_add_text(w, "state", work_state_name(i->state));
    json_add_time(w, "created_at", i->created_wall_ns);
    if (i->started_wall_ns)
        json_add_time(w, "started_at", i->started_wall_ns);
    if (i->finished_wall_ns)
        json_add_time(w, "finished_at", i->finished_wall_ns);
    if (i->expires_wall_ns)
        json_add_time(w, "expires_at", i->expires_wall_ns);
    if (i->state == WORK_SUCCEEDED)
        json_add_text(w, "result", path_of(r, i->id, "/result"));
    add_problem(w, "problem", r, &i->problem);
}

static enum status answer_job(struct request *r, const struct batch_job_info *i, unsigned http_status)
{
    struct answer a;

    if (follow_etag(r, i->created_wall_ns, work_state_name(i->state)))
        return reply_empty(&r->reply, 304);
    if (http_status == 202)
        reply_header_text(&r->reply, "Location", path_of(r, i->id, ""));
    answer_begin(&a);
    add_members(&a.w, r, i);
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

/* The outcome of one that has not succeeded. What the problem borrows lives as long as the reference. */
static enum status no_result(struct request *r, const struct batch_job_info *i)
{
    switch (i->state) {
    case WORK_QUEUED:
    case WORK_RUNNING:
        return problem_set(&r->problem, STATUS_LAUNCH_RUNNING, "the batch is %s; it has no result yet", work_state_name(i->state));
    case WORK_CANCELLED:
        return problem_set(&r->problem, STATUS_CANCELLED, "the batch was cancelled");
    case WORK_FAILED:
    case WORK_SUCCEEDED:
        break;
    }
    r->problem = i->problem;
    return i->problem.status;
}

/* How the job stands, once it has ended or the request waits no longer. */
static enum status await_job(struct request *r, struct job_request *q, struct batch_job_info **out)
{
    enum status st = follow_wait(&q->follow, r);

    if (!st)
        st = info_of(r, q->job, out);
    if (st)
        return st;
    follow_stop(&q->follow, r);
    follow_applied(&q->follow, r);
    return STATUS_OK;
}

/* ---- POST ---- */

/* What was answered is kept no longer: nobody knows its id. */
static enum status answer_started(struct request *r, struct job_request *q)
{
    struct batch_job_info *i;
    enum status            st = await_job(r, q, &i);

    if (st)
        return st;
    q->unanswered = false;
    if (i->state == WORK_QUEUED || i->state == WORK_RUNNING || q->follow.async)
        return answer_job(r, i, 202);
    batch_job_forget(q->job);
    if (q->follow.minimal && i->state == WORK_SUCCEEDED && !((struct batch_request *)q->job)->answer.tells) {
        r->timing.known = false;
        return reply_empty(&r->reply, 204);
    }
    return i->state == WORK_SUCCEEDED ? batch_answer_send_take((struct batch_request *)q->job, r) : no_result(r, i);
}

/* Host memory that it takes, at most. */
static uint64_t waiting_bytes(const struct batch_request *b)
{
    uint64_t values = b->json_bytes / 2 + 1; /* "1," is the shortest */

    values = values < BATCH_JSON_VALUES_MAX ? values : BATCH_JSON_VALUES_MAX;
    return sizeof *b + b->job.arena.used + b->text.bytes + b->json_bytes + values * JSON_VALUE_BYTES;
}

static enum status start(struct request *r, struct batch_request *b)
{
    struct job_request *q = make_following(r);
    enum status         st;

    if (!q)
        return STATUS_OUT_OF_MEMORY;
    b->job.bytes = waiting_bytes(b);
    st = batch_job_queue(&b->job, &r->problem);
    if (st)
        return st;
    r->sink = NULL;
    follow_take(r, q, &b->job);
    q->unanswered = true;
    return answer_started(r, q);
}

static enum status run(struct request *r, struct batch_request *b)
{
    enum status st = batch_job_run(&b->job, &r->problem);

    if (st)
        return st;
    st = batch_answer_make(b, &r->problem);
    if (!st)
        st = batch_answer_send_take(b, r);
    r->problem.was_done = st == STATUS_OUT_OF_MEMORY;
    return st;
}

enum status batches_create(struct request *r)
{
    struct batch_request *b = r->progress;
    enum status           st;

    if (r->on_finish == end_following)
        return answer_started(r, r->progress);
    st = batch_request_complete(b, r);
    if (st)
        return st;
    return b->background ? start(r, b) : run(r, b);
}

enum status run_create(struct request *r)
{
    return batches_create(r);
}

/* On the loop, if all that a run has to wait for is its end. What is made by then, the executor goes on with. */
enum status programs_run(struct request *r)
{
    struct batch_request *b = r->progress;
    enum status           st = STATUS_OK;

    if (r->wants_executor)
        return batches_create(r);
    r->wants_executor = r->body.bytes > RUN_ON_LOOP_BYTES_MAX;
    if (r->wants_executor)
        return STATUS_PENDING;
    if (!b->job.batch)
        st = batch_request_complete(b, r);
    if (st)
        return st;
    r->wants_executor = !batch_is_under_way(b->job.batch) && !batch_job_begin(&b->job);
    return !r->wants_executor && batch_landed(b->job.batch, &r->waker) ? run(r, b) : STATUS_PENDING;
}

/* ---- GET ---- */

/* With Prefer: wait the answer is held until the batch has ended: a long poll. */
enum status batches_get(struct request *r)
{
    struct job_request    *q = r->progress;
    struct batch_job_info *i;
    enum status            st = q ? STATUS_OK : find_job(r, &q);

    if (!st)
        st = await_job(r, q, &i);
    return st ? st : answer_job(r, i, 200);
}

enum status batches_result(struct request *r)
{
    struct batch_job_info *i;
    struct job_request    *q;
    enum status            st = find_job(r, &q);

    if (!st)
        st = info_of(r, q->job, &i);
    if (st)
        return st;
    return i->state == WORK_SUCCEEDED ? batch_answer_send_take((struct batch_request *)q->job, r) : no_result(r, i);
}

/* ---- DELETE ---- */

/* Running work is stopped only with its worker: the whole session starts anew. A finished one's result goes. */
static enum status end_job(struct request *r, struct session *s, struct batch_job *j)
{
    struct batch_job_info *i;
    bool                   force, reset;
    bool                   finished = waitlist_over(&j->end);
    enum status            st = flag_of(r, "force", &force);

    if (st)
        return st;
    st = batch_job_cancel(j, force, &r->problem);
    reset = st == STATUS_LAUNCH_RUNNING && force;
    if (reset)
        st = session_reset(s, &r->problem);
    if (!st)
        st = info_of(r, j, &i);
    if (st)
        return st;
    if (!finished)
        return answer_job(r, i, reset ? 202 : 200);
    batch_job_forget(j);
    return reply_empty(&r->reply, 204);
}

enum status batches_delete(struct request *r)
{
    struct batch_job *j;
    struct session   *s;
    enum status       st = session_of_jobs(r, &s);

    if (st)
        return st;
    st = borrow_job(r, s, &j);
    if (!st) {
        st = end_job(r, s, j);
        batch_job_return(j);
    }
    session_return(s);
    return st;
}
