/* A session that stands still, so that what is read of it is of one moment; and one that is being made from what was read. Thread-safe. */
#pragma once

#include "session/session.h"

struct snapshot_wait {
    uint64_t deadline_ns;
    bool (*unwanted)(void *context); /* asked now and then; true: nobody waits any more */
    void *context;
};
/* Waits until no launch, upload, batch or other change is under way, those of the background included, and keeps new ones off until
 * snapshot_release(): they get SESSION_BUSY, reads do not. Several may hold a session at once. SESSION_BUSY, which says what still is under way,
 * at the deadline; SESSION_FAULTED; CANCELLED. Blocks.
 * With `moment`, nobody waits for the snapshot, so that nothing is kept off: it waits for the same moment, and tells what it was. What is read then is of
 * that moment if snapshot_still() says so behind the last byte, else of none. */
enum status snapshot_await(struct session *s, const struct snapshot_wait *wait, uint64_t *moment, struct problem *why);
void        snapshot_release(struct session *s);
/* Before another look at what is under way: sleeps a little, unless the wait is over, as above. */
enum status snapshot_rest(const struct snapshot_wait *wait, const char *what, struct problem *why);

bool snapshot_still(struct session *s, uint64_t moment);
/* The service has a snapshot of that moment. `taken_wall_ns`: when it was. */
void snapshot_kept(struct session *s, uint64_t moment, uint64_t taken_wall_ns);
/* Whether it is as the service has kept it. False, too, while a client maps memory of it, which changes unseen. */
bool snapshot_is_kept(struct session *s);

/* The session, made with session_spec.restoring, is all there: from now on its caller finds it, or can confirm its move if it came by one. */
void session_restored(struct session *s);
/* It will not be: it is listed no more, and ends in the background. Never blocks. */
void session_not_restored(struct session *s);
