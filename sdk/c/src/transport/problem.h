/* Problem documents (RFC 9457) as errors. */
#ifndef GPUREST_SDK_PROBLEM_H
#define GPUREST_SDK_PROBLEM_H

#include "transport/exchange.h"

struct json;

/* Sets the thread's error from an answer other than 2xx; returns its status. */
gpurest_status problem_record(const struct exchange *x);
/* The same for a problem inside another document, such as a failed launch. */
gpurest_status problem_record_json(const struct json *document, const char *request_id);
/* Whether the answer is the problem of that status and code. */
bool problem_is(const struct exchange *x, int status, const char *code);
/* Whether the service did nothing and allows a retry, and after how long. */
bool problem_retry(const struct exchange *x, int *after_ms);

#endif
