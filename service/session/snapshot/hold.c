/* Holds sessions still, and lists those that were made again. */
#include "session/snapshot/hold.h"

#include "base/deadline.h"
#include "base/threads/held.h"
#include "session/batch/batch_internal.h"
#include "session/bounds.h"
#include "session/memory/transfer_internal.h"

static bool has_unready_module(const struct worker_session *c)
{
    for (unsigned i = 0; i < c->modules.count; i++)
        if (!((const struct module *)c->modules.items[i])->ready)
            return true;
    return false;
}

static bool has_unready_buffer(const struct worker_session *c)
{
    for (unsigned i = 0; i < c->buffers.count; i++)
        if (!((const struct buffer *)c->buffers.items[i])->ready)
            return true;
    return false;
}

static bool has_upload(const struct worker_session *c)
{
    for (const struct transfer *t = LIST_FIRST(&c->transfers); t; t = LIST_NEXT(t, link))
        if (t->writing)
            return true;
    return false;
}

/* What changes the session now; NULL: nothing. With session.lock held. */
static const char *under_way(const struct session *s)
{
    const struct worker_session *c = s->worker_session;

    assert(held(&s->lock));
    if (c->unfinished_count)
        return "a launch";
    if (c->batches || s->batches.running || s->batches.queued.count)
        return "a batch";
    if (has_upload(c))
        return "an upload";
    if (has_unready_module(c))
        return "a compilation";
    /* Reads are uncounted before the use that they are, so these are equal only when nothing else uses it. */
    return c->uses > c->reads || has_unready_buffer(c) ? "another request" : NULL;
}

/* PENDING while something is under way. `moment` NULL: it is held. */
static enum status try_at(struct session *s, uint64_t *moment, const char **what, struct problem *why)
{
    enum status st;

    pthread_mutex_lock(&s->lock);
    st = session_usable_locked(s, why);
    session_moving_locked(s); /* or its time is over */
    if (!st && !s->snapshots && (*what = under_way(s)) != NULL)
        st = STATUS_PENDING;
    if (moment)
        *moment = s->changes;
    else
        s->snapshots += !st;
    pthread_mutex_unlock(&s->lock);
    return st;
}

enum status snapshot_rest(const struct snapshot_wait *wait, const char *what, struct problem *why)
{
    if (wait->unwanted && wait->unwanted(wait->context))
        return problem_set(why, STATUS_CANCELLED, "nobody waits for the snapshot any more");
    if (deadline_left_ns(wait->deadline_ns) == 0)
        return problem_set(why, STATUS_SESSION_BUSY,
                           "%s is under way, and a snapshot is taken when nothing is; wait for it, or ask for a longer wait with "
                           "Prefer: wait=SECONDS",
                           what);
    sleep_ns(SNAPSHOT_LOOK_MS * NS_PER_MS);
    return STATUS_OK;
}

enum status snapshot_await(struct session *s, const struct snapshot_wait *wait, uint64_t *moment, struct problem *why)
{
    const char *what = "";
    enum status st;

    while ((st = try_at(s, moment, &what, why)) == STATUS_PENDING) {
        st = snapshot_rest(wait, what, why);
        if (st)
            return st;
    }
    return st;
}

bool snapshot_still(struct session *s, uint64_t moment)
{
    bool still;

    pthread_mutex_lock(&s->lock);
    still = s->state == SESSION_READY && s->changes == moment;
    pthread_mutex_unlock(&s->lock);
    return still;
}

void snapshot_kept(struct session *s, uint64_t moment, uint64_t taken_wall_ns)
{
    pthread_mutex_lock(&s->lock);
    s->kept_changes = moment;
    s->kept_wall_ns = taken_wall_ns;
    pthread_mutex_unlock(&s->lock);
}

bool snapshot_is_kept(struct session *s)
{
    bool kept;

    pthread_mutex_lock(&s->lock);
    kept = s->kept_wall_ns && s->kept_changes == s->changes && s->worker_session && !s->worker_session->shares_count;
    pthread_mutex_unlock(&s->lock);
    return kept;
}

void snapshot_release(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    assert(s->snapshots > 0);
    s->snapshots--;
    pthread_mutex_unlock(&s->lock);
}

void session_restored(struct session *s)
{
    if (s->restored.move[0]) {
        atomic_store(&s->pending, true);
        return;
    }
    registry_tell_made(s, true);
    atomic_store(&s->restoring, false);
}

void session_not_restored(struct session *s)
{
    session_close_later(s, SESSION_NOT_STARTED, 0);
}
