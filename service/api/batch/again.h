/* Runs without a session of their own: what took their hidden session along before they began is not theirs. */
#ifndef GPUREST_API_BATCH_AGAIN_H
#define GPUREST_API_BATCH_AGAIN_H

#include "api/batch/work.h"

/* Does the batch; on another hidden session when its own was lost before the first operation and the body is still here. Blocks. */
enum status batch_work_run(struct batch_work *w, struct problem *why);
/* What the caller is told of such a loss, which is another run's or nobody's: never its fault. Everything else stays as it is. */
enum status batch_work_verdict(const struct batch_work *w, enum status st, struct problem *why);
/* The batch was not begun, and failed so because its hidden session was lost. */
bool batch_work_lost(const struct batch_work *w, enum status st);

#endif
