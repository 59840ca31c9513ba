/* Launches that have ended, as a part of their session's snapshot: who asks for one is answered where the session is next, and one that is sent again
 * under its id is not run twice. */
#pragma once

#include "http/json/json.h"
#include "session/session.h"

/* Appends the JSON; nothing when none has ended. out->failed: no memory, or no room. */
void launches_write(struct session *s, struct buf *out);
/* From untrusted text; `s` NULL: it is only checked. SNAPSHOT_INVALID, OUT_OF_MEMORY: not all of them are in the session. */
enum status launches_read(struct span text, struct session *s, struct problem *why);
