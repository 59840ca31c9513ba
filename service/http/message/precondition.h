/* Conditional requests (RFC 9110 §13). Pure. */
#ifndef GPUREST_API_PRECONDITION_H
#define GPUREST_API_PRECONDITION_H

#include "base/span.h"

enum precondition { PRECONDITION_HOLDS, PRECONDITION_FAILS, PRECONDITION_NOT_MODIFIED };

/* The value of If-Match or If-None-Match as it was sent: "*", or one or more entity tags with commas between and nothing else. */
bool etag_list_valid(struct span list);
/* The value of If-Range: one entity tag, or a time, which no entity tag equals. */
bool if_range_valid(struct span value);

/* Does a valid list of entity tags name `etag`? `weak`: W/"x" and "x" are the same (If-None-Match); otherwise a weak tag matches nothing
 * (If-Match, If-Range). */
bool etag_listed(struct span list, struct span etag, bool weak);

/* Headers without data are absent ones; the others are valid. `reading`: the method is GET or HEAD, for which a match of If-None-Match is
 * NOT_MODIFIED. */
enum precondition precondition_check(struct span if_match, struct span if_none_match, struct span etag, bool reading);

#endif
