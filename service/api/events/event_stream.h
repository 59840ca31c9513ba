/* Shared by all streams of server-sent events. A stream holds no thread: it is a source that the server asks for bytes. */
#pragma once

#include "api/call.h"

/* The first member of what an endpoint follows with. */
struct event_stream {
    struct body_source source;
    struct request    *request;
    /* Adds the next lines. Without any: PENDING, or OK when the stream has ended. Asked again when the request is woken, and in time for
     * heartbeats. */
    enum status (*next)(struct event_stream *s);
    void (*end)(struct event_stream *s); /* (optional) before the stream is freed */
    struct buf lines;
    size_t     sent;    /* of lines */
    uint64_t   tick_ns; /* also asked after this time; 0: not */
    uint64_t   heartbeat_ns, beat_ns, end_ns;
};

/* Whether Accept allows the type; ?timeout_seconds=, from 1 to EVENT_STREAM_S_MAX, the default. */
enum status event_stream_check(struct request *r, uint64_t *seconds);
/* The answer to HEAD. */
enum status event_stream_head(struct request *r);
/* Zeroed, of `bytes` bytes, and counted for the caller: TOO_MANY_IN_FLIGHT beyond EVENT_STREAMS_PER_CALLER_MAX. */
enum status event_stream_create(struct request *r, size_t bytes, struct event_stream **out);
/* Ends it before its answer. */
void event_stream_destroy(struct event_stream *s);
/* Answers with the stream, which then belongs to the reply. */
enum status event_stream_answer(struct event_stream *s, uint64_t seconds);
