/* Launches that have ended travel with their session: who asks for one is answered where the session is next, and one that is sent again under its id is
 * not run twice. */
#include "base/threads/held.h"
#include "session/launch/internal.h"

#include <assert.h>
#include <stdlib.h>

/* References to what has ended, oldest first. */
static unsigned take_ended(struct session *s, struct launch **out)
{
    struct launch *l;
    unsigned       n = 0;

    pthread_mutex_lock(&s->lock);
    if (s->worker_session)
        TAILQ_FOREACH(l, &s->worker_session->finished, kept) {
            assert(n < LAUNCHES_KEPT_MAX);
            l->refs++;
            out[n++] = l;
        }
    pthread_mutex_unlock(&s->lock);
    return n;
}

bool launch_each_ended(struct session *s, launch_seen *each, void *context)
{
    struct launch    **ended = calloc(LAUNCHES_KEPT_MAX, sizeof(struct launch *));
    unsigned           n = ended ? take_ended(s, ended) : 0;
    bool               found = ended != NULL;
    struct launch_info info;

    for (unsigned i = 0; i < n; i++) {
        launch_info_of(ended[i], &info);
        each(context, &info, ended[i]->digest);
    }
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < n; i++)
        launch_unref(ended[i]);
    pthread_mutex_unlock(&s->lock);
    free(ended);
    return found;
}

static bool copy_texts(struct launch *l, const struct launch_info *was)
{
    l->output = was->output.bytes ? malloc(was->output.bytes) : NULL;
    l->problem = was->state == WORK_FAILED ? malloc(sizeof *l->problem) : NULL;
    if ((was->output.bytes && !l->output) || (was->state == WORK_FAILED && !l->problem))
        return false;
    if (l->output)
        memcpy(l->output, was->output.data, was->output.bytes);
    if (l->problem)
        *l->problem = *was->problem;
    return true;
}

/* In no session yet; the reference is the maker's, then the table's. NULL: no memory. */
static struct launch *make_past(const struct launch_info *was, const unsigned char digest[SHA256_BYTES])
{
    struct launch *l = launch_allocate(span_of(was->kernel));

    if (!l)
        return NULL;
    if (!copy_texts(l, was)) {
        launch_unref(l);
        return NULL;
    }
    memcpy(l->entry.id, was->id, sizeof l->entry.id);
    memcpy(l->digest, digest, SHA256_BYTES);
    memcpy(l->module_id, was->module, sizeof l->module_id);
    memcpy(l->dtype, was->dtype, sizeof l->dtype);
    memcpy(l->stream, was->stream, sizeof l->stream);
    memcpy(l->grid, was->grid, sizeof l->grid);
    memcpy(l->block, was->block, sizeof l->block);
    l->vendor = was->vendor;
    l->untimed = was->untimed;
    l->shared_bytes = was->shared_bytes;
    l->state = was->state;
    l->ended = true;
    l->created_wall_ns = was->created_wall_ns;
    l->started_wall_ns = was->started_wall_ns;
    l->finished_wall_ns = was->finished_wall_ns;
    l->gpu_us = was->gpu_us;
    l->output_bytes = was->output.bytes;
    l->output_truncated = was->output_truncated;
    return l;
}

static enum status put(struct worker_session *c, struct launch *l, struct problem *why)
{
    assert(held(&c->session->lock));
    if (table_get(&c->launches, span_of(l->entry.id)))
        return problem_set(why, STATUS_SNAPSHOT_INVALID, "two launches have the id %s", l->entry.id);
    if (table_put(&c->launches, &l->entry))
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a launch");
    l->worker_session = c;
    worker_session_ref(c);
    l->end.lock = &c->session->lock;
    waitlist_end(&l->end);
    launch_keep(c, l);
    return STATUS_OK;
}

enum status launch_restore(struct session *s, const struct launch_info *was, const unsigned char digest[SHA256_BYTES], struct problem *why)
{
    struct launch *l = make_past(was, digest);
    enum status    st;

    assert(was->state >= WORK_SUCCEEDED);
    if (!l)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a launch");
    pthread_mutex_lock(&s->lock);
    st = s->worker_session ? put(s->worker_session, l, why) : problem_set(why, STATUS_WORKER_LOST, "the session has lost its worker");
    pthread_mutex_unlock(&s->lock);
    if (st)
        launch_unref(l);
    return st;
}
