/* Makes and runs a job's batch; once more, on another implicit session, when that was lost before the batch began. */
#include "session/batch/job.h"
#include "session/bounds.h"

#include "session/batch/program.h"

void batch_job_init(struct batch_job *j, const struct batch_job_ops *ops, struct registry *r, const struct tenant *t)
{
    *j = (struct batch_job){.ops = ops, .registry = r, .tenant = *t, .refs = 1};
    arena_init(&j->arena, REQUEST_ARENA_BYTES);
}

/* The run's own implicit session, or that of the caller's batches in the background. */
static enum status find_session(struct batch_job *j, struct problem *why)
{
    if (j->place.taken)
        return run_session(j->registry, &j->tenant, &j->place, &j->session, why);
    return implicit_session(j->registry, &j->tenant, &j->session, why);
}

static enum status make_batch(struct batch_job *j, struct problem *why)
{
    enum status st = j->session ? STATUS_OK : find_session(j, why);

    if (!st)
        st = batch_create(j->session, j->spec, &j->batch, why);
    if (st)
        return st;
    batch_watch(j->batch, j->unwanted, j->unwanted_context, j->place.taken);
    return j->data ? batch_write_all(j->batch, j->data, why) : STATUS_OK;
}

static enum status run_batch(struct batch_job *j, struct problem *why)
{
    batch_watch(j->batch, j->unwanted, j->unwanted_context, j->place.taken);
    return batch_run(j->batch, &j->arena, why);
}

static void drop_batch(struct batch_job *j)
{
    batch_destroy(j->batch);
    j->batch = NULL;
    if (j->session)
        session_return(j->session);
    j->session = NULL;
}

/* Before it begins, a batch on an implicit session meets faults of others only. */
static bool ends_session(enum status st)
{
    static const enum status all[] = {STATUS_SESSION_FAULTED, STATUS_SESSION_BUSY,      STATUS_SESSION_NOT_FOUND, STATUS_WORKER_LOST,
                                      STATUS_KERNEL_FAULT,    STATUS_EXECUTION_TIMEOUT, STATUS_DEVICE_ERROR,      STATUS_DEVICE_OVERHEATED,
                                      STATUS_DEVICE_RESET,    STATUS_DEVICE_LOST};

    for (size_t i = 0; i < COUNT(all); i++)
        if (st == all[i])
            return true;
    return false;
}

static bool lost_session(const struct batch_job *j, enum status st)
{
    return j->implicit && ends_session(st) && !(j->batch && batch_begun(j->batch));
}

enum status batch_job_verdict(const struct batch_job *j, enum status st, struct problem *why)
{
    if (!lost_session(j, st))
        return st;
    *why = (struct problem){0};
    return problem_set(why, STATUS_SESSION_BUSY,
                       "the implicit session of this run was lost before the run started; send the request again");
}

static enum status attempt_job(struct batch_job *j, bool run, struct problem *why)
{
    enum status st = j->batch ? STATUS_OK : make_batch(j, why);

    return st || !run ? st : run_batch(j, why);
}

/* Of a streamed one nothing has come before it is made. */
static bool may_repeat(const struct batch_job *j, bool run)
{
    return (j->data || !run) && !(j->unwanted && j->unwanted(j->unwanted_context));
}

static enum status attempt_job_repeatedly(struct batch_job *j, bool run, struct problem *why)
{
    enum status st = attempt_job(j, run, why);

    for (unsigned i = 0; i < RUN_TRIES_MAX && lost_session(j, st) && may_repeat(j, run); i++) {
        drop_batch(j);
        *why = (struct problem){0};
        st = attempt_job(j, run, why);
    }
    return batch_job_verdict(j, st, why);
}

enum status batch_job_make(struct batch_job *j, struct problem *why)
{
    return attempt_job_repeatedly(j, false, why);
}

enum status batch_job_run(struct batch_job *j, struct problem *why)
{
    return attempt_job_repeatedly(j, true, why);
}

bool batch_job_begin(struct batch_job *j)
{
    return batch_begin(j->batch);
}

/* Has landed, so this does not block. */
static void end_abandoned(struct reap_item *item)
{
    struct batch_job *j = (struct batch_job *)((char *)item - offsetof(struct batch_job, end_item));
    struct problem    why = {0};

    batch_run(j->batch, &j->arena, &why);
    batch_job_return(j);
}

void batch_job_abandon(struct batch_job *j)
{
    if (!j->batch || !batch_is_under_way(j->batch)) {
        batch_job_return(j);
        return;
    }
    batch_watch(j->batch, NULL, NULL, false);
    j->unwanted = NULL;
    j->end_item.run = end_abandoned;
    batch_end_later(j->batch, &j->end_item);
}

void batch_job_release(struct batch_job *j, bool keep_answer)
{
    drop_batch(j);
    if (j->program)
        program_return(j->program);
    j->program = NULL;
    run_leave(j->registry, &j->place);
    j->ops->release(j, keep_answer);
}
