/* The traceparent header of W3C Trace Context. */
#ifndef GPUREST_HTTP_TRACE_H
#define GPUREST_HTTP_TRACE_H

#include "base/span.h"

enum { TRACE_ID_BYTES = 33 };

/* The trace id of a well-formed header, with NUL; "" for others, which the recommendation says to ignore. */
void trace_id_parse(struct span header, char out[TRACE_ID_BYTES]);

#endif
