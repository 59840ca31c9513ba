/* Code that is compiled into the cache ahead of its use: begun, followed, cancelled. */
#include "session/code/warm.h"

#include <stdio.h>

#include "api/call.h"
#include "api/endpoints.h"
#include "api/follow.h"
#include "api/modules.h"

/* ---- what came ---- */

struct warm_fields {
    const struct json *kernels, *dtypes, *modules, *devices;
};

static const struct json_field create_fields[] = {
    JSON_FIELD(FIELD_ANY, struct warm_fields, kernels, false, 0),
    JSON_FIELD(FIELD_ANY, struct warm_fields, dtypes, false, 0),
    JSON_FIELD(FIELD_ANY, struct warm_fields, modules, false, 0),
    JSON_FIELD(FIELD_ANY, struct warm_fields, devices, false, 0),
};

/* A request while it is decoded; everything is in its arena. */
struct decoding {
    struct request      *request;
    unsigned             devices[DEVICES_MAX];
    unsigned             devices_count;
    struct warm_request *items; /* [CACHE_WARM_ITEMS_MAX] */
    unsigned             items_count;
};

static enum status check_list(struct request *r, const struct json *list, const char *pointer, const char *of)
{
    if (!list || json_type_of(list) == JSON_ARRAY)
        return STATUS_OK;
    return problem_field(&r->problem, STATUS_INVALID_FIELD, pointer, "type", "%s must be an array of %s", pointer + 1, of);
}

static enum status check_lists(struct request *r, const struct warm_fields *f)
{
    enum status st = check_list(r, f->kernels, "/kernels", "names of built-in kernels");

    if (!st)
        st = check_list(r, f->dtypes, "/dtypes", "dtypes");
    if (!st)
        st = check_list(r, f->modules, "/modules", "modules, {\"source\": ...}");
    if (!st)
        st = check_list(r, f->devices, "/devices", "device ids or backends");
    if (!st && !json_count(f->kernels) && !json_count(f->modules))
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "", "required", "name built-in kernels in kernels, or sources in modules");
    if (!st && f->dtypes && !json_count(f->kernels))
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/dtypes", "value", "dtypes are those of kernels, and there are none");
    return st;
}

/* For every device. */
static enum status add_item(struct decoding *d, struct warm_request item)
{
    unsigned left = CACHE_WARM_ITEMS_MAX - d->items_count;

    if (d->devices_count > left)
        return problem_limit(&d->request->problem, STATUS_QUOTA_EXCEEDED, "cache_warm_items", CACHE_WARM_ITEMS_MAX, d->items_count,
                             d->devices_count);
    for (unsigned i = 0; i < d->devices_count; i++) {
        item.device = d->devices[i];
        d->items[d->items_count++] = item;
    }
    return STATUS_OK;
}

static enum status take_device(struct decoding *d, struct span id, const char *pointer)
{
    struct pool    *pool = app_of(d->request)->pool;
    struct problem *why = &d->request->problem;
    int             found = pool_device_choose(pool, id);

    if (found < 0 && pool_device_missing(pool, id, why) != STATUS_DEVICE_NOT_FOUND)
        return why->status;
    if (found < 0)
        return problem_field(&d->request->problem, STATUS_DEVICE_NOT_FOUND, pointer, "not_found", "no device has this id or backend");
    for (unsigned i = 0; i < d->devices_count; i++)
        if (d->devices[i] == (unsigned)found)
            return STATUS_OK;
    d->devices[d->devices_count++] = (unsigned)found;
    return STATUS_OK;
}

/* None named: the one that a session would get. */
static enum status take_devices(struct decoding *d, const struct json *list)
{
    char        pointer[PROBLEM_POINTER_BYTES];
    unsigned    n = 0;
    enum status st = STATUS_OK;

    if (!json_count(list))
        return take_device(d, (struct span){0}, "/devices");
    for (const struct json *e = json_first(list); e && !st; e = json_next(e)) {
        problem_pointer(pointer, "/devices", n++);
        if (json_type_of(e) != JSON_STRING || json_text(e).bytes == 0)
            return problem_field(&d->request->problem, STATUS_INVALID_FIELD, pointer, "type", "a device must be its id or its backend");
        st = take_device(d, json_text(e), pointer);
    }
    return st;
}

static enum status take_named_dtypes(struct decoding *d, const struct builtin *k, const struct json *dtypes)
{
    char               pointer[PROBLEM_POINTER_BYTES];
    enum builtin_dtype dtype;
    unsigned           n = 0;
    enum status        st = STATUS_OK;

