/* What was answered to requests with an Idempotency-Key, as a part of their session's snapshot: a repeated request is not done twice where the session
 * is next. Nobody can tell the key itself from it. */
#pragma once

#include "http/filter/idempotency.h"
#include "http/json/json.h"

/* Appends the JSON; nothing when there are no keys. When answers would exceed out->max the oldest are left out, and their keys stay. False: a request
 * with a key is in progress, and nothing was written. */
bool requests_write(struct idempotency *store, const struct caller *caller, const char *session, struct buf *out);
/* From untrusted text. SNAPSHOT_INVALID says what is wrong. */
enum status requests_check(struct span text, struct problem *why);
/* Of a text that was checked: keys beyond the caller's bound are left out, which is logged. */
void requests_restore(struct idempotency *store, struct caller *caller, const char *session, struct span text);
