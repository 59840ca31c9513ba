/* The traceparent header of W3C Trace Context. */
#ifndef GPUREST_HTTP_TRACE_H
#define GPUREST_HTTP_TRACE_H

#include "base/span.h"

enum { TRACE_ID_BYTES = 33 };

/* The trace id of a well-formed header into out, with NUL; "" otherwise, as the recommendation wants it ignored then. */
void trace_id_parse(struct span header, char out[TRACE_ID_BYTES]);

#endif