    for (const struct json *e = json_first(dtypes); e && !st; e = json_next(e)) {
        problem_pointer(pointer, "/dtypes", n++);
        if (json_type_of(e) != JSON_STRING || !builtin_dtype_find(k, json_text(e), &dtype))
            return problem_field(&d->request->problem, STATUS_INVALID_FIELD, pointer, "value",
                                 "%s does not support this dtype; GET /v1/kernels/%s lists its dtypes", k->name, k->name);
        st = add_item(d, (struct warm_request){.kernel = k, .dtype = dtype});
    }
    return st;
}

/* None named: all that the kernel has. */
static enum status take_dtypes(struct decoding *d, const struct builtin *k, const struct json *dtypes)
{
    enum status st = STATUS_OK;

    if (json_count(dtypes))
        return take_named_dtypes(d, k, dtypes);
    for (unsigned dtype = 0; dtype < BUILTIN_DTYPES && !st; dtype++)
        if (k->dtypes >> dtype & 1)
            st = add_item(d, (struct warm_request){.kernel = k, .dtype = (enum builtin_dtype)dtype});
    return st;
}

static enum status take_kernels(struct decoding *d, const struct warm_fields *f)
{
    char                  pointer[PROBLEM_POINTER_BYTES];
    const struct builtin *k;
    unsigned              n = 0;
    enum status           st = STATUS_OK;

    for (const struct json *e = json_first(f->kernels); e && !st; e = json_next(e)) {
        problem_pointer(pointer, "/kernels", n++);
        k = json_type_of(e) == JSON_STRING ? builtin_find(json_text(e)) : NULL;
        if (!k)
            return problem_field(&d->request->problem, STATUS_KERNEL_NOT_FOUND, pointer, "not_found",
                                 "unknown built-in kernel; GET /v1/kernels lists them");
        st = take_dtypes(d, k, f->dtypes);
    }
    return st;
}

static enum status take_modules(struct decoding *d, const struct json *list, struct warm_spec *spec)
{
    struct request     *r = d->request;
    struct module_spec *modules = arena_array(&r->arena, json_count(list), sizeof *modules);
    char                pointer[PROBLEM_POINTER_BYTES];
    unsigned            n = 0;
    enum status         st = STATUS_OK;

    if (!modules)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    for (const struct json *e = json_first(list); e && !st; e = json_next(e), n++) {
        st = add_item(d, (struct warm_request){.module = n});
        problem_pointer(pointer, "/modules", n);
        if (!st && json_type_of(e) != JSON_OBJECT)
            st = problem_field(&r->problem, STATUS_INVALID_FIELD, pointer, "type", "a module must be an object with its source");
        if (!st)
            st = module_decode(e, pointer, request_prefer(r).lenient, &r->arena, &modules[n], &r->problem);
    }
    spec->modules = modules;
    spec->modules_count = n;
    return st;
}

static enum status decode(struct request *r, struct warm_spec *spec)
{
    struct decoding    d = {.request = r};
    struct warm_fields f = {0};
    enum status        st = body_decode(r, create_fields, COUNT(create_fields), &f);

    if (!st)
        st = check_lists(r, &f);
    if (!st && !(d.items = arena_array(&r->arena, CACHE_WARM_ITEMS_MAX, sizeof *d.items)))
        st = problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    if (!st)
        st = take_devices(&d, f.devices);
    if (!st)
        st = take_kernels(&d, &f);
    if (!st)
        st = take_modules(&d, f.modules, spec);
    spec->items = d.items;
    spec->items_count = d.items_count;
    return st;
}

/* ---- what goes ---- */

static void add_item_problem(struct json_writer *w, const struct request *r, const struct warm_item *item)
{
    struct problem why;

    problem_set(&why, item->status, "%s", item->detail ? item->detail : status_title(item->status));
    add_problem(w, "problem", r, &why);
}

static void add_item_members(struct json_writer *w, const struct request *r, const struct warm_item *item)
{
    struct pool_device device;

    if (item->what.kernel) {
        json_add_text(w, "kernel", item->what.kernel->name);
        json_add_text(w, "dtype", builtin_dtype_name(item->what.dtype));
    } else {
        json_add_u64(w, "module", item->what.module);
    }
    if (pool_device_at(app_of(r)->pool, item->what.device, &device))
        json_add_text(w, "device", device.id);
    json_add_text(w, "state", work_state_name(item->state));
    if (item->state == WORK_SUCCEEDED && !item->what.kernel) {
        json_add_bool(w, "cached", item->cached);
        json_add_double(w, "compile_ms", item->compile_ms);
    }
    if (item->state == WORK_FAILED)
        add_item_problem(w, r, item);
}

