/* A session as one file: written from a session that stands still, and a session made from it. */
#pragma once

#include "api/call.h"
#include "session/snapshot/hold.h"

/* How long the request waits for its session to stand still: as its Prefer says, and while its client is there. */
struct snapshot_wait snapshot_wait_of(struct request *r);
/* Answers with the snapshot of the path's session, which stands still until the answer is sent, or given up. Blocks. `pending`: the session waits
 * for the confirmation of its move, and so does what is made from this. With `moment` nobody is kept off, and it is no use of the session: what was sent
 * is a snapshot if snapshot_still() says so of that moment behind the last byte; SESSION_BUSY if it does not stand still soon. */
enum status snapshot_answer(struct request *r, uint64_t *moment, bool pending);

/* For the begin function of a request whose body is a snapshot: sets request.sink, progress and on_finish. One that is not SOURCE_SNAPSHOT
 * the service wrote itself, so it is restored as it was: whatever its caller may do now, under an id that a service chose, on the same device. */
enum status load_start(struct request *r, enum session_source from);
/* Whether the request's body is one. */
bool load_is(const struct request *r);
/* For the handler, when the whole body has arrived: *out, borrowed until the request's end, is all there, and listed. Whatever fails before
 * leaves no session. */
enum status load_finish(struct request *r, struct session **out);
