/* A session's events as server-sent events. */
#include "session/events/events.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/devices.h"
#include "api/endpoints.h"
#include "api/events/event_stream.h"

struct session_stream {
    struct event_stream stream;
    struct session     *session; /* observed, not used */
    struct event_cursor cursor;
    struct event        event; /* the event being written */
    struct buf          text;
    uint32_t            budget; /* the limit of faults within the window */
    char                session_id[ID_BYTES], device[DEVICE_ID_BYTES];
};

static const char *const type_names[EVENT_TYPES] = {"session.state", "launch.queued", "launch.started", "launch.finished", "kernel.printf",
                                                    "device.health", "faults.budget", "memory.low",     "resync"};

/* ---- one event ---- */

/* Names the launch by its id, or by its place in a batch. */
static void add_which(struct json_writer *w, const struct event *e)
{
    if (e->batch.number == 0) {
        json_add_text(w, "launch", e->launch);
        return;
    }
    json_add_u64(w, "batch", e->batch.number);
    json_add_u64(w, "op", e->batch.op);
    if (e->batch.op_last == e->batch.op)
        return;
    json_add_u64(w, "op_last", e->batch.op_last);
    json_add_u64(w, "launches", e->batch.launches);
}

static void add_launch(struct json_writer *w, const struct event *e)
{
    add_which(w, e);
    json_add_text(w, "state", work_state_name(e->state.launch));
    if (e->type != EVENT_LAUNCH_FINISHED)
        return;
    if (e->timed)
        json_add_double(w, "gpu_us", e->gpu_us);
    if (e->status)
        json_add_text(w, "code", status_code(e->status));
}

static void add_low_memory(struct json_writer *w, const struct session_stream *s)
{
    const struct event *e = &s->event;

    json_add_text(w, "session", s->session_id);
    json_add_u64(w, "used_bytes", e->state.memory.used);
    json_add_u64_or_null(w, "limit_bytes", e->state.memory.limit);
    if (!e->status)
        return;
    json_add_u64(w, "requested_bytes", e->state.memory.requested < JSON_INTEGER_MAX ? e->state.memory.requested : JSON_INTEGER_MAX);
    json_add_text(w, "code", status_code(e->status));
}

static void add_members(struct json_writer *w, const struct session_stream *s)
{
    const struct event *e = &s->event;

    switch (e->type) {
    case EVENT_SESSION_STATE:
        json_add_text(w, "session", s->session_id);
        json_add_text(w, "state", session_state_name(e->state.session));
        json_add_u64(w, "generation", e->generation);
        if (e->status)
            json_add_text(w, "code", status_code(e->status));
        return;
    case EVENT_LAUNCH_QUEUED:
    case EVENT_LAUNCH_STARTED:
    case EVENT_LAUNCH_FINISHED:
        add_launch(w, e);
        return;
    case EVENT_KERNEL_PRINTF:
        add_which(w, e);
        json_add_string(w, "text", buf_span(&s->text));
        json_add_bool(w, "truncated", e->truncated);
        return;
    case EVENT_DEVICE_HEALTH:
        json_add_text(w, "device", s->device);
        json_add_text(w, "state", device_state_name(e->state.device));
        if (e->step)
            json_add_text(w, "step", recovery_step_name(e->step));
        return;
    case EVENT_FAULTS_BUDGET:
        json_add_text(w, "device", s->device);
        json_add_text(w, "state", e->state.spent ? "spent" : "free");
        json_add_u64(w, "max", s->budget);
        return;
    case EVENT_MEMORY_LOW:
        add_low_memory(w, s);
        return;
    case EVENT_RESYNC:
    case EVENT_TYPES:
        return;
    }
}

/* One data line is enough: JSON text here has no line breaks. */
static void add_event(struct session_stream *s)
{
    struct buf        *lines = &s->stream.lines;
    struct json_writer w;

    buf_printf(lines, "id: %" PRIu64 "\nevent: %s\ndata: ", s->event.id, type_names[s->event.type]);
    json_writer_init(&w, lines);
    json_open_object(&w, NULL);
    json_add_time(&w, "at", s->event.wall_ns);
    add_members(&w, s);
    json_close_object(&w);
    buf_add_text(lines, "\n\n");
}

