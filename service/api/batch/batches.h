/* The handling of batches, for all that runs one. */
#ifndef GPUREST_API_BATCHES_H
#define GPUREST_API_BATCHES_H

#include "http/message/request.h"

/* For handlers behind batch_request_begin(): runs what came, at once or in the background, and answers. PENDING as handlers may. */
enum status batch_handle(struct request *r);

#endif
