/* The hidden session of a tenant, for work that comes without one. */
#include "session/batch.h"
#include "session/internal.h"

enum { TRIES = 8 };

/* '/' stands in no path segment, so no request can name it. */
static const struct span hidden_id = {"/run", 4};

/* It stays for as long as results of its asynchronous batches are to be had. */
static struct session_spec hidden_spec(const struct registry *r)
{
    uint64_t ttl_s = r->config.result_ttl_s;

    return (struct session_spec){.id = hidden_id,
                                 .memory_limit = UINT64_MAX,
                                 .idle_timeout_s = ttl_s > IDLE_TIMEOUT_S_DEFAULT ? ttl_s : IDLE_TIMEOUT_S_DEFAULT,
                                 .hidden = true};
}

static enum status try_once(struct registry *r, const struct tenant *t, struct session **out, struct problem *why)
{
    bool                created;
    struct session_spec spec = hidden_spec(r);
    enum status         st = session_create(r, t, &spec, out, &created, why);

    if (st)
        return st;
    st = session_revive(*out, why);
    if (st)
        session_return(*out);
    return st;
}

enum status session_hidden(struct registry *r, const struct tenant *t, struct session **out, struct problem *why)
{
    enum status st = STATUS_SESSION_BUSY;

    /* Another request may be making it anew, or the janitor ending it; then there is a better one soon. */
    for (unsigned i = 0; i < TRIES && (st == STATUS_SESSION_BUSY || st == STATUS_SESSION_NOT_FOUND); i++)
        st = try_once(r, t, out, why);
    return st;
}

enum status session_hidden_find(struct registry *r, const struct tenant *t, struct session **out, struct problem *why)
{
    return session_borrow(r, t, hidden_id, out, why);
}
