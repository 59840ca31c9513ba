/* For operators: the sessions of all callers, looked at and ended, and what each caller has used. */
#include "api/session_members.h"
#include "base/log/log.h"

static void add_session(const struct session_info *info, const char *caller, void *context)
{
    struct list *l = context;

    json_open_object(l->w, NULL);
    json_add_text(l->w, "caller", caller);
    session_members(l->w, l->request, info);
    json_close_object(l->w);
}

static void add_caller(struct json_writer *w, const struct caller_info *i)
{
    json_open_object(w, NULL);
    json_add_text(w, "name", i->name);
    json_add_u64(w, "sessions", i->sessions);
    json_add_u64(w, "runs", i->runs);
    json_add_u64(w, "memory_bytes", i->memory_bytes);
    json_add_u64(w, "device_time_us", i->device_ns / 1000);
    json_add_u64(w, "launches", i->launches);
    json_add_u64(w, "to_device_bytes", i->to_device_bytes);
    json_add_u64(w, "from_device_bytes", i->from_device_bytes);
    json_close_object(w);
}

static enum status add_callers(struct json_writer *w, struct request *r)
{
    unsigned            room = caller_count(app_of(r)->registry), n;
    struct caller_info *items = arena_array(&r->arena, room ? room : 1, sizeof *items);

    if (!items)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the list");
    n = caller_list(app_of(r)->registry, items, room);
    json_open_array(w, "callers");
    for (unsigned i = 0; i < n; i++)
        add_caller(w, &items[i]);
    json_close_array(w);
    return STATUS_OK;
}

/* All at once: there are never more than SESSIONS_MAX. */
enum status admin_list(struct request *r)
{
    struct session_info *info = arena_alloc(&r->arena, sizeof *info);
    struct answer        a;
    struct list          l = {.request = r, .w = &a.w};
    enum status          st;

    if (!info)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the list");
    answer_begin(&a);
    json_open_array(&a.w, "items");
    session_each(app_of(r)->registry, info, add_session, &l);
    json_close_array(&a.w);
    json_add_null(&a.w, "next_cursor");
    st = add_callers(&a.w, r);
    if (!st)
        return answer_end(&a, r, 200);
    buf_finish(&a.text);
    return st;
}

static enum status find_it(struct request *r, struct session **out)
{
    struct span caller = {0};

    request_query(r, "caller", &caller);
    return session_find(app_of(r)->registry, caller, r->params[0], out, &r->problem);
}

enum status admin_get(struct request *r)
{
    struct session_info *info = arena_alloc(&r->arena, sizeof *info);
    struct session      *s;
    struct answer        a;
    enum status          st = info ? find_it(r, &s) : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the session");

    if (st)
        return st;
    session_info_of(s, info);
    answer_begin(&a);
    json_add_text(&a.w, "caller", session_caller(s));
    session_members(&a.w, r, info);
    st = answer_end(&a, r, 200);
    session_return_unnoticed(s);
    return st;
}

enum status admin_delete(struct request *r)
{
    struct session *s;
    enum status     st = find_it(r, &s);

    if (st)
        return st;
    st = session_remove(s, &r->problem);
    if (!st)
        log_info("session", "%s ended session %.*s of %s", r->caller->name, SPAN_ARG(sid_of(r)), session_caller(s));
    session_return_unnoticed(s);
    return st ? st : reply_empty(&r->reply, 204);
}