static void add_members(struct json_writer *w, const struct request *r, struct warm_job *j, const struct warm_info *i)
{
    struct warm_item item;

    json_add_text(w, "id", i->id);
    json_add_text(w, "state", work_state_name(i->state));
    json_add_time(w, "created_at", i->created_wall_ns);
    json_add_time(w, "finished_at", i->finished_wall_ns);
    json_add_time(w, "expires_at", i->expires_wall_ns);
    json_add_u64(w, "total", i->items_count);
    json_add_u64(w, "succeeded", i->succeeded);
    json_add_u64(w, "failed", i->failed);
    json_open_array(w, "items");
    for (unsigned n = 0; n < i->items_count; n++) {
        warm_job_item_of(j, n, &item);
        json_open_object(w, NULL);
        add_item_members(w, r, &item);
        json_close_object(w);
    }
    json_close_array(w);
}

static enum status answer_job(struct request *r, struct warm_job *j, unsigned http_status)
{
    struct warm_info i;
    struct answer    a;
    char             progress[48];

    warm_job_info_of(j, &i);
    snprintf(progress, sizeof progress, "%s-%u", work_state_name(i.state), i.succeeded + i.failed);
    if (http_status == 200 && r->method == METHOD_GET && follow_etag(r, i.created_wall_ns, progress))
        return reply_empty(&r->reply, 304);
    if (http_status == 202)
        reply_header(&r->reply, "Location", "/v1/cache/warm/%s", i.id);
    answer_begin(&a);
    add_members(&a.w, r, j, &i);
    return answer_end(&a, r, http_status);
}

/* ---- POST ---- */

static enum status start(struct request *r, const struct warm_spec *spec)
{
    struct tenant    t = tenant_of(r);
    struct warm_job *j;
    enum status      st = warm_job_start(app_of(r)->registry, &t, spec, &j, &r->problem);

    if (st)
        return st;
    if (request_prefer(r).respond_async)
        reply_header_text(&r->reply, "Preference-Applied", "respond-async");
    st = answer_job(r, j, 202);
    warm_job_return(j);
    return st;
}

enum status warms_create(struct request *r)
{
    struct warm_spec spec = {0};
    enum status      st = decode(r, &spec);

    return st ? st : start(r, &spec);
}

/* ---- GET ---- */

/* Over several calls of its handler; in the request's arena, released by on_finish. */
struct warm_following {
    struct warm_job *job; /* a reference */
    struct follow    follow;
};

static void end_following(struct request *r)
{
    struct warm_following *q = r->progress;

    follow_stop(&q->follow, r);
    warm_job_return(q->job);
}

static enum status borrow(struct request *r, struct warm_job **out)
{
    struct tenant t = tenant_of(r);

    return warm_job_borrow(app_of(r)->registry, &t, r->params[0], out, &r->problem);
}

static enum status begin_following(struct request *r)
{
    struct warm_following *q = arena_alloc(&r->arena, sizeof *q);
    enum status st = q ? borrow(r, &q->job) : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");

    if (st)
        return st;
    follow_begin(&q->follow, r, warm_job_end(q->job));
    r->progress = q;
    r->on_finish = end_following;
    return STATUS_OK;
}

/* With Prefer: wait the answer is held until the job has ended: a long poll. */
enum status warms_get(struct request *r)
{
    struct warm_following *q;
    enum status            st = r->progress ? STATUS_OK : begin_following(r);

    if (st)
        return st;
    q = r->progress;
    st = follow_wait(&q->follow, r);
    if (st)
        return st;
    follow_stop(&q->follow, r);
    follow_applied(&q->follow, r);
    return answer_job(r, q->job, 200);
}

/* ---- DELETE ---- */

enum status warms_delete(struct request *r)
{
    struct warm_job *j;
    enum status      st = borrow(r, &j);

    if (st)
        return st;
    if (warm_job_cancel(j)) {
        st = answer_job(r, j, 200);
    } else {
        warm_job_forget(j);
        st = reply_empty(&r->reply, 204);
    }
    warm_job_return(j);
    return st;
}
