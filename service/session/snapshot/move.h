/* Sessions that move to another node. A client carries the snapshot; these are the steps of both nodes. The old one gives the session up and the
 * secret of the move out in one step; the new one makes its copy the session when it is shown that secret. So at any moment at most one of both has the
 * session, and what was given up can always be confirmed. docs/design/moves.md has all of it. Thread-safe. */
#pragma once

#include "session/snapshot/hold.h"

/* ---- on the old node ---- */
/* Nothing changes the session for `hold_s` from now on, and from session_move_read() on: SESSION_MOVING. Waits as snapshot_await() does. `move`
 * names it. SESSION_BUSY: another move is under way, or a client maps memory of the session. Blocks. */
enum status session_move_begin(struct session *s, const struct snapshot_wait *wait, uint64_t hold_s, char move[MOVE_SECRET_BYTES],
                               struct problem *why);
/* A snapshot that is part of the move is no longer being sent; `whole`: its last byte is out. No other request prolongs the hold: one that does not know
 * the move cannot end it. While the snapshot is held. */
void session_move_read(struct session *s, struct span move, bool whole);
/* SESSION_BUSY: this move is not under way. */
enum status session_move_check(struct session *s, struct span move, struct problem *why);
/* The session goes on here. OK also when this move is over already. SESSION_BUSY: it is being completed. */
enum status session_move_cancel(struct session *s, struct span move, struct problem *why);
/* Keeps all requests off and waits for those under way. *to, but for its secret, says where it goes; that is filled in. SESSION_BUSY, also when no
 * snapshot of the move has been sent whole; QUOTA_EXCEEDED. If OK, one of the next two must be called. Blocks. */
enum status session_move_leave(struct session *s, struct span move, struct session_moved *to, struct problem *why);
void        session_move_stay(struct session *s);
/* The session ends here. SESSION_NOT_FOUND: it has ended meanwhile. Blocks. */
enum status session_move_end(struct session *s, struct problem *why);

/* ---- on the new node, for a session of session_borrow_pending() ---- */
bool session_is_pending(const struct session *s);
/* INVALID_FIELD: this is not the secret of the move. */
enum status session_confirm_check(struct session *s, struct span secret, struct problem *why);
/* From now on its caller finds it. */
void session_confirmed(struct session *s);
/* The copy is not wanted any more. INVALID_FIELD: it came by another move. Blocks. */
enum status session_pending_end(struct session *s, struct span move, struct problem *why);
