/* Conditional requests (RFC 9110 §13). Pure. */
#pragma once

#include "base/span.h"

enum precondition { PRECONDITION_HOLDS, PRECONDITION_FAILS, PRECONDITION_NOT_MODIFIED };

/* Whether a value of If-Match or If-None-Match is valid: "*", or entity tags separated by commas. */
bool etag_list_valid(struct span list);
/* Whether a value of If-Range is valid: one entity tag, or a date, which no entity tag equals. */
bool if_range_valid(struct span value);

/* Whether a valid list of entity tags names `etag`. `weak`: W/"x" and "x" are the same (If-None-Match); otherwise weak tags never match
 * (If-Match, If-Range). */
bool etag_listed(struct span list, struct span etag, bool weak);

/* Headers without data are absent; others must be valid. `reading`: the method is GET or HEAD, for which a match of If-None-Match gives
 * NOT_MODIFIED. */
enum precondition precondition_check(struct span if_match, struct span if_none_match, struct span etag, bool reading);