/* ---- the stream ---- */

static enum status next_event(struct event_stream *stream)
{
    struct session_stream *s = (struct session_stream *)stream;

    buf_clear(&s->text);
    switch (events_next(s->session, &s->cursor, &s->event, &s->text)) {
    case EVENTS_ONE:
        add_event(s);
        return STATUS_OK;
    case EVENTS_GAP:
        s->event = (struct event){.id = s->cursor.last, .type = EVENT_RESYNC, .wall_ns = wall_ns()};
        add_event(s);
        return STATUS_OK;
    case EVENTS_NONE:
        return STATUS_PENDING;
    case EVENTS_OVER:
        break;
    }
    return STATUS_OK;
}

/* A cursor's registration outlives one wait, so it has a waker of its own. */
static void wake_reader(struct waker *w)
{
    struct session_stream *s = (struct session_stream *)((char *)w - offsetof(struct session_stream, cursor.waker));

    s->stream.request->waker.wake(&s->stream.request->waker);
}

static void end_events(struct event_stream *stream)
{
    struct session_stream *s = (struct session_stream *)stream;

    events_unwatch(s->session, &s->cursor);
    session_unobserve(s->session);
    buf_finish(&s->text);
}

/* ---- the request ---- */

struct wanted {
    unsigned types;
    uint64_t seconds;
    bool     resumes;
    uint64_t last;
};

static unsigned type_of(struct span name)
{
    for (unsigned i = 0; i < EVENT_TYPES; i++)
        if (span_is(name, type_names[i]))
            return 1u << i;
    return 0;
}

static enum status parse_types(struct request *r, struct span list, unsigned *types)
{
    *types = 0;
    do {
        unsigned type = type_of(span_cut(&list, ','));
        if (!type)
            return problem_field(&r->problem, STATUS_INVALID_FIELD, "types", "value", "types must be event names, separated by commas");
        *types |= type;
    } while (list.bytes);
    return STATUS_OK;
}

static enum status parse_events_query(struct request *r, struct wanted *w)
{
    struct span text, last = request_header(r, "Last-Event-ID");
    enum status st;

    *w = (struct wanted){.types = ~0u, .resumes = last.data != NULL};
    st = event_stream_check(r, &w->seconds);
    if (!st && request_query(r, "types", &text))
        st = parse_types(r, text, &w->types);
    if (!st && last.data && !span_u64(span_trim(last), &w->last))
        st = problem_set(&r->problem, STATUS_INVALID_HEADER, "Last-Event-ID must be the id of an event");
    return st;
}

static void fill_events(struct session_stream *s, struct request *r, struct session *session, const struct wanted *w)
{
    struct session_info info;

    s->session = session;
    s->stream.next = next_event;
    s->stream.end = end_events;
    s->cursor =
        (struct event_cursor){.last = w->resumes ? w->last : events_newest(session), .types = w->types, .waker = {.wake = wake_reader}};
    s->budget = app_of(r)->config->crash_budget;
    buf_init(&s->text, EVENT_TEXT_BYTES_MAX);
    session_info_of(session, &info);
    memcpy(s->session_id, info.id, sizeof s->session_id);
    memcpy(s->device, info.device, sizeof s->device);
}

/* Takes the borrowed session on success. */
static enum status start_events(struct request *r, struct session *session, const struct wanted *w)
{
    struct event_stream *s;
    enum status          st = event_stream_create(r, sizeof(struct session_stream), &s);

    if (st)
        return st;
    st = session_observe(session, &r->problem);
    if (st) {
        event_stream_destroy(s);
        return st;
    }
    fill_events((struct session_stream *)s, r, session, w);
    return event_stream_answer(s, w->seconds);
}

enum status events_get(struct request *r)
{
    struct session *session;
    struct wanted   w;
    bool            head = r->method == METHOD_HEAD;
    enum status     st = parse_events_query(r, &w);

    if (!st)
        st = session_of(r, &session);
    if (st)
        return st;
    st = head ? event_stream_head(r) : start_events(r, session, &w);
    if (st || head)
        session_return(session);
    return st;
}
