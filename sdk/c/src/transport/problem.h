/* Answers that are no success. */
#ifndef GPUREST_SDK_PROBLEM_H
#define GPUREST_SDK_PROBLEM_H

#include "transport/exchange.h"

struct json;

/* Records the answer's problem document, or what can be said without one, as the thread's error; gives its status. */
gpurest_status problem_record(const struct exchange *x);
/* The same of a document that stands within an answer, as a failed launch's does. */
gpurest_status problem_record_json(const struct json *document, const char *request_id);
/* Whether the service asks for the same request again, having done nothing; and after how long, at least. */
bool problem_retry(const struct exchange *x, int *after_ms);

#endif
