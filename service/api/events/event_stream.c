/* Streams of server-sent events: count per caller, heartbeats, duration, headers. */
#include "api/events/event_stream.h"

#include <stdlib.h>

#include "api/bounds.h"
#include "base/deadline.h"

#define EVENT_STREAM_TYPE "text/event-stream"
/* The answer's first bytes show clients that it has begun, and set how long they wait before they reconnect. */
#define EVENT_STREAM_HEAD "retry: 1000\n\n"
#define EVENT_STREAM_BEAT ":\n\n"

static enum status take_place(struct request *r)
{
    unsigned before = atomic_fetch_add(&r->caller->event_streams, 1);

    if (before < EVENT_STREAMS_PER_CALLER_MAX)
        return STATUS_OK;
    atomic_fetch_sub(&r->caller->event_streams, 1);
    return problem_limit(&r->problem, STATUS_TOO_MANY_IN_FLIGHT, "event_streams", EVENT_STREAMS_PER_CALLER_MAX, before, 1);
}

enum status event_stream_check(struct request *r, uint64_t *seconds)
{
    *seconds = EVENT_STREAM_S_MAX;
    if (!request_accepts(r, EVENT_STREAM_TYPE))
        return problem_set(&r->problem, STATUS_NOT_ACCEPTABLE, "Accept must allow " EVENT_STREAM_TYPE ", the type of events");
    return number_of(r, "timeout_seconds", 1, EVENT_STREAM_S_MAX, seconds);
}

enum status event_stream_head(struct request *r)
{
    reply_header_text(&r->reply, "Content-Type", EVENT_STREAM_TYPE);
    return reply_empty(&r->reply, 200);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static enum status next_lines(struct event_stream *s)
{
    uint64_t    now = now_ns();
    enum status st;

    buf_clear(&s->lines);
    s->sent = 0;
    if (now >= s->end_ns)
        return STATUS_OK;
    st = s->next(s);
    if (s->lines.failed)
        return problem_set(&s->request->problem, STATUS_OUT_OF_MEMORY, "not enough memory for an event");
    if (st == STATUS_PENDING && now >= s->beat_ns) {
        buf_add_text(&s->lines, EVENT_STREAM_BEAT);
        st = STATUS_OK;
    }
    if (!st)
        s->beat_ns = now + s->heartbeat_ns;
    s->request->wake_at_ns = earlier(s->beat_ns, s->end_ns);
    if (s->tick_ns)
        s->request->wake_at_ns = earlier(s->request->wake_at_ns, now + s->tick_ns);
    return st;
}

/* OK without bytes: the stream has ended. What wakes it wakes the request, not `w`. */
static enum status read_lines(struct body_source *source, char *to, size_t room, size_t *bytes, struct waker *w)
{
    struct event_stream *s = (struct event_stream *)source;
    enum status          st = s->sent == s->lines.bytes ? next_lines(s) : STATUS_OK;
    struct span          rest = span_first(span_from(buf_span(&s->lines), s->sent), room);

    (void)w;
    *bytes = st ? 0 : rest.bytes;
    if (*bytes)
        memcpy(to, rest.data, *bytes);
    s->sent += *bytes;
    return st;
}

static void close_stream(struct body_source *source)
{
    event_stream_destroy((struct event_stream *)source);
}

enum status event_stream_create(struct request *r, size_t bytes, struct event_stream **out)
{
    enum status          st = take_place(r);
    struct event_stream *s = st ? NULL : calloc(1, bytes);

    if (st)
        return st;
    if (!s) {
        atomic_fetch_sub(&r->caller->event_streams, 1);
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the event stream");
    }
    s->source = (struct body_source){.read = read_lines, .close = close_stream};
    s->request = r;
    buf_init(&s->lines, EVENT_LINES_BYTES_MAX);
    *out = s;
    return STATUS_OK;
}

void event_stream_destroy(struct event_stream *s)
{
    if (s->end)
        s->end(s);
    atomic_fetch_sub(&s->request->caller->event_streams, 1);
    buf_finish(&s->lines);
    free(s);
}

enum status event_stream_answer(struct event_stream *s, uint64_t seconds)
{
    struct reply *reply = &s->request->reply;
    uint64_t      now = now_ns();

    s->heartbeat_ns = app_of(s->request)->config->event_heartbeat_s * NS_PER_S;
    s->beat_ns = now + s->heartbeat_ns;
    s->end_ns = now + seconds * NS_PER_S;
    buf_add_text(&s->lines, EVENT_STREAM_HEAD);
    reply_header_text(reply, "Content-Type", EVENT_STREAM_TYPE);
    reply_header_text(reply, "X-Accel-Buffering", "no");
    return reply_source_take(reply, 200, &s->source, REPLY_BYTES_UNKNOWN);
}
