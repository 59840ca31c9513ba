/* A batch on its way in: its frame or JSON text, then its segments into the device as they come. One per request, in request.progress. */
#ifndef GPUREST_API_BATCH_REQUEST_H
#define GPUREST_API_BATCH_REQUEST_H

#include "api/batch/work.h"

struct batch_request_state;

/* For begin functions: sets request.sink, progress and on_finish. `hidden`: on the caller's hidden session. */
enum status batch_request_begin(struct request *r, bool hidden);

/* For handlers, when the body has arrived: all segments are in the device's hands. PENDING as handlers may. */
enum status batch_request_complete(struct request *r);

/* What came, once it is complete. Borrowed until the request is over. */
struct batch_work *batch_request_work(const struct request *r);
/* The same for the caller to keep. Afterwards the request has neither progress nor on_finish. */
struct batch_work *batch_request_take(struct request *r);

#endif
