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
 * at the deadline; SESSION_FAULTED; CANCELLED. Blocks. */
enum status snapshot_hold(struct session *s, const struct snapshot_wait *wait, struct problem *why);
void        snapshot_release(struct session *s);

/* The session, made with session_spec.restoring, is all there: from now on its caller finds it. */
void session_restored(struct session *s);
/* It will not be: it is listed no more, and ends in the background. Never blocks. */
void session_not_restored(struct session *s);
