/* What the rooms above life/ do for it: while a worker session works, when it is lost, and when it ends. life/ calls these functions and
 * each room defines its own, so life/ includes nothing of those rooms. session.lock is held unless a line says otherwise. */
#pragma once

#include "session/life/internal.h"

/* ---- launch/ ---- */
/* Number of the newest launch that is not yet in the ring; later calls must wait for it. 0: none. */
uint64_t launch_order(const struct worker_session *c);
/* Whether all launches up to that number are in the ring. */
bool launch_ordered(const struct worker_session *c, uint64_t number);
/* Whether the device runs a launch. */
bool launch_is_running(const struct worker_session *c);
/* The deadline in ms of a launch that exceeds it at `now`; 0: none. This is the outer bound: the worker itself enforces each launch's
 * deadline from the moment in which it reports the launch's start. Its reports about other launches do not matter. */
uint64_t launch_overdue(const struct worker_session *c, uint64_t now);
/* Submits as many launches as the ring has space for. Needs a use and submit_lock; no other lock held. */
void launch_pump(struct worker_session *c);
/* Fetches the output of finished launches. Needs a use; no lock held. */
void launch_fetch_outputs(struct worker_session *c);
/* Ends all launches that did not reach the worker, or that only wait for their output. */
void launch_flush(struct worker_session *c);
/* Drops the table's references. */
void launch_drop_all(struct worker_session *c);

/* ---- code/ ---- */
/* Sends pending unloads to the worker. Needs a use; no lock held. */
void module_unload_some(struct worker_session *c);
/* The worker is gone with its modules. */
void module_drop_all(struct worker_session *c);
/* A variable of a module is a buffer to memory/, named "<module>:<variable>": by its place in the module's list, or its name. */
struct buffer;
bool global_is_name(struct span id);
/* NULL: there is none. */
struct buffer *global_find(struct worker_session *c, struct span name);
/* Its module stays loaded between these. The last release may free the variable. */
void global_hold(struct buffer *b);
void global_release(struct buffer *b);
/* Code that is compiled ahead: a registry's part of it. No lock held. */
void warm_jobs_init(struct warm_jobs *w);
/* Waits for the compilations that are under way; the compile service is stopped. */
void warm_jobs_finish(struct warm_jobs *w);

/* ---- memory/ ---- */
/* The worker is gone with its buffers. */
void buffer_drop_all(struct worker_session *c);
/* ... and with its textures; before the buffers. */
void texture_drop_all(struct worker_session *c);
/* Hands the abandoned to the worker. Needs a use; no lock held. */
void temp_buffer_free_some(struct worker_session *c);
/* The worker is gone with its temporary buffers. */
void temp_buffer_drop_all(struct worker_session *c);
/* The worker is dead, and with it the memory of the temporary buffers that were still to be freed. */
void temp_buffer_drop_abandoned(struct worker_session *c);
/* Of shared memory that is not the buffers' own: a worker that is about to end does not matter to it. */
void share_detach_all(struct worker_session *c);
/* Wakes everyone who waits for a transfer. */
void transfer_wake_all(struct worker_session *c);
/* Cancels all registrations with the worker. Blocks briefly; no lock held. */
void transfer_unwatch_all(struct worker_session *c);
/* Records a lost worker session whose worker is about to end. */
void pending_free_lost(struct worker_session *c);
/* Records that a worker with so many bytes in buffers was killed ... */
void pending_free_begin(struct worker_session *c, uint64_t bytes);
/* ... and that it is gone. No lock held. */
void pending_free_end(struct worker_session *c);

/* ---- hibernate/ ---- */
/* What it has put away is wanted no more. */
void hibernation_drop(struct worker_session *c);
/* Memory is short on its device: puts another session that has been idle for long to sleep. True when one sleeps now. Blocks; no lock held. */
bool hibernation_make_room(struct worker_session *c);
/* The same for a session that STARTS, where no worker could be started for lack of the device's memory. True: another try may succeed. */
bool hibernation_make_room_to_start(struct session *s);

/* ---- batch/ ---- */
/* The worker session is closed with its programs. */
void program_drop_all(struct worker_session *c);
/* Drops results that have expired at `now`. */
void result_store_expire(struct session *s, uint64_t now);
/* The session is about to be freed. No lock held. */
void result_store_finish(struct session *s);
/* Waits until all runner threads have ended; their sessions are closed. No lock held. */
void batch_runners_await(struct registry *r);
