/* What streams of server-sent events have in common. */
#ifndef GPUREST_API_EVENT_STREAM_H
#define GPUREST_API_EVENT_STREAM_H

#include "api/call.h"

#define EVENT_STREAM_TYPE "text/event-stream"
/* The answer's first bytes, so that clients see that it has begun; and how long they wait before they come again. */
#define EVENT_STREAM_HEAD "retry: 1000\n\n"
#define EVENT_STREAM_BEAT ":\n\n"

/* One more stream of the caller: TOO_MANY_IN_FLIGHT beyond EVENT_STREAMS_PER_CALLER_MAX. Each is given back once. */
enum status event_stream_take(struct request *r);
void        event_stream_give(struct request *r);
/* ?timeout_seconds=, 1 to EVENT_STREAM_S_MAX, which it is when left out. */
enum status event_stream_seconds(struct request *r, uint64_t *seconds);
enum status event_stream_accepts(struct request *r);
/* The answer to HEAD, and the headers before the first event. */
enum status event_stream_head(struct request *r);
void        event_stream_headers(struct request *r);
/* What of `lines` is behind *sent, as far as there is room; *sent moves on. Its number of bytes. */
size_t event_stream_copy(const struct buf *lines, size_t *sent, char *to, size_t room);

#endif
