/* Launches that have ended, as a part of their session's snapshot: who asks for one is answered where the session is next, and one that is sent again
 * under its id is not run twice. */
#pragma once

#include "http/json/json.h"
#include "session/session.h"

/* Appends the JSON; nothing when none has ended. out->failed: no memory, or no room. */
void launches_write(struct session *s, struct buf *out);
/* From untrusted text. SNAPSHOT_INVALID, OUT_OF_MEMORY. */
enum status launches_check(struct span text, struct problem *why);
/* Of a text that was checked. SNAPSHOT_INVALID, OUT_OF_MEMORY: not all of them. */
enum status launches_restore(struct session *s, struct span text, struct problem *why);
