/* Shared by all streams of server-sent events. */
#ifndef GPUREST_API_EVENT_STREAM_H
#define GPUREST_API_EVENT_STREAM_H

#include "api/call.h"

#define EVENT_STREAM_TYPE "text/event-stream"
/* The answer's first bytes show clients that it has begun, and set how long they wait before they reconnect. */
#define EVENT_STREAM_HEAD "retry: 1000\n\n"
#define EVENT_STREAM_BEAT ":\n\n"

/* Counts one more stream of the caller; TOO_MANY_IN_FLIGHT beyond EVENT_STREAMS_PER_CALLER_MAX. Give each back once. */
enum status event_stream_take(struct request *r);
void        event_stream_give(struct request *r);
/* ?timeout_seconds=, from 1 to EVENT_STREAM_S_MAX, the default. */
enum status event_stream_seconds(struct request *r, uint64_t *seconds);
enum status event_stream_accepts(struct request *r);
/* The answer to HEAD, and the headers of a stream. */
enum status event_stream_head(struct request *r);
void        event_stream_headers(struct request *r);
/* Copies bytes of `lines` from *sent on, as far as there is room, and advances *sent. Returns the number of bytes. */
size_t event_stream_copy(const struct buf *lines, size_t *sent, char *to, size_t room);

#endif
