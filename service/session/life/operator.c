/* All callers' sessions, for operators: looked at and ended. */
#include "session/life/internal.h"

struct look {
    void (*call)(const struct session_info *info, const char *caller, void *context);
    void                *context;
    struct session_info *info;
};

static void look_at(struct session *s, void *context)
{
    struct look *l = context;

    if (s->implicit)
        return;
    session_info_of(s, l->info);
    l->call(l->info, s->tenant_name, l->context);
}

void session_each(struct registry *r, struct session_info                                                *room,
                  void (*call)(const struct session_info *info, const char *caller, void *context), void *context)
{
    registry_each(r, look_at, &(struct look){call, context, room});
}

struct search {
    struct span     caller, id;
    struct session *found; /* pinned */
    unsigned        count;
};

static void search_at(struct session *s, void *context)
{
    struct search *q = context;

    if (s->implicit || !span_is(q->id, s->entry.id) || (q->caller.data && !span_is(q->caller, s->tenant_name)))
        return;
    if (q->count++ == 0) {
        session_pin(s);
        q->found = s;
    }
}

enum status session_find(struct registry *r, struct span caller, struct span id, struct session **out, struct problem *why)
{
    struct search q = {.caller = caller, .id = id};

    registry_each(r, search_at, &q);
    if (q.count == 1) {
        *out = q.found;
        return STATUS_OK;
    }
    if (q.found)
        session_unpin(q.found, false);
    if (q.count)
        return problem_field(why, STATUS_INVALID_FIELD, "caller", "value", "%u callers have a session of this name: add ?caller=NAME",
                             q.count);
    return problem_set(why, STATUS_SESSION_NOT_FOUND, "unknown session");
}

const char *session_caller(const struct session *s)
{
    return s->tenant_name;
}

enum status session_remove(struct session *s, struct problem *why)
{
    if (!registry_unlist(s, SESSION_REMOVED))
        return ended_problem(s, why);
    session_close(s);
    return STATUS_OK;
}
