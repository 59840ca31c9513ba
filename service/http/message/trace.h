/* The names that a request is followed by in logs: X-Request-Id, and traceparent of W3C Trace Context. */
#pragma once

#include "base/span.h"

enum { REQUEST_ID_BYTES = 64, TRACE_ID_BYTES = 33 };

/* The caller's own id, if it is well formed; else what stands in `id`, made at the request's beginning, stays. */
void request_id_take(struct span header, char id[REQUEST_ID_BYTES]);
/* The trace id of a well-formed header, with NUL; "" for others, which the recommendation says to ignore. */
void trace_id_parse(struct span header, char out[TRACE_ID_BYTES]);
