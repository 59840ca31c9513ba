/* A session's events as server-sent events. A stream holds no thread: it is a source that the server asks for bytes, woken by events, by
 * its heartbeat and by its end. */
#include "session/events/events.h"
#include "api/bounds.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/call.h"
#include "api/devices.h"
#include "api/endpoints.h"
#include "api/event_stream.h"

struct event_stream {
    struct body_source  source;
    struct request     *request;
    struct session     *session; /* observed, not used */
    struct event_cursor cursor;
    struct event        event; /* the event being written */
    struct buf          lines, text;
    size_t              sent; /* of lines */
    uint64_t            heartbeat_ns, beat_ns, end_ns;
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
    json_add_text(w, "state", launch_state_name(e->state.launch));
    if (e->type != EVENT_LAUNCH_FINISHED)
        return;
    if (e->timed)
        json_add_double(w, "gpu_us", e->gpu_us);
    if (e->status)
        json_add_text(w, "code", status_code(e->status));
}

static void add_low_memory(struct json_writer *w, const struct event_stream *s)
{
    const struct event *e = &s->event;

    json_add_text(w, "session", s->session_id);
    json_add_u64(w, "used_bytes", e->state.memory.used);
    add_limit(w, "limit_bytes", e->state.memory.limit);
    if (!e->status)
        return;
    json_add_u64(w, "requested_bytes", e->state.memory.requested < JSON_INTEGER_MAX ? e->state.memory.requested : JSON_INTEGER_MAX);
    json_add_text(w, "code", status_code(e->status));
}

static void add_members(struct json_writer *w, const struct event_stream *s)
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
static void add_event(struct event_stream *s)
{
    struct json_writer w;

    buf_printf(&s->lines, "id: %" PRIu64 "\nevent: %s\ndata: ", s->event.id, type_names[s->event.type]);
    json_writer_init(&w, &s->lines);
    json_open_object(&w, NULL);
    json_add_time(&w, "at", s->event.wall_ns);
    add_members(&w, s);
    json_close_object(&w);
    buf_add_text(&s->lines, "\n\n");
}

/* ---- the stream ---- */

/* The next lines, if there are any. OK without lines: the stream has ended. */
static enum status take_event(struct event_stream *s)
{
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

static enum status next_lines(struct event_stream *s)
{
    uint64_t    now = now_ns();
    enum status st;

    buf_clear(&s->lines);
    s->sent = 0;
    if (now >= s->end_ns)
        return STATUS_OK;
    st = take_event(s);
    if (s->lines.failed)
        return problem_set(&s->request->problem, STATUS_OUT_OF_MEMORY, "not enough memory for an event");
    if (st == STATUS_PENDING && now >= s->beat_ns) {
        buf_add_text(&s->lines, EVENT_STREAM_BEAT);
        st = STATUS_OK;
    }
    if (!st)
        s->beat_ns = now + s->heartbeat_ns;
    s->request->wake_at_ns = s->beat_ns < s->end_ns ? s->beat_ns : s->end_ns;
    return st;
}

static enum status read_lines(struct body_source *source, char *to, size_t room, size_t *bytes, struct waker *w)
{
    struct event_stream *s = (struct event_stream *)source;
    enum status          st = STATUS_OK;

    (void)w; /* the cursor's waker wakes it */
    if (s->sent == buf_span(&s->lines).bytes)
        st = next_lines(s);
    *bytes = st ? 0 : event_stream_copy(&s->lines, &s->sent, to, room);
    return st;
}

/* A cursor's registration outlives one wait, so it has a waker of its own. */
static void wake_reader(struct waker *w)
{
    struct event_stream *s = (struct event_stream *)((char *)w - offsetof(struct event_stream, cursor.waker));

    s->request->waker.wake(&s->request->waker);
}

static void close_stream(struct body_source *source)
{
    struct event_stream *s = (struct event_stream *)source;

    events_unwatch(s->session, &s->cursor);
    session_unobserve(s->session);
    event_stream_give(s->request);
    buf_finish(&s->lines);
    buf_finish(&s->text);
    free(s);
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
    static const char *const names[] = {"types", "timeout_seconds", NULL};
    struct span              text, last = request_header(r, "Last-Event-ID");
    enum status              st = query_check(r, names);

    *w = (struct wanted){.types = ~0u, .resumes = last.data != NULL};
    if (!st)
        st = event_stream_accepts(r);
    if (!st && request_query(r, "types", &text))
        st = parse_types(r, text, &w->types);
    if (!st)
        st = event_stream_seconds(r, &w->seconds);
    if (!st && last.data && !span_u64(span_trim(last), &w->last))
        st = problem_set(&r->problem, STATUS_INVALID_HEADER, "Last-Event-ID must be the id of an event");
    return st;
}

static void fill_events(struct event_stream *s, struct request *r, const struct wanted *w)
{
    struct session_info info;
    uint64_t            now = now_ns();

    s->source = (struct body_source){.read = read_lines, .close = close_stream};
    s->request = r;
    s->cursor =
        (struct event_cursor){.last = w->resumes ? w->last : events_newest(s->session), .types = w->types, .waker = {.wake = wake_reader}};
    s->budget = app_of(r)->config->crash_budget;
    s->heartbeat_ns = app_of(r)->config->event_heartbeat_s * NS_PER_S;
    s->beat_ns = now + s->heartbeat_ns;
    s->end_ns = now + w->seconds * NS_PER_S;
    buf_init(&s->lines, EVENT_LINES_BYTES_MAX);
    buf_init(&s->text, EVENT_TEXT_BYTES_MAX);
    buf_add_text(&s->lines, EVENT_STREAM_HEAD);
    session_info_of(s->session, &info);
    memcpy(s->session_id, info.id, sizeof s->session_id);
    memcpy(s->device, info.device, sizeof s->device);
}

/* Takes the borrowed session, and the caller's place, on success. */
static enum status start_events(struct request *r, struct session *session, const struct wanted *w)
{
    struct event_stream *s = calloc(1, sizeof *s);
    enum status          st = s ? STATUS_OK : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the event stream");

    if (!st)
        st = session_observe(session, &r->problem);
    if (st) {
        free(s);
        return st;
    }
    s->session = session;
    fill_events(s, r, w);
    event_stream_headers(r);
    return reply_source_take(&r->reply, 200, &s->source, REPLY_BYTES_UNKNOWN);
}

static enum status answer_head(struct request *r, struct session *session)
{
    session_return(session);
    return event_stream_head(r);
}

enum status events_get(struct request *r)
{
    struct session *session;
    struct wanted   w;
    enum status     st = parse_events_query(r, &w);

    if (!st)
        st = session_of(r, &session);
    if (st)
        return st;
    if (r->method == METHOD_HEAD)
        return answer_head(r, session);
    st = event_stream_take(r);
    if (!st) {
        st = start_events(r, session, &w);
        if (st)
            event_stream_give(r);
    }
    if (st)
        session_return(session);
    return st;
}
