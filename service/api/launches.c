/* Launches: submit and wait, follow, cancel. */
#include <inttypes.h>
#include <stdio.h>

#include "api/bounds.h"
#include "api/decode/launch_json.h"
#include "api/endpoints.h"
#include "base/spin.h"
#include "http/message/precondition.h"

/* A request that holds a launch, maybe over several calls of its handler. In the request's arena; released by on_finish. */
struct following {
    struct session *session; /* borrowed */
    struct launch  *launch;  /* a reference; NULL until submitted or found */
    uint64_t        deadline_ns;
    uint64_t        wait_s; /* as granted */
    bool            wait_asked;
    bool            watching;
    bool            cancel_unless_answered; /* the launch was made by this request */
    bool            answered;
};

enum { LAUNCH_ETAG_BYTES = 64 };

/* A state is entered once; the birth tells launches apart that had the same id one after the other. */
static struct span etag_of_launch(const struct launch_info *i, char out[LAUNCH_ETAG_BYTES])
{
    int n = snprintf(out, LAUNCH_ETAG_BYTES, "\"%" PRIu64 "-%s\"", i->created_wall_ns, launch_state_name(i->state));
    return (struct span){out, (size_t)n};
}

static void stop_watching(struct request *r, struct following *f)
{
    if (f->watching)
        launch_unwatch(f->launch, &r->waker);
    f->watching = false;
    r->wake_at_ns = DEADLINE_NEVER;
}

/* Also the end of a request whose client went away: what is still queued then has nobody to wait for it. */
static void on_finish(struct request *r)
{
    struct following *f = r->progress;

    if (f->launch) {
        stop_watching(r, f);
        if (f->cancel_unless_answered && !f->answered)
            launch_abandon(f->launch);
        launch_return(f->launch);
    }
    session_return(f->session);
}

static enum status follow(struct request *r, struct following **out)
{
    struct prefer     prefer = request_prefer(r);
    struct following *f = arena_alloc(&r->arena, sizeof *f);
    enum status       st;

    if (!f)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    st = session_of(r, &f->session);
    if (st)
        return st;
    f->wait_asked = prefer.wait_s != UINT64_MAX;
    f->wait_s = !f->wait_asked ? WAIT_S_DEFAULT : prefer.wait_s < WAIT_S_MAX ? prefer.wait_s : WAIT_S_MAX;
    f->deadline_ns = deadline_after_ns(f->wait_s * NS_PER_S);
    r->progress = f;
    r->on_finish = on_finish;
    *out = f;
    return STATUS_OK;
}

/* recv is from the header to the submission or, when somebody else's launch is asked for, to the answer. */
static void note_timing(struct request *r, const struct launch_info *i)
{
    uint64_t started = i->started_wall_ns ? i->started_wall_ns : i->finished_wall_ns ? i->finished_wall_ns : wall_ns();
    uint64_t total = now_ns() - r->received_ns;
    uint64_t made_ago = wall_ns() - i->created_wall_ns;

    r->timing = (struct timing){.known = true,
                                .recv_ms = total > made_ago ? (double)(total - made_ago) / 1e6 : 0.0,
                                .queue_ms = started > i->created_wall_ns ? (double)(started - i->created_wall_ns) / 1e6 : 0.0,
                                .kernel_ms = i->gpu_us / 1e3};
}

static enum status answer_launch(struct request *r, const struct launch_info *i, unsigned http_status)
{
    struct answer a;
    char          etag[LAUNCH_ETAG_BYTES];

    etag_of_launch(i, etag);
    reply_header_text(&r->reply, "ETag", etag);
    if (http_status == 202)
        reply_header(&r->reply, "Location", "/v1/sessions/%.*s/launches/%s", SPAN_ARG(r->params[0]), i->id);
    note_timing(r, i);
    answer_begin(&a);
    launch_members(&a.w, r, i);
    return answer_end(&a, r, http_status);
}

/* Waits without holding the thread. OK: finished, or the time is up. */
static enum status wait_for_end(struct request *r, struct following *f)
{
    if (launch_finished(f->launch) || now_ns() >= f->deadline_ns)
        return STATUS_OK;
    if (request_gone(r))
        return problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected");
    if (request_revoked(r))
        return wait_revoked(r);
    if (!f->watching) {
        f->watching = launch_watch(f->launch, &r->waker);
        if (!f->watching)
            return STATUS_OK;
    }
    r->wake_at_ns = f->deadline_ns;
    return STATUS_PENDING;
}

/* ---- POST ---- */

static void applied(struct request *r, const struct following *f, bool async)
{
    if (async)
        reply_header_text(&r->reply, "Preference-Applied", "respond-async");
    else if (f->wait_asked)
        reply_header(&r->reply, "Preference-Applied", "wait=%" PRIu64, f->wait_s);
}

