/* A streamed request body on its way into a buffer, which may have to be made first. One per request, in request.progress. */
#ifndef GPUREST_API_UPLOAD_H
#define GPUREST_API_UPLOAD_H

#include "api/call.h"
#include "api/condition.h"

struct upload;

/* Both are for begin functions: they set request.sink, progress and on_finish. They take the session, even on failure. PRECONDITION_FAILED,
 * before a byte is written, when the condition does not hold any more at the moment when the writing begins. */
/* Into `bytes` bytes at `offset` of a buffer that is there. */
enum status upload_start(struct request *r, struct session *s, struct span buffer, uint64_t offset, uint64_t bytes,
                         const struct condition *condition);
/* Makes the buffer with the first piece of the body (id empty: the server makes one), and removes it again unless upload_finish()
 * succeeds: nobody sees a buffer half filled. */
enum status upload_start_new(struct request *r, struct session *s, struct span id, uint64_t bytes, const struct condition *condition);

/* For the handler: the whole body has arrived. Waits until the bytes are in the buffer. LENGTH_MISMATCH when there were too few. */
enum status upload_finish(struct request *r);

/* After upload_finish(): borrowed until the request is over. */
struct contents           upload_contents(const struct request *r);
const struct buffer_info *upload_buffer(const struct request *r, bool *created);

#endif
