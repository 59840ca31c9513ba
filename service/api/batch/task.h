/* Batches as tasks that are done in the background. */
#ifndef GPUREST_API_BATCH_TASK_H
#define GPUREST_API_BATCH_TASK_H

#include "api/batch/answer.h"
#include "session/batch/async.h"

/* Takes the work over, also when there is no memory: then NULL. */
struct batch_task *batch_task_create_take(struct batch_work *w);
/* Of one that has succeeded. Borrowed from the task. */
const struct batch_answer *batch_task_answer(const struct batch_task *t);

#endif
