/* Makes batches from JSON and keeps together what they live on. */
#include "api/batch/work.h"
#include "api/bounds.h"

#include <stdlib.h>

#include "api/batch/again.h"
#include "api/batch/frame.h"
#include "api/batch/program_decode.h"
#include "session/life/run_place.h"

enum { JSON_VALUE_BYTES = 96 }; /* of host memory, for one value of a parsed text */

struct batch_work *batch_work_create(struct request *r, bool hidden, bool inline_json, struct session *s)
{
    struct batch_work *w = calloc(1, sizeof *w);
    struct prefer      prefer = request_prefer(r);

    if (!w)
        return NULL;
    arena_init(&w->arena, REQUEST_ARENA_BYTES);
    w->app = app_of(r);
    w->tenant = tenant_of(r);
    w->lenient = prefer.lenient;
    w->background = prefer.respond_async || prefer.wait_s != UINT64_MAX;
    w->may_compile = (r->caller->scopes & SCOPE_COMPILE) != 0;
    w->hidden = hidden;
    w->inline_json = inline_json;
    w->session = s;
    return w;
}

static enum status decode(struct batch_work *w, struct span json, uint64_t body_bytes, struct problem *why)
{
    struct batch_spec *spec = &w->message.spec;
    enum status        st = json_parse_up_to(json, BATCH_JSON_VALUES_MAX, &w->doc, why);

    if (!st && w->program)
        st = program_run_decode(json_root(w->doc), w->program, w->inline_json, w->lenient, &w->arena, &w->message, why);
    else if (!st)
        st = batch_decode(json_root(w->doc), w->inline_json, w->lenient, &w->arena, &w->message, why);
    if (!st && !w->inline_json)
        st = batch_frame_check((uint32_t)json.bytes, spec->segments, spec->segments_count, body_bytes, why);
    if (!st && spec->source && !w->may_compile && !w->program)
        st = problem_set(why, STATUS_INSUFFICIENT_SCOPE, "a module's source needs the scope compile");
    if (!st && w->hidden && spec->keep_count)
        st = problem_field(why, STATUS_INVALID_FIELD, "/keep", "value", "a run without a session cannot keep buffers; omit keep");
    spec->evict = w->hidden;
    spec->answer_streams = !w->inline_json && !w->background;
    w->json_bytes = json.bytes;
    return st;
}

static enum status no_place(struct problem *why)
{
    return problem_set(why, STATUS_OVERLOADED,
                       "this caller has %d runs in progress, or no worker is free, and none finished in %d s; send the request again later",
                       RUNS_AT_ONCE_PER_CALLER, RUN_WAIT_MS / 1000);
}

enum status batch_work_enter(struct batch_work *w, struct request *r)
{
    enum status st;

    r->wake_at_ns = DEADLINE_NEVER;
    if (!w->hidden || w->background || w->place.taken)
        return STATUS_OK;
    if (request_gone(r))
        return problem_set(&r->problem, STATUS_CANCELLED, "the client has disconnected");
    if (!w->place_deadline_ns)
        w->place_deadline_ns = deadline_after_ms(RUN_WAIT_MS);
    st = run_enter(w->app->registry, &w->tenant, &w->place, &r->waker);
    if (st != STATUS_PENDING)
        return st;
    if (now_ns() >= w->place_deadline_ns) {
        run_leave(w->app->registry, &w->place);
        return no_place(&r->problem);
    }
    r->wake_at_ns = w->place_deadline_ns;
    return STATUS_PENDING;
}

/* Its own hidden session, or that of the caller's batches in the background. */
static enum status get_session(struct batch_work *w, struct problem *why)
{
    struct registry *r = w->app->registry;

    return w->place.taken ? run_session(r, &w->tenant, &w->place, &w->session, why) : implicit_session(r, &w->tenant, &w->session, why);
}

static enum status prepare_once(struct batch_work *w, struct problem *why)
{
    enum status st = w->session ? STATUS_OK : get_session(w, why);

    return st ? st : batch_create(w->session, &w->message.spec, &w->batch, why);
}

enum status batch_work_prepare(struct batch_work *w, struct problem *why)
{
    enum status st = prepare_once(w, why);

    for (unsigned i = 0; i < RUN_TRIES_MAX && batch_work_lost(w, st); i++) {
        batch_work_unmake(w);
        *why = (struct problem){0};
        st = prepare_once(w, why);
    }
    return st;
}

enum status batch_work_make(struct batch_work *w, struct span json, uint64_t body_bytes, struct problem *why)
{
    enum status st = decode(w, json, body_bytes, why);

    if (!st)
        st = batch_work_prepare(w, why);
    return batch_work_verdict(w, st, why);
}

void batch_work_unmake(struct batch_work *w)
{
    batch_destroy(w->batch);
    w->batch = NULL;
    if (w->session)
        session_return(w->session);
    w->session = NULL;
}

uint64_t batch_work_bytes(const struct batch_work *w)
{
    uint64_t values = w->json_bytes / 2 + 1; /* "1," is the shortest */

    values = values < BATCH_JSON_VALUES_MAX ? values : BATCH_JSON_VALUES_MAX;
    return sizeof *w + w->arena.used + w->body.bytes + w->json_bytes + values * JSON_VALUE_BYTES;
}

void batch_work_destroy(struct batch_work *w)
{
    if (!w)
        return;
    batch_destroy(w->batch);
    w->batch = NULL;
    if (w->program)
        program_return(w->program);
    batch_work_unmake(w);
    run_leave(w->app->registry, &w->place);
    json_document_destroy(w->doc);
    arena_finish(&w->arena);
    buf_finish(&w->body);
    free(w);
}
