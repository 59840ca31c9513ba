/* The answer to a batch that succeeded: JSON, or a frame of JSON and segments, some of which may still lie on the device. */
#ifndef GPUREST_API_BATCH_ANSWER_H
#define GPUREST_API_BATCH_ANSWER_H

#include "api/batch/work.h"

struct batch_answer;

/* After a successful batch_run(), at most once for a batch: the bytes that were read go over to the answer. */
enum status batch_answer_create(struct batch_work *w, struct batch_answer **out, struct problem *why);
/* NULL is a no-op. */
void batch_answer_destroy(struct batch_answer *a);
/* Host memory that it takes. */
uint64_t batch_answer_bytes(const struct batch_answer *a);

/* Who holds what a long answer is sent from; told once that it is over, on the loop. */
struct batch_answer_owner {
    void (*release)(struct batch_answer_owner *o);
};
/* Makes the request's reply. May block for the first bytes of what lies on the device: until then a failing device is no 200. The owner
 * is released in any case: at once, or when all was sent. */
enum status batch_answer_send_take(const struct batch_answer *a, struct request *r, struct batch_answer_owner *owner);

#endif
