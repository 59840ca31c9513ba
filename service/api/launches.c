/* Launches: submit and wait, follow, cancel. */
#include <math.h>

#include "api/decode/launch_json.h"
#include "api/endpoints.h"
#include "api/follow.h"
#include "base/threads/spin.h"

/* A request that holds a launch, maybe over several calls of its handler. In the request's arena; released by on_finish. */
struct launch_request {
    struct session *session; /* borrowed */
    struct launch  *launch;  /* a reference; NULL until submitted or found */
    struct follow   follow;
    bool            unanswered; /* the launch was made by this request, which has not told its id yet */
};

/* Also the end of a request whose client went away: what is still queued then has nobody to wait for it. */
static void on_finish(struct request *r)
{
    struct launch_request *q = r->progress;

    if (q->launch) {
        follow_stop(&q->follow, r);
        if (q->unanswered)
            launch_abandon(q->launch);
        launch_return(q->launch);
    }
    session_return(q->session);
}

static enum status begin(struct request *r, struct launch_request **out)
{
    struct launch_request *q = arena_alloc(&r->arena, sizeof *q);
    enum status            st;

    if (!q)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    st = session_of(r, &q->session);
    if (st)
        return st;
    r->progress = q;
    r->on_finish = on_finish;
    *out = q;
    return STATUS_OK;
}

static void hold(struct request *r, struct launch_request *q, struct launch *l)
{
    q->launch = l;
    follow_begin(&q->follow, r, launch_end(l));
}

/* recv of who asks for a launch is from the header to the launch's submission, if that is later; who submits one has noted it then. */
static void note_timing(struct request *r, const struct launch_info *i)
{
    uint64_t started = i->started_wall_ns ? i->started_wall_ns : i->finished_wall_ns ? i->finished_wall_ns : wall_ns();
    double   recv_ms = r->timing.recv_ms;

    if (!r->timing.known)
        recv_ms = fmax(0, ms_since(r->received_ns) - (double)(wall_ns() - i->created_wall_ns) / (double)NS_PER_MS);
    r->timing = (struct timing){.known = true,
                                .recv_ms = recv_ms,
                                .queue_ms = started > i->created_wall_ns ? (double)(started - i->created_wall_ns) / 1e6 : 0.0,
                                .kernel_ms = i->gpu_us / 1e3};
}

static enum status answer_launch(struct request *r, const struct launch_info *i, unsigned http_status)
{
    struct answer a;

    if (follow_etag(r, i->created_wall_ns, work_state_name(i->state)))
        return reply_empty(&r->reply, 304);
    if (http_status == 202)
        reply_header(&r->reply, "Location", "/v1/sessions/%.*s/launches/%s", SPAN_ARG(sid_of(r)), i->id);
    note_timing(r, i);
    answer_begin(&a);
    launch_members(&a.w, r, i);
    return answer_end(&a, r, http_status);
}

/* How the launch stands, once it has ended or the request waits no longer. */
static enum status await_launch(struct request *r, struct launch_request *q, struct launch_info *out)
{
    enum status st = follow_wait(&q->follow, r);

    if (st)
        return st;
    follow_stop(&q->follow, r);
    launch_info_of(q->launch, out);
    follow_applied(&q->follow, r);
    return STATUS_OK;
}

/* ---- POST ---- */

/* Who has chosen a built-in kernel learns which engine did it. */
static bool has_nothing_to_tell(const struct launch_info *i)
{
    return i->state == WORK_SUCCEEDED && i->untimed && !i->output.bytes && !i->output_truncated && !i->dtype[0];
}

static enum status answer_end_of(struct request *r, const struct launch_info *i)
{
    switch (i->state) {
    case WORK_QUEUED:
    case WORK_RUNNING:
        return answer_launch(r, i, 202);
    case WORK_SUCCEEDED:
        return answer_launch(r, i, 200);
    case WORK_CANCELLED:
        return problem_set(&r->problem, STATUS_CANCELLED, "the launch %s was cancelled", i->id);
    case WORK_FAILED:
        break;
    }
    note_timing(r, i);
    r->problem = *i->problem;
    return i->problem->status;
}

