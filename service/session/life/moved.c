/* Sessions that have gone to another node: where each one is now, told to requests that still come here. */
#include <stdlib.h>

#include "base/threads/held.h"
#include "session/life/internal.h"

enum {
    MOVING_RETRY_MS = 250,
    MOVED_LOOK_MS = 1000,
    MOVED_OVER_AT_ONCE = 8, /* each may wait for a disk */
};

struct moved_session {
    const void          *owner;
    char                 caller[CALLER_NAME_BYTES];
    struct session_moved what;
    LIST_ENTRY(moved_session) listed;
};

static bool is_over(const struct registry *r, const struct session_moved *m)
{
    uint64_t for_s = r->config.moved_for_s ? r->config.moved_for_s : MOVED_FOR_S_MAX, now = wall_ns();

    return now > m->wall_ns && now - m->wall_ns >= for_s * NS_PER_S;
}

/* There is at most one: moved_remember() forgets an earlier one. */
static struct moved_session *find_moved(const struct registry *r, const void *owner, struct span id)
{
    struct moved_session *m;

    assert(held(&r->lock));
    LIST_FOREACH(m, &r->moved, listed)
        if (m->owner == owner && span_is(id, m->what.id))
            break;
    return m;
}

static void forget(struct registry *r, const void *owner, struct span id)
{
    struct moved_session *m = find_moved(r, owner, id);

    if (!m)
        return;
    LIST_REMOVE(m, listed);
    free(m);
}

/* How many are remembered of the owner; moved_look() has the end of the others. */
static unsigned count_of(struct registry *r, const void *owner)
{
    const struct moved_session *m;
    unsigned                    n = 0;

    assert(held(&r->lock));
    LIST_FOREACH(m, &r->moved, listed)
        n += m->owner == owner && !is_over(r, &m->what);
    return n;
}

static struct moved_session *take_one_over(struct registry *r)
{
    struct moved_session *m;

    pthread_mutex_lock(&r->lock);
    LIST_FOREACH(m, &r->moved, listed)
        if (is_over(r, &m->what))
            break;
    if (m)
        LIST_REMOVE(m, listed);
    pthread_mutex_unlock(&r->lock);
    return m;
}

void moved_look(struct registry *r, uint64_t now)
{
    const struct registry_config *c = &r->config;
    struct moved_session         *m;

    if (now < r->moved_look_ns)
        return;
    r->moved_look_ns = now + MOVED_LOOK_MS * NS_PER_MS;
    for (unsigned n = 0; n < MOVED_OVER_AT_ONCE && (m = take_one_over(r)) != NULL; n++) {
        if (c->moved_over)
            c->moved_over(c->context, m->caller, &m->what);
        free(m);
    }
}

enum status moved_make(struct registry *r, const struct tenant *t, const struct session_moved *what, struct moved_session **out,
                       struct problem *why)
{
    struct moved_session *m = calloc(1, sizeof *m);
    unsigned              n;

    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory to remember where the session goes");
    pthread_mutex_lock(&r->lock);
    n = count_of(r, t->owner);
    pthread_mutex_unlock(&r->lock);
    if (n >= MOVED_SESSIONS_PER_CALLER_MAX) {
        free(m);
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "moved_sessions", MOVED_SESSIONS_PER_CALLER_MAX, n, 1);
    }
    m->owner = t->owner;
    span_copy(span_first(span_of(t->name ? t->name : ""), sizeof m->caller - 1), m->caller, sizeof m->caller);
    m->what = *what;
    *out = m;
    return STATUS_OK;
}

void moved_remember(struct registry *r, struct moved_session *m)
{
    forget(r, m->owner, span_of(m->what.id));
    LIST_INSERT_HEAD(&r->moved, m, listed);
}

enum status moved_check(struct registry *r, const void *owner, struct span id, struct problem *why)
{
    const struct moved_session *m = find_moved(r, owner, id);

    if (!m || is_over(r, &m->what))
        return STATUS_OK;
    problem_set(why, STATUS_SESSION_MOVED, "the session has moved to another node, where it is %s", m->what.new_id);
    if (why) {
        memcpy(why->moved_to, m->what.to, sizeof why->moved_to);
        memcpy(why->moved_id, m->what.new_id, sizeof why->moved_id);
        memcpy(why->moved_secret, m->what.secret, sizeof why->moved_secret);
    }
    return STATUS_SESSION_MOVED;
}

bool session_moved_restore(struct registry *r, const struct tenant *t, const struct session_moved *what)
{
    struct moved_session *m;

    if (is_over(r, what))
        return false;
    if (moved_make(r, t, what, &m, NULL))
        return true;
    pthread_mutex_lock(&r->lock);
    moved_remember(r, m);
    pthread_cond_signal(&r->janitor_kick);
    pthread_mutex_unlock(&r->lock);
    return true;
}

void session_moved_forget(struct registry *r, const struct tenant *t, const char *id)
{
    pthread_mutex_lock(&r->lock);
    forget(r, t->owner, span_of(id));
    pthread_mutex_unlock(&r->lock);
}

void moved_finish(struct registry *r)
{
    struct moved_session *m;

    while ((m = LIST_FIRST(&r->moved)) != NULL) {
        LIST_REMOVE(m, listed);
        free(m);
    }
}

/* ---- on the way ---- */

/* A snapshot that is still being read holds it as well. */
bool session_moving_locked(struct session *s)
{
    assert(held(&s->lock));
    if (!s->move.until_ns)
        return false;
    if (s->move.leaving || s->snapshots || now_ns() < s->move.until_ns)
        return true;
    s->move = (struct session_move){0};
    return false;
}

enum status moving_problem(struct problem *why)
{
    problem_set(why, STATUS_SESSION_MOVING, "the session is being moved to another node; send the request again");
    if (why)
        why->retry_after_ms = MOVING_RETRY_MS;
    return STATUS_SESSION_MOVING;
}

/* A copy that has come back to where it once was: until that is confirmed, the session is where it went then. */
enum status restoring_problem(struct session *s, struct problem *why)
{
    enum status st;

    if (!s->restored.move[0])
        return problem_set(why, STATUS_SESSION_BUSY, "the session is being restored from a snapshot");
    pthread_mutex_lock(&s->registry->lock);
    st = moved_check(s->registry, s->payer->owner, span_of(s->entry.id), why);
    pthread_mutex_unlock(&s->registry->lock);
    if (st)
        return st;
    moving_problem(why);
    return problem_set(
        why, STATUS_SESSION_MOVING,
        "this is a copy of a session that its former node has not given up, or not yet; if its client is gone and the former node has the "
        "session, DELETE .../move?move=%s ends the copy",
        s->restored.move);
}
