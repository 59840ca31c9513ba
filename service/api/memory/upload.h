/* A streamed request body that is written to a buffer, which may have to be created first. One per request, in request.progress. */
#pragma once

#include "api/call.h"
#include "api/memory/condition.h"

/* Both are for begin functions: they set request.sink, progress and on_finish, and borrow the path's session until the request's end.
 * PRECONDITION_FAILED, before a byte is written, when the condition no longer holds when the write begins. */
/* Writes `bytes` bytes at `offset` of an existing buffer. */
enum status upload_start(struct request *r, struct span buffer, uint64_t offset, uint64_t bytes, const struct condition *condition);
/* Creates the buffer with the first piece of the body (id empty: the server generates one), and deletes it unless upload_finish()
 * succeeds: nobody sees a partly filled buffer. */
enum status upload_start_new(struct request *r, struct span id, uint64_t bytes, const struct condition *condition);

/* For the handler, when the whole body has arrived: waits until the bytes are in the buffer. LENGTH_MISMATCH: too few bytes. */
enum status upload_finish(struct request *r);

/* After upload_finish(): borrowed until the request ends. */
struct contents           upload_contents(const struct request *r);
const struct buffer_info *upload_buffer(const struct request *r, bool *created);
