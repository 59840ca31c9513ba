/* What the rooms that stand on life/ do for it while a worker session works, when it is lost, and when it ends: life/ calls these, each room defines
 * its own. So nothing of life/ includes what stands on it. session.lock is held unless a line says otherwise. */
#ifndef GPUREST_SESSION_LIFE_PARTS_H
#define GPUREST_SESSION_LIFE_PARTS_H

#include "session/life/internal.h"

/* ---- launch/ ---- */
/* Number of the newest launch that is not yet in the ring; what comes next must wait for it. 0: none. */
uint64_t launch_order(const struct worker_session *c);
/* Whether launches up to that number are in the ring. */
bool launch_ordered(const struct worker_session *c, uint64_t number);
/* Whether the device is at work on one. */
bool launch_is_running(const struct worker_session *c);
/* The deadline of one that runs past it at `now`, in ms; 0: none does. The outer bound of what runs: the worker keeps each launch's deadline itself,
 * from the moment in which it reports its start. What it reports of others changes nothing. */
uint64_t launch_overdue(const struct worker_session *c, uint64_t now);
/* Submits what the ring has room for. Needs a use, and submit_lock; no other lock held. */
void launch_pump(struct worker_session *c);
/* Fetches output that waits for it. Needs a use; no lock held. */
void launch_fetch_outputs(struct worker_session *c);
/* All that did not reach the worker, or that only waits for its output, ends now. */
void launch_flush(struct worker_session *c);
/* Drops the table's references. */
void launch_drop_all(struct worker_session *c);

/* ---- code/ ---- */
/* Hands what waits to be unloaded to the worker. Needs a use; no lock held. */
void module_unload_some(struct worker_session *c);
/* The worker is gone, and its modules with it. */
void module_drop_all(struct worker_session *c);

/* ---- memory/ ---- */
/* The worker is gone, and its buffers with it. */
void buffer_drop_all(struct worker_session *c);
/* Hands the abandoned to the worker. Needs a use; no lock held. */
void temp_buffer_free_some(struct worker_session *c);
/* The worker is gone, and its temporary buffers with it. */
void temp_buffer_drop_all(struct worker_session *c);
/* The worker is dead, and with it the memory of the temporary buffers that were still to be freed. */
void temp_buffer_drop_abandoned(struct worker_session *c);
/* Of shared memory that is not the buffers' own: a worker that is about to end does not matter to it. */
void share_detach_all(struct worker_session *c);
/* Whoever waits for a transfer looks again. */
void transfer_wake_all(struct worker_session *c);
/* Takes back all registrations with the worker. Blocks briefly; no lock held. */
void transfer_unwatch_all(struct worker_session *c);
/* The worker session is lost and its worker about to end. */
void pending_free_lost(struct worker_session *c);
/* A worker with so many bytes in buffers was ended ... */
void pending_free_begin(struct worker_session *c, uint64_t bytes);
/* ... and is gone. No lock held. */
void pending_free_end(struct worker_session *c);

/* ---- batch/ ---- */
/* The worker session is closed, and its programs with it. */
void program_drop_all(struct worker_session *c);
/* Forgets results whose time is over at `now`. */
void result_store_expire(struct session *s, uint64_t now);
/* The session is about to be freed. No lock held. */
void result_store_finish(struct session *s);
/* Until all runner threads have ended; their sessions are closed. No lock held. */
void batch_runners_await(struct registry *r);

#endif
