/* Streams of server-sent events: count per caller, duration, headers. */
#include "api/event_stream.h"

enum status event_stream_take(struct request *r)
{
    unsigned before = atomic_fetch_add(&r->caller->event_streams, 1);

    if (before < EVENT_STREAMS_PER_CALLER_MAX)
        return STATUS_OK;
    event_stream_give(r);
    return problem_limit(&r->problem, STATUS_TOO_MANY_IN_FLIGHT, "event_streams", EVENT_STREAMS_PER_CALLER_MAX, before, 1);
}

void event_stream_give(struct request *r)
{
    atomic_fetch_sub(&r->caller->event_streams, 1);
}

enum status event_stream_seconds(struct request *r, uint64_t *seconds)
{
    struct span text;

    *seconds = EVENT_STREAM_S_MAX;
    if (!request_query(r, "timeout_seconds", &text) || (span_u64(text, seconds) && *seconds >= 1 && *seconds <= EVENT_STREAM_S_MAX))
        return STATUS_OK;
    return problem_field(&r->problem, STATUS_INVALID_FIELD, "timeout_seconds", "range", "timeout_seconds must be a number from 1 to %d",
                         EVENT_STREAM_S_MAX);
}

enum status event_stream_accepts(struct request *r)
{
    if (request_accepts(r, EVENT_STREAM_TYPE))
        return STATUS_OK;
    return problem_set(&r->problem, STATUS_NOT_ACCEPTABLE, "Accept must allow " EVENT_STREAM_TYPE ", the type of events");
}

void event_stream_headers(struct request *r)
{
    reply_header_text(&r->reply, "Content-Type", EVENT_STREAM_TYPE);
    reply_header_text(&r->reply, "X-Accel-Buffering", "no");
}

size_t event_stream_copy(const struct buf *lines, size_t *sent, char *to, size_t room)
{
    struct span rest = span_first(span_from(buf_span(lines), *sent), room);

    if (rest.bytes)
        memcpy(to, rest.data, rest.bytes);
    *sent += rest.bytes;
    return rest.bytes;
}

enum status event_stream_head(struct request *r)
{
    reply_header_text(&r->reply, "Content-Type", EVENT_STREAM_TYPE);
    return reply_empty(&r->reply, 200);
}
