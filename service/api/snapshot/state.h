/* Sessions that outlive the process: each one's snapshot in a folder, which belongs to one service at a time. */
#pragma once

#include "api/app.h"

struct state;

/* Makes the folder, if it is missing, and locks it. INVALID_REQUEST: another service has it, or it cannot be had. *out is NULL without a folder ("").
 * `every_s`: how often snapshots are taken while the service runs; 0: only at its end. */
enum status state_open(struct state **out, struct app *app, const char *folder, uint64_t every_s, struct problem *why);
/* Makes the sessions of the folder again, under their ids, for their callers, before requests come. A damaged file is set aside under another name;
 * one whose session cannot be made now stays for the next start. Both are logged. Blocks. */
void state_restore(struct state *s);
/* False: no thread for the snapshots in between. */
bool state_start(struct state *s);
/* No more snapshots in between. */
void state_stop(struct state *s);
/* Writes a snapshot of every session; no request is under way any more. What cannot be written is logged, and its last snapshot stays. False: something
 * that its caller can still use. Blocks. */
bool state_save(struct state *s);
/* After state_stop(), and maybe state_save(): the service does not end after all, and what is saved is what sessions once were. False: as
 * state_start(). */
bool state_go_on(struct state *s);
void state_close(struct state *s);
/* For registry_config.made: should the process be killed, the next one knows that the session was there, and does not take a file of an earlier one of
 * that name, which could not be restored, for its own. `state`: see below. */
void state_note(void *state, const char *caller, const char *id, bool anew);
/* Of a session that has come by a move and waits for its confirmation: its snapshot is kept, so that it outlives the process. `s` NULL: no folder,
 * and nothing outlives it. Blocks. */
enum status state_keep_pending(struct state *s, struct caller *who, struct session *pending, struct problem *why);
/* It is confirmed: the next start has it. */
enum status state_confirm(struct state *s, const char *caller, const char *id, struct problem *why);
/* It goes to another node; from now on the next start knows that, and does not have it. Blocks. */
enum status state_moved(struct state *s, const char *caller, const struct session_moved *m, struct problem *why);
/* For registry_config.moved_over: nobody is told any more. */
void state_moved_over(void *state, const char *caller, const struct session_moved *m);
/* It has not gone after all. */
void state_not_moved(struct state *s, const char *caller, const char *id);
/* For registry_config.ended: the context is a pointer to the pointer to the state. The session's files go, but for one
 * whose time is over while others are still being saved: its time begins anew when it is restored. */
void state_forget(void *state, const char *caller, const char *id, bool expired);
