/* A tenant's implicit sessions, for work that names no session. */
#include <stdio.h>

#include "session/life/internal.h"
#include "session/life/run_place.h"

enum { TRIES = 8 };

/* Of the session for background batches; each synchronous run has a session of its own. No request can name it: no path segment contains
 * '/'. */
static const struct span background_id = {"/run", 4};

struct span implicit_run_id(unsigned number, char id[ID_BYTES])
{
    return (struct span){id, (size_t)snprintf(id, ID_BYTES, "%s/%u", background_id.data, number)};
}

/* The session lives as long as results of its asynchronous batches can be fetched. */
static struct session_spec background_spec(const struct registry *r)
{
    uint64_t ttl_s = r->config.result_ttl_s;

    return (struct session_spec){.id = background_id,
                                 .memory_limit = MEMORY_LIMIT_NONE,
                                 .idle_timeout_s = ttl_s > IDLE_TIMEOUT_S_DEFAULT ? ttl_s : IDLE_TIMEOUT_S_DEFAULT,
                                 .implicit = true};
}

static enum status try_once(struct registry *r, const struct tenant *t, const struct session_spec *spec, struct session **out,
                            struct problem *why)
{
    struct session *s;
    bool            created;
    enum status     st = session_create(r, t, spec, &s, &created, why);

    if (st)
        return st;
    st = session_revive(s, why);
    if (st)
        session_return(s);
    else
        *out = s;
    return st;
}

enum status implicit_session_of_run(struct registry *r, const struct tenant *t, const struct session_spec *spec, struct session **out,
                                    struct problem *why)
{
    enum status st = STATUS_SESSION_BUSY;

    /* Another request may be recreating it, or the janitor ending it; soon there is a usable one. */
    for (unsigned i = 0; i < TRIES && (st == STATUS_SESSION_BUSY || st == STATUS_SESSION_NOT_FOUND); i++)
        st = try_once(r, t, spec, out, why);
    return st;
}

enum status implicit_session(struct registry *r, const struct tenant *t, struct session **out, struct problem *why)
{
    struct session_spec spec = background_spec(r);

    return implicit_session_of_run(r, t, &spec, out, why);
}

enum status implicit_session_find(struct registry *r, const struct tenant *t, struct session **out, struct problem *why)
{
    return session_borrow(r, t, background_id, out, why);
}
