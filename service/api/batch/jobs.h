/* Batches in the background as requests see them. */
#ifndef GPUREST_API_BATCH_JOBS_H
#define GPUREST_API_BATCH_JOBS_H

#include "http/message/request.h"

/* For the handler that a complete batch came to: queues it, waits as long as the client wants, answers. PENDING as handlers may;
 * from then on batch_follows() and batch_follow() is what the handler does. */
enum status batch_start(struct request *r);
bool        batch_follows(const struct request *r);
enum status batch_follow(struct request *r);

#endif