static enum status answer_submitted(struct request *r, struct launch_request *q)
{
    struct launch_info info;
    enum status        st = await_launch(r, q, &info);

    if (st)
        return st;
    q->unanswered = false;
    if (q->follow.minimal && !q->follow.async && has_nothing_to_tell(&info)) {
        r->timing.known = false;
        return reply_empty(&r->reply, 204);
    }
    return q->follow.async ? answer_launch(r, &info, 202) : answer_end_of(r, &info);
}

/* Everything begins anew there. */
static enum status to_executor(struct request *r)
{
    on_finish(r);
    r->on_finish = NULL;
    r->progress = NULL;
    r->wants_executor = true;
    return STATUS_PENDING;
}

static enum status submit(struct request *r)
{
    struct launch_spec     spec;
    struct launch_request *q = NULL;
    struct launch         *launch;
    bool                   created = false;
    enum status            st = begin(r, &q);

    timing_begin(r);
    if (!st)
        st = launch_decode(r, &spec);
    if (st)
        return st;
    spec.at_once = !r->wants_executor;
    spec.spin_ns = request_prefer(r).respond_async ? 0 : spin_budgets()->call_ns;
    st = launch_submit(q->session, &spec, &launch, &created, &r->problem);
    if (st == STATUS_PENDING)
        return to_executor(r);
    if (st)
        return st;
    hold(r, q, launch);
    q->unanswered = created;
    return answer_submitted(r, q);
}

enum status launches_create(struct request *r)
{
    return r->progress ? answer_submitted(r, r->progress) : submit(r);
}

/* ---- GET ---- */

static enum status find(struct request *r, struct launch_request **out)
{
    struct launch *launch;
    enum status    st = begin(r, out);

    if (!st)
        st = launch_borrow((*out)->session, r->params[1], &launch, &r->problem);
    if (!st)
        hold(r, *out, launch);
    return st;
}

/* With Prefer: wait the answer is held until the launch has ended: a long poll. */
enum status launches_get(struct request *r)
{
    struct launch_request *q = r->progress;
    struct launch_info     info;
    enum status            st = q ? STATUS_OK : find(r, &q);

    if (!st)
        st = await_launch(r, q, &info);
    return st ? st : answer_launch(r, &info, 200);
}

static void add_launches(struct list *l)
{
    struct launch    **items = l->items;
    unsigned           n = launch_list(l->session, &l->page, items);
    struct launch_info info;

    for (unsigned i = 0; i < n; i++) {
        launch_info_of(items[i], &info);
        json_open_object(l->w, NULL);
        launch_members(l->w, l->request, &info);
        json_close_object(l->w);
        launch_return(items[i]);
    }
}

enum status launches_list(struct request *r)
{
    return answer_list(r, 0, sizeof(struct launch *), add_launches);
}

/* ---- DELETE ---- */

/* A running kernel is stopped only with its worker: the whole session starts anew. */
static enum status cancel(struct request *r, struct session *s, struct launch *l, bool force)
{
    struct launch_info info;
    bool               cancelled, reset;
    enum status        st = launch_cancel(s, l, &cancelled, &r->problem);

    reset = st == STATUS_LAUNCH_RUNNING && force;
    if (reset)
        st = session_reset(s, &r->problem);
    if (st)
        return st;
    launch_info_of(l, &info);
    return answer_launch(r, &info, reset ? 202 : 200);
}

enum status launches_delete(struct request *r)
{
    struct session *s;
    struct launch  *l;
    bool            force;
    enum status     st = flag_of(r, "force", &force);

    if (!st)
        st = session_of(r, &s);
    if (st)
        return st;
    st = launch_borrow(s, r->params[1], &l, &r->problem);
    if (!st) {
        st = cancel(r, s, l, force);
        launch_return(l);
    }
    session_return(s);
    return st;
}
