/* Batches from their making to their end, at once or in the background: there they wait in their session's queue, are done one after the
 * other in the order of their coming, and their answers are kept for a while. What a batch is decoded from and answered with belongs to whoever
 * embeds the job. No HTTP, no JSON.
 *
 * Jobs in the background belong to their session and outlive its resets; a reset ends those that wait or run. */
#pragma once

#include <sys/queue.h>

#include "base/threads/waitlist.h"
#include "session/batch/batch.h"
#include "session/life/run_place.h"
#include "session/life/table.h"

struct batch_job;

/* The part of whoever embeds it. No lock is held. */
struct batch_job_ops {
    /* After a run in the background that succeeded, on its thread: makes the answer, and sets job.bytes to what it takes. May block. */
    enum status (*answer)(struct batch_job *j, struct problem *why);
    /* The batch is gone: lets go of what it was made from, and of the answer unless it is to be kept. Maybe more than once, on any thread. */
    void (*release)(struct batch_job *j, bool keep_answer);
};

/* In memory from malloc() whose start it is: the last reference frees that. */
struct batch_job {
    struct entry                entry; /* in the background */
    const struct batch_job_ops *ops;
    struct registry            *registry;
    struct tenant               tenant;
    bool                        implicit; /* on one of the tenant's implicit sessions */
    struct session             *session;  /* borrowed until it is over; of an implicit one only once the batch is made */
    struct run_place            place;    /* of one on an implicit session that is waited for */
    struct program             *program;  /* borrowed; NULL: the batch is no run of one */
    const struct batch_spec    *spec;
    const struct span          *data; /* [spec.segments_count]: the segments, when they are here; NULL: they are streamed */
    batch_unwanted             *unwanted;
    void                       *unwanted_context;
    struct arena                arena;    /* what `spec` and a problem lie in */
    struct batch               *batch;    /* NULL until it is made */
    struct reap_item            end_item; /* of a run that goes on when nobody waits for it any more */

    /* in the background, under its session's lock; the runner alone touches a running one's parts above */
    struct session *home;          /* whose queue it is in; NULL: not in the background */
    uint64_t        bytes;         /* of host memory that it takes: as it waits, then as its answer is kept */
    uint64_t        counted_bytes; /* of them, in the result store and the registry */
    unsigned        refs;          /* the store's, the runner's, and those outside, each of which pins the session */
    enum work_state state;
    bool            kept;   /* counted_bytes are in result_store.kept_bytes, else in queued_bytes */
    _Atomic bool    forced; /* somebody resets the session for its sake: what it loses by that is not done once more */
    uint64_t        created_wall_ns, started_wall_ns, finished_wall_ns, expires_ns;
    struct problem  problem;
    struct waitlist end;           /* over when it has succeeded, failed or been cancelled */
    TAILQ_ENTRY(batch_job) listed; /* in result_store.queued, then in result_store.finished */
    struct batch_job *next;        /* among those to be freed */
};

/* One reference, the caller's. */
void batch_job_init(struct batch_job *j, const struct batch_job_ops *ops, struct registry *r, const struct tenant *t);
/* Its session, its batch, and the segments that are here. An implicit session that is lost before the batch begins is replaced by another one,
 * as long as nothing was streamed: what was lost is another run's fault or nobody's. Blocks. */
enum status batch_job_make(struct batch_job *j, struct problem *why);
/* Runs the batch, which is made when there is none; with the same replacement. Blocks. */
enum status batch_job_run(struct batch_job *j, struct problem *why);
/* As batch_begin(), of a job whose batch is made. */
bool batch_job_begin(struct batch_job *j);
/* As batch_job_return() by a caller who waits no longer: a run that is under way goes on and ends by itself. Does not block. */
void batch_job_abandon(struct batch_job *j);
/* What the caller is told when the job fails so: the loss of an implicit session is no fault of his. All else stays as it is. */
enum status batch_job_verdict(const struct batch_job *j, enum status st, struct problem *why);
/* Lets go of all but the job itself, and what the embedding part keeps of its answer. */
void batch_job_release(struct batch_job *j, bool keep_answer);

/* QUOTA_EXCEEDED when no more batches may wait now; an early look that reserves nothing. */
enum status batch_job_room(struct session *s, struct problem *why);
/* Puts it, of job.bytes, into its session's queue, in which it has a reference of its own. */
enum status batch_job_queue(struct batch_job *j, struct problem *why);
enum status batch_job_borrow(struct session *s, struct span id, struct batch_job **out, struct problem *why);
void        batch_job_return(struct batch_job *j);
/* The same by the service itself, which is no use of the session. */
void batch_job_return_unnoticed(struct batch_job *j);

/* The session's that have ended, oldest first: references, to be returned. */
unsigned batch_jobs_ended(struct session *s, struct batch_job *out[BATCHES_KEPT_MAX]);

struct batch_job_info {
    char            id[ID_BYTES];
    enum work_state state;
    uint64_t        created_wall_ns, started_wall_ns, finished_wall_ns; /* 0 = not yet */
    uint64_t        expires_wall_ns;                                    /* when it is forgotten at the latest; 0 = not finished */
    struct problem  problem;                                            /* when failed; borrowed parts live until batch_job_return */
};
void batch_job_info_of(struct batch_job *j, struct batch_job_info *out);

/* Queued: ends as cancelled, its work is released. Running: LAUNCH_RUNNING, and if `force` the caller resets the session next: it then
 * ends as cancelled. Finished: OK. */
enum status batch_job_cancel(struct batch_job *j, bool force, struct problem *why);
/* A finished one is found no more. */
void batch_job_forget(struct batch_job *j);

/* One that has ended elsewhere, with the session that is restored: it is told as it was, and its result is kept as long as a new one. QUOTA_EXCEEDED: it
 * has no room; SNAPSHOT_INVALID: there is one of that id. */
enum status batch_job_restore(struct session *s, struct batch_job *j, const struct batch_job_info *was, struct problem *why);
