/* How sessions ended: the last ones of each caller, so that a request that still names one learns why it is gone. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/node.h"
#include "base/threads/held.h"
#include "session/life/internal.h"

struct ended_session {
    char                  id[ID_BYTES];
    struct session_ending end;
};

/* Of one caller. Lives as long as the registry: callers are never forgotten either. */
struct ended_sessions {
    const void            *owner;
    uint64_t               count;     /* of all that have ended; the last ones are kept, at count modulo ENDED_SESSIONS_KEPT_MAX */
    uint64_t               forgotten; /* the greatest generation of those that are not kept */
    struct ended_session   kept[ENDED_SESSIONS_KEPT_MAX];
    struct ended_sessions *next;
};

/* `code`: for problems; NULL: no request can ask. `how`: for people, before the limit's value if it has one. `text`: what work that ends with the
 * session is told. */
static const struct {
    const char *code, *how, *limit, *text;
} ends[] = {
    [SESSION_GOES_ON] = {NULL, NULL, NULL, ""},
    [SESSION_DELETED] = {"deleted", "it was deleted", NULL, "the session was deleted"},
    [SESSION_REMOVED] = {"operator", "an operator of the service ended it", NULL, "an operator ended the session"},
    [SESSION_IDLE] = {"idle", "nobody used it for", "idle_timeout_s", "the session was idle too long"},
    [SESSION_LEASE_ENDED] = {"lease", "no request came for it for", "lease_s", "the session's lease was not renewed"},
    [SESSION_AGED] = {"lifetime", "it has existed for", "max_lifetime_s", "the session reached its maximum lifetime"},
    [SESSION_NOT_STARTED] = {NULL, NULL, NULL, "the session could not start"},
    [SESSION_ABANDONED] = {NULL, NULL, NULL, "the client of the run is gone"},
    [SESSION_MOVED] = {NULL, NULL, NULL, "the session has moved to another node"},
    [SESSION_SHUT_DOWN] = {NULL, NULL, NULL, "the service is shutting down"},
    [SESSION_OF_BEFORE] = {"node_restarted", "the service was restarted since it was made", NULL, ""},
};

const char *ended_text(enum session_end how)
{
    return ends[how].text;
}

static struct ended_sessions *ended_of(const struct registry *r, const void *owner)
{
    struct ended_sessions *e = r->ended;

    assert(held(&r->lock));
    while (e && e->owner != owner)
        e = e->next;
    return e;
}

static struct ended_sessions *make_ended(struct registry *r, const void *owner)
{
    struct ended_sessions *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    e->owner = owner;
    e->next = r->ended;
    r->ended = e;
    return e;
}

/* Which name it had is not known from now on, so that its generations are void for all names. */
static void forget(struct ended_sessions *e, const struct session_ending *end)
{
    if (e->forgotten < end->generation)
        e->forgotten = end->generation;
}

void ended_remember(struct registry *r, const void *owner, const char *id, const struct session_ending *end)
{
    struct ended_sessions *e = ended_of(r, owner);
    struct ended_session  *place;

    if (!e && !(e = make_ended(r, owner)))
        return;
    if (!ends[end->how].code) {
        forget(e, end);
        return;
    }
    place = &e->kept[e->count++ % ENDED_SESSIONS_KEPT_MAX];
    forget(e, &place->end);
    span_copy(span_of(id), place->id, sizeof place->id);
    place->end = *end;
}

void session_lost_before(struct registry *r, const struct tenant *t, struct span id)
{
    const struct session_ending end = {.how = SESSION_OF_BEFORE, .wall_ns = r->started_wall_ns};
    char                        text[ID_BYTES];

    if (!span_copy(id, text, sizeof text))
        return;
    pthread_mutex_lock(&r->lock);
    ended_remember(r, t->owner, text, &end);
    pthread_mutex_unlock(&r->lock);
}

/* The newest: an id may have been used again. */
static const struct ended_session *ended_find(const struct ended_sessions *e, struct span id)
{
    uint64_t left = e->count < ENDED_SESSIONS_KEPT_MAX ? e->count : ENDED_SESSIONS_KEPT_MAX;

    for (uint64_t at = e->count; left; left--) {
        const struct ended_session *one = &e->kept[--at % ENDED_SESSIONS_KEPT_MAX];

        if (span_is(id, one->id))
            return one;
    }
    return NULL;
}

uint64_t ended_generation(const struct registry *r, const void *owner, struct span id)
{
    const struct ended_sessions *e = ended_of(r, owner);
    const struct ended_session  *found = e ? ended_find(e, id) : NULL;

    if (!e)
        return 0;
    return found && found->end.generation > e->forgotten ? found->end.generation : e->forgotten;
}

static enum status say_how(const struct session_ending *end, struct problem *why)
{
    const enum status st = STATUS_SESSION_NOT_FOUND;

    if (!ends[end->how].code)
        return problem_set(why, st, "unknown session");
    if (!ends[end->how].limit)
        return problem_set(why, st, "the session has ended: %s", ends[end->how].how);
    return problem_set(why, st, "the session has ended: %s %" PRIu64 " s, its %s", ends[end->how].how, end->limit_s, ends[end->how].limit);
}

static enum status explain(const struct session_ending *end, struct problem *why)
{
    enum status st = say_how(end, why);

    if (why) {
        why->ended_reason = ends[end->how].code;
        why->ended_limit_s = end->limit_s;
        why->ended_wall_ns = end->wall_ns;
    }
    return st;
}

enum status ended_problem(struct session *s, struct problem *why)
{
    struct registry      *r = s->registry;
    struct session_ending end;
    enum status           st = STATUS_OK;

    pthread_mutex_lock(&r->lock);
    end = s->end;
    if (end.how == SESSION_MOVED)
        st = moved_check(r, s->payer->owner, span_of(s->entry.id), why);
    pthread_mutex_unlock(&r->lock);
    return st ? st : explain(&end, why);
}

/* The service chose this id, but not this process. */
static bool is_of_before(const struct registry *r, struct span id)
{
    struct span tag = node_tag_of_id(id), rest;

    return tag.bytes && r->tag[0] && !span_is(tag, r->tag) && span_is(node_of_id(id, &rest), r->node);
}

enum status ended_explain(struct registry *r, const void *owner, struct span id, struct problem *why)
{
    struct session_ending        end = {.how = SESSION_GOES_ON};
    const struct ended_sessions *e;
    const struct ended_session  *found;
    enum status                  st;

    pthread_mutex_lock(&r->lock);
    st = moved_check(r, owner, id, why);
    e = ended_of(r, owner);
    found = e ? ended_find(e, id) : NULL;
    if (found)
        end = found->end;
    else if (is_of_before(r, id))
        end = (struct session_ending){.how = SESSION_OF_BEFORE, .wall_ns = r->started_wall_ns};
    pthread_mutex_unlock(&r->lock);
    return st ? st : explain(&end, why);
}

void ended_finish(struct registry *r)
{
    struct ended_sessions *e;

    while ((e = r->ended) != NULL) {
        r->ended = e->next;
        free(e);
    }
}
