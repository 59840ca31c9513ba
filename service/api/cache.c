/* The cache of compiled code: what is in it, and removing that. */
#include "session/code/code_cache.h"

#include "api/call.h"
#include "api/endpoints.h"

static void add_use(struct json_writer *w, const struct code_cache_use *use)
{
    json_add_u64(w, "entries", use->entries);
    json_add_u64(w, "bytes", use->bytes);
    json_add_u64(w, "hits", use->hits);
    json_add_u64(w, "misses", use->misses);
}

/* Of the caller's sources. With --cache-shared it is everybody's. */
static const char *holder_of(const struct request *r)
{
    return code_holder(app_of(r)->config->cache_shared, r->caller->name);
}

static bool is_admin(const struct request *r)
{
    return r->caller->scopes & SCOPE_ADMIN;
}

enum status cache_get(struct request *r)
{
    struct code_cache    *cache = app_of(r)->cache;
    bool                  enabled = code_cache_enabled(cache);
    struct code_cache_use use;
    struct answer         a;

    answer_begin(&a);
    json_add_bool(&a.w, "enabled", enabled);
    json_add_bool(&a.w, "shared", app_of(r)->config->cache_shared);
    code_cache_use_of(cache, holder_of(r), &use);
    add_use(&a.w, &use);
    json_open_object(&a.w, "limits");
    json_add_u64(&a.w, "entries", enabled ? CACHE_ENTRIES_MAX : 0);
    json_add_u64(&a.w, "bytes", enabled ? app_of(r)->config->cache_mib * 1024 * 1024 : 0);
    json_close_object(&a.w);
    if (is_admin(r)) {
        code_cache_use_of(cache, NULL, &use);
        json_open_object(&a.w, "all");
        add_use(&a.w, &use);
        json_close_object(&a.w);
    }
    return answer_end(&a, r, 200);
}

struct clear_request {
    uint64_t unused_s;
    bool     all;
};

static enum status read_query(struct request *r, struct clear_request *q)
{
    struct span seconds;

    *q = (struct clear_request){0};
    if (request_query(r, "older_than_s", &seconds) && !span_u64(seconds, &q->unused_s))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "older_than_s", "value",
                             "older_than_s must be a whole number of seconds, 0 or more");
    return flag_of(r, "all", &q->all);
}

static enum status check_right(struct request *r, const struct clear_request *q)
{
    if (is_admin(r) || (!q->all && !app_of(r)->config->cache_shared))
        return STATUS_OK;
    return problem_set(&r->problem, STATUS_INSUFFICIENT_SCOPE, "%s needs the scope admin",
                       q->all ? "all=1, which removes the code of all callers," : "removing code from a cache that callers share");
}

enum status cache_delete(struct request *r)
{
    struct clear_request  q;
    struct code_cache_use removed;
    struct answer         a;
    enum status           st = read_query(r, &q);

    if (!st)
        st = check_right(r, &q);
    if (st)
        return st;
    code_cache_clear(app_of(r)->cache, q.all ? NULL : holder_of(r), q.unused_s, &removed);
    answer_begin(&a);
    json_add_u64(&a.w, "removed_entries", removed.entries);
    json_add_u64(&a.w, "removed_bytes", removed.bytes);
    return answer_end(&a, r, 200);
}