static enum status answer_end_of(struct request *r, const struct launch_info *i)
{
    switch (i->state) {
    case LAUNCH_QUEUED:
    case LAUNCH_RUNNING:
        return answer_launch(r, i, 202);
    case LAUNCH_SUCCEEDED:
        return answer_launch(r, i, 200);
    case LAUNCH_CANCELLED:
        return problem_set(&r->problem, STATUS_CANCELLED, "the launch %s was cancelled", i->id);
    case LAUNCH_FAILED:
        break;
    }
    note_timing(r, i);
    r->problem = i->problem;
    return i->problem.status;
}

static enum status answer_submitted(struct request *r, struct following *f)
{
    struct launch_info *info = arena_alloc(&r->arena, sizeof *info);
    bool                async = request_prefer(r).respond_async;
    enum status         st = info ? STATUS_OK : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the launch");

    if (!st && !async)
        st = wait_for_end(r, f);
    if (st)
        return st;
    stop_watching(r, f);
    launch_info_of(f->launch, info);
    f->answered = true;
    applied(r, f, async);
    return async ? answer_launch(r, info, 202) : answer_end_of(r, info);
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
    struct json_document *doc = NULL;
    struct launch_spec    spec;
    struct following     *f;
    struct launch        *launch;
    bool                  created = false;
    enum status           st = query_check(r, NULL);

    timing_begin(r);
    if (!st)
        st = follow(r, &f);
    if (st)
        return st;
    st = launch_decode(r, &spec, &doc);
    spec.at_once = !r->wants_executor;
    spec.spin_ns = request_prefer(r).respond_async ? 0 : spin_budgets()->call_ns;
    if (!st)
        st = launch_submit(f->session, &spec, &launch, &created, &r->problem);
    if (st == STATUS_PENDING)
        st = to_executor(r);
    json_document_destroy(doc);
    if (st)
        return st;
    f->launch = launch;
    f->cancel_unless_answered = created;
    return answer_submitted(r, f);
}

enum status launches_create(struct request *r)
{
    return r->progress ? answer_submitted(r, r->progress) : submit(r);
}

/* ---- GET ---- */

static enum status answer_followed(struct request *r, struct following *f)
{
    struct launch_info *info = arena_alloc(&r->arena, sizeof *info);
    char                etag[LAUNCH_ETAG_BYTES];
    struct span         seen = request_header(r, "If-None-Match");

    if (!info)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the launch");
    stop_watching(r, f);
    launch_info_of(f->launch, info);
    applied(r, f, false);
    if (seen.bytes && etag_listed(seen, etag_of_launch(info, etag), true)) {
        reply_header_text(&r->reply, "ETag", etag);
        return reply_empty(&r->reply, 304);
    }
    return answer_launch(r, info, 200);
}

static enum status find(struct request *r, struct following **out)
{
    struct launch *launch;
    enum status    st = query_check(r, NULL);

    if (!st)
        st = conditions_check(r);
    if (!st)
        st = follow(r, out);
    if (!st)
        st = launch_borrow((*out)->session, r->params[1], &launch, &r->problem);
    if (!st)
        (*out)->launch = launch;
    return st;
}

/* With Prefer: wait the answer is held until the launch has ended: a long poll. */
enum status launches_get(struct request *r)
{
    struct following *f = r->progress;
    enum status       st = f ? STATUS_OK : find(r, &f);

    if (!st && f->wait_asked)
        st = wait_for_end(r, f);
    return st ? st : answer_followed(r, f);
}

enum status launches_list(struct request *r)
{
    struct launch_info *info = arena_alloc(&r->arena, sizeof *info);
    struct launch     **items;
    struct session     *s;
    struct page         page;
    struct answer       a;
    unsigned            n;
    enum status         st = page_of(r, 0, &page);

    if (st)
        return st;
    items = arena_array(&r->arena, page.limit, sizeof(struct launch *));
    if (!items || !info)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the list; set a lower limit");
    st = session_of(r, &s);
    if (st)
        return st;
    n = launch_list(s, &page, items);
    answer_list_begin(&a);
    for (unsigned i = 0; i < n; i++) {
        launch_info_of(items[i], info);
        json_open_object(&a.w, NULL);
        launch_members(&a.w, r, info);
        json_close_object(&a.w);
        launch_return(items[i]);
    }
    session_return(s);
    return answer_list_end(&a, r, &page);
}

/* ---- DELETE ---- */

/* A running kernel is stopped only with its worker: the whole session starts anew. */
static enum status cancel(struct request *r, struct session *s, struct launch *l, bool force)
{
    struct launch_info *info = arena_alloc(&r->arena, sizeof *info);
    bool                cancelled, reset;
    enum status         st = launch_cancel(s, l, &cancelled, &r->problem);

    reset = st == STATUS_LAUNCH_RUNNING && force;
    if (reset)
        st = session_reset(s, &r->problem);
    if (!st && !info)
        st = problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the launch");
    if (st)
        return st;
    launch_info_of(l, info);
    return answer_launch(r, info, reset ? 202 : 200);
}

enum status launches_delete(struct request *r)
{
    struct session *s;
    struct launch  *l;
    bool            force;
    enum status     st = force_of(r, &force);

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
