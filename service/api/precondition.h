/* Conditional requests (RFC 9110 §13). Pure. */
#ifndef GPUREST_API_PRECONDITION_H
#define GPUREST_API_PRECONDITION_H

#include "base/span.h"

enum precondition { PRECONDITION_HOLDS, PRECONDITION_FAILS, PRECONDITION_NOT_MODIFIED };

/* Does a list of entity tags ("*", or tags with commas between) name `etag`? `weak`: W/"x" and "x" are the same (If-None-Match);
 * otherwise a weak tag matches nothing (If-Match, If-Range). */
bool etag_listed(struct span list, struct span etag, bool weak);

/* Empty headers are absent ones. `reading`: the method is GET or HEAD, for which a match of If-None-Match is NOT_MODIFIED. */
enum precondition precondition_check(struct span if_match, struct span if_none_match, struct span etag, bool reading);

#endif
