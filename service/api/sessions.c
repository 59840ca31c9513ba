/* Sessions: create, get, change, keep, reset, delete. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/bounds.h"
#include "api/session_members.h"
#include "api/snapshot/snapshot.h"
#include "base/deadline.h"
#include "base/node.h"
#include "http/filter/idempotency.h"

enum { FRACTION_CHARS_MAX = 31 }; /* of a percentage, without its sign */

struct session_request {
    struct span        device, fault_domain;
    uint64_t           memory_limit, pool_bytes_max, idle_timeout_s, max_lifetime_s, lease_s;
    bool               memcheck, fault_domain_required;
    const struct json *labels, *memory_fraction;
    bool               has_memory_limit, has_pool_bytes_max, has_idle_timeout, has_lease, has_fault_domain_required;
};

#define MEMORY_FIELDS                                                                                                                      \
    JSON_FIELD_SEEN(FIELD_U64, struct session_request, memory_limit, has_memory_limit, MEMORY_BYTES_ASKED_MAX),                            \
        JSON_FIELD(FIELD_ANY, struct session_request, memory_fraction, false, 0),                                                          \
        JSON_FIELD_SEEN(FIELD_U64, struct session_request, pool_bytes_max, has_pool_bytes_max, MEMORY_BYTES_ASKED_MAX)

static const struct json_field create_fields[] = {
    JSON_FIELD(FIELD_STRING, struct session_request, device, false, NODE_NAME_CHARS_MAX + DEVICE_ID_BYTES),
    MEMORY_FIELDS,
    JSON_FIELD(FIELD_U64, struct session_request, idle_timeout_s, false, IDLE_TIMEOUT_S_MAX),
    JSON_FIELD(FIELD_U64, struct session_request, max_lifetime_s, false, LIFETIME_S_MAX),
    JSON_FIELD(FIELD_U64, struct session_request, lease_s, false, LEASE_S_MAX),
    JSON_FIELD(FIELD_BOOL, struct session_request, memcheck, false, 0),
    JSON_FIELD(FIELD_STRING, struct session_request, fault_domain, false, CLIENT_ID_CHARS_MAX),
    JSON_FIELD_SEEN(FIELD_BOOL, struct session_request, fault_domain_required, has_fault_domain_required, 0),
    JSON_FIELD(FIELD_ANY, struct session_request, labels, false, 0),
};

static const struct json_field patch_fields[] = {
    MEMORY_FIELDS,
    JSON_FIELD_SEEN(FIELD_U64, struct session_request, idle_timeout_s, has_idle_timeout, IDLE_TIMEOUT_S_MAX),
    JSON_FIELD_SEEN(FIELD_U64, struct session_request, lease_s, has_lease, LEASE_S_MAX),
    JSON_FIELD(FIELD_ANY, struct session_request, labels, false, 0),
};

static enum status decode_label(const struct json *v, struct label *out, struct problem *why)
{
    char pointer[PROBLEM_POINTER_BYTES];

    snprintf(pointer, sizeof pointer, "/labels/%.*s", (int)(json_name(v).bytes > 80 ? 80 : json_name(v).bytes), json_name(v).data);
    if (json_name(v).bytes == 0 || !span_copy(json_name(v), out->key, sizeof out->key))
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "range", "a label's name must have 1 to %d bytes", LABEL_KEY_BYTES - 1);
    if (json_type_of(v) != JSON_STRING || !span_copy(json_text(v), out->value, sizeof out->value))
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "value", "a label's value must be a string of at most %d bytes",
                             LABEL_VALUE_BYTES - 1);
    return STATUS_OK;
}

static enum status decode_labels(struct request *r, const struct json *v, const struct label **out, unsigned *count)
{
    struct label *labels;
    unsigned      n = 0;
    enum status   st = STATUS_OK;

    *out = NULL;
    *count = 0;
    if (!v)
        return STATUS_OK;
    if (json_type_of(v) != JSON_OBJECT || json_count(v) > LABELS_MAX)
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "/labels", "value", "labels must be an object of at most %d strings",
                             LABELS_MAX);
    labels = arena_array(&r->arena, json_count(v), sizeof *labels);
    if (!labels)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the labels");
    for (const struct json *m = json_first(v); m && !st; m = json_next(m))
        st = decode_label(m, &labels[n++], &r->problem);
    *out = labels;
    *count = n;
    return st;
}

static enum status check_domain(struct request *r, const struct session_request *q)
{
    if (q->has_fault_domain_required && !q->fault_domain.data)
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "/fault_domain_required", "value", "give it with a fault_domain");
    if (q->fault_domain.data && !q->fault_domain.bytes)
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "/fault_domain", "format",
                             "a fault domain has a name; omit it for a session that falls alone");
    return STATUS_OK;
}

static enum status check_positive(struct request *r, const char *pointer, uint64_t value)
{
    return value ? STATUS_OK : problem_field(&r->problem, STATUS_INVALID_FIELD, pointer, "range", "%s must be at least 1", pointer + 1);
}

/* "80%" is 0.8. */
static bool parse_percentage(struct span text, double *fraction)
{
    char   digits[FRACTION_CHARS_MAX + 1], *end;
    size_t n = text.bytes ? text.bytes - 1 : 0;

    if (!n || text.data[n] != '%' || !span_copy(span_first(text, n), digits, sizeof digits) || strspn(digits, "0123456789.") != n)
        return false;
    *fraction = strtod(digits, &end) / 100;
    return *end == '\0';
}

/* 0: none was asked for. */
static enum status take_fraction(struct request *r, const struct session_request *q, double *fraction)
{
    const struct json *v = q->memory_fraction;
    bool               ok = json_type_of(v) == JSON_NUMBER;

    *fraction = 0;
    if (!v || json_type_of(v) == JSON_NULL)
        return STATUS_OK;
    if (q->has_memory_limit)
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "/memory_fraction", "value",
                             "give either memory_limit, in bytes, or memory_fraction, of the device's memory");
    if (ok)
        *fraction = json_double(v);
    else if (json_type_of(v) == JSON_STRING)
        ok = parse_percentage(json_text(v), fraction);
    if (!ok || !(*fraction > 0 && *fraction <= 1))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "/memory_fraction", "range",
                             "memory_fraction must be above 0 and at most 1, or a percentage such as \"80%%\"");
    return STATUS_OK;
}

static void add_memory(struct json_writer *w, const struct session_info *i)
{
    json_add_u64_or_null(w, "memory_limit", i->memory_limit);
    if (i->memory_fraction > 0)
        json_add_double(w, "memory_fraction", i->memory_fraction);
    else
        json_add_null(w, "memory_fraction");
    json_add_u64_or_null(w, "pool_bytes_max", i->pool_bytes_max);
}

static void add_domain(struct json_writer *w, const struct session_info *i)
{
    if (!i->fault_domain[0]) {
        json_add_null(w, "fault_domain");
        return;
    }
    json_open_object(w, "fault_domain");
    json_add_text(w, "name", i->fault_domain);
    json_add_bool(w, "shared_server", i->shared_server);
    json_add_u64(w, "sessions", i->domain_sessions);
    json_close_object(w);
}

static void add_restored(struct json_writer *w, const struct session_restored *i)
{
    if (i->from == SOURCE_NONE) {
        json_add_null(w, "restored");
        return;
    }
    json_open_object(w, "restored");
    json_add_text(w, "from", session_source_name(i->from));
    json_add_time(w, "taken_at", i->taken_wall_ns);
    json_add_time(w, "at", i->wall_ns);
    json_add_u64(w, "generation", i->generation);
    json_close_object(w);
}

static void add_labels(struct json_writer *w, const struct session_info *i)
{
    json_open_object(w, "labels");
    for (unsigned n = 0; n < i->labels_count; n++)
        json_add_text(w, i->labels[n].key, i->labels[n].value);
    json_close_object(w);
}

void session_members(struct json_writer *w, const struct request *r, const struct session_info *i)
{
    json_add_text(w, "id", i->id);
    json_add_text(w, "device", i->device);
    json_add_text(w, "state", session_state_name(i->state));
    json_add_u64(w, "generation", i->generation);
    json_add_time(w, "created_at", i->created_wall_ns);
    json_add_time(w, "expires_at", i->expires_wall_ns);
    json_add_u64(w, "idle_timeout_s", i->idle_timeout_s);
    json_add_u64(w, "max_lifetime_s", i->max_lifetime_s);
    json_add_u64_or_null(w, "lease_s", i->lease_s ? i->lease_s : UINT64_MAX);
    add_memory(w, i);
    json_add_bool(w, "memcheck", i->memcheck);
    add_domain(w, i);
    add_labels(w, i);
    add_restored(w, &i->restored);
    json_add_time(w, "saved_at", i->kept_wall_ns);
    add_problem(w, "fault", r, &i->fault);
    json_open_object(w, "usage");
    json_add_u64(w, "device_time_us", i->device_time_us);
    json_add_u64(w, "memory_bytes", i->memory_bytes);
    json_add_u64(w, "buffers", i->buffers);
    json_add_u64(w, "modules", i->modules);
    json_add_u64(w, "launches", i->launches);
    json_add_u64(w, "launches_finished", i->launches_finished);
    json_close_object(w);
    json_add_text(w, "instance", app_of(r)->instance);
    add_node(w, r);
}

enum status session_answer(struct request *r, struct session *s, unsigned http_status)
{
    struct session_info *info = arena_alloc(&r->arena, sizeof *info);
    struct answer        a;

    if (!info)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the session");
    session_info_of(s, info);
    if (http_status == 201)
        reply_header(&r->reply, "Location", "/v1/sessions/%s", info->id);
    answer_begin(&a);
    session_members(&a.w, r, info);
    return answer_end(&a, r, http_status);
}

/* A device may be named with its node before it, as in lists of a fleet. */
static enum status take_node(struct request *r, struct span *device)
{
    const char *own = app_of(r)->config->node;
    struct span rest = *device, node = span_cut(&rest, '/');

    if (!own[0] || !rest.data)
        return STATUS_OK;
    if (!node_name_valid(node) || !rest.bytes)
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "/device", "value",
                             "with a node before it, a device is written NODE/DEVICE, such as %s/cpu:0", own);
    if (!span_is(node, own))
        return problem_node(&r->problem, node);
    *device = rest;
    return STATUS_OK;
}

/* Those of an earlier session of that name, for nothing has been done in this one. Requests in it may have ended by now: theirs stay. */
static void forget_keys(const struct request *r, uint64_t began_ns)
{
    char id[ID_BYTES];

    if (r->params[0].bytes && span_copy(r->params[0], id, sizeof id))
        idempotency_forget(app_of(r)->idempotency, r->caller, id, began_ns);
}

/* `restored` NULL: a fresh one. */
static enum status create(struct request *r, const struct session_request *q, const struct session_restored *restored, struct session **out,
                          bool *created)
{
    struct session_spec spec = {.id = r->params[0],
                                .device = q->device,
                                .memory_limit = q->memory_limit,
                                .keeps_bounded = q->has_pool_bytes_max,
                                .pool_bytes_max = q->pool_bytes_max,
                                .idle_timeout_s = q->idle_timeout_s,
                                .max_lifetime_s = q->max_lifetime_s,
                                .lease_s = q->lease_s,
                                .memcheck = q->memcheck,
                                .fault_domain = q->fault_domain,
                                .server_required = q->fault_domain_required,
                                .restoring = restored != NULL,
                                .keeps_id = restored && restored->from != SOURCE_SNAPSHOT};
    struct tenant       t = tenant_of(r);
    uint64_t            began_ns = now_ns();
    enum status         st = decode_labels(r, q->labels, &spec.labels, &spec.labels_count);

    if (restored)
        spec.restored = *restored;
    if (!st)
        st = take_node(r, &spec.device);
    if (!st && q->device.data && q->device.bytes == 0)
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/device", "value",
                           "device must be a device id or a backend; omit it for the default");
    if (!st)
        st = check_domain(r, q);
    if (!st)
        st = check_positive(r, "/idle_timeout_s", q->idle_timeout_s);
    if (!st)
        st = check_positive(r, "/max_lifetime_s", q->max_lifetime_s);
    if (!st)
        st = check_positive(r, "/memory_limit", q->memory_limit);
    if (!st)
        st = take_fraction(r, q, &spec.memory_fraction);
    if (!st)
        st = session_create(app_of(r)->registry, &t, &spec, out, created, &r->problem);
    if (!st && *created)
        forget_keys(r, began_ns);
    return st;
}

static const struct session_request defaults = {.memory_limit = MEMORY_LIMIT_NONE,
                                                .idle_timeout_s = IDLE_TIMEOUT_S_DEFAULT,
                                                .max_lifetime_s = LIFETIME_S_DEFAULT,
                                                .fault_domain_required = true};

enum status session_restore_begin(struct request *r, const struct json *members, struct span device,
                                  const struct session_restored *restored, struct session **out)
{
    struct session_request q = defaults;
    bool                   created = false;
    enum status            st = json_decode(members, create_fields, COUNT(create_fields), "/session", false, &q, &r->problem);

    q.device = device;
    if (!st)
        st = create(r, &q, restored, out, &created);
    assert(st || created);
    return st;
}

enum status sessions_create_begin(struct request *r)
{
    struct span device;

    if (load_is(r))
        return load_start(r, SOURCE_SNAPSHOT);
    if (request_query(r, "device", &device))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "device", "value",
                             "the device of a session is a member of the body; as a parameter it is that of a snapshot");
    return STATUS_OK;
}

static enum status restore(struct request *r)
{
    struct session *s;
    enum status     st = load_finish(r, &s);

    return st ? st : session_answer(r, s, 201);
}

/* The path has no id when the service is to choose one. */
enum status sessions_create(struct request *r)
{
    struct session_request q = defaults;
    struct session        *s;
    bool                   created = false;
    enum status            st;

    if (load_is(r))
        return restore(r);
    st = body_decode(r, create_fields, COUNT(create_fields), &q);
    if (!st)
        st = create(r, &q, NULL, &s, &created);
    if (st)
        return st;
    st = session_answer(r, s, created ? 201 : 200);
    session_return(s);
    return st;
}

static void add_sessions(struct list *l)
{
    struct tenant        t = tenant_of(l->request);
    struct session_info *items = l->items;
    unsigned             n = session_list(app_of(l->request)->registry, &t, &l->page, items);

    for (unsigned i = 0; i < n; i++) {
        json_open_object(l->w, NULL);
        session_members(l->w, l->request, &items[i]);
        json_close_object(l->w);
    }
}

enum status sessions_list(struct request *r)
{
    return answer_list(r, SESSIONS_MAX, sizeof(struct session_info), add_sessions);
}

enum status sessions_get(struct request *r, struct session *s)
{
    return session_answer(r, s, 200);
}

enum status sessions_patch(struct request *r, struct session *s)
{
    struct session_request q = {0};
    struct session_patch   p = {0};
    enum status            st = body_decode(r, patch_fields, COUNT(patch_fields), &q);

    if (!st)
        st = decode_labels(r, q.labels, &p.labels, &p.labels_count);
    p.has_labels = q.labels != NULL;
    p.has_idle_timeout = q.has_idle_timeout;
    p.idle_timeout_s = q.idle_timeout_s;
    p.has_lease = q.has_lease;
    p.lease_s = q.lease_s;
    p.memory_limit = q.memory_limit;
    p.has_pool_bytes_max = q.has_pool_bytes_max;
    p.pool_bytes_max = q.pool_bytes_max;
    if (!st && p.has_idle_timeout)
        st = check_positive(r, "/idle_timeout_s", p.idle_timeout_s);
    if (!st && q.has_memory_limit)
        st = check_positive(r, "/memory_limit", p.memory_limit);
    if (!st)
        st = take_fraction(r, &q, &p.memory_fraction);
    p.has_memory_limit = q.has_memory_limit || p.memory_fraction > 0;
    if (!st)
        st = session_patch(s, &p, &r->problem);
    return st ? st : session_answer(r, s, 200);
}

enum status sessions_delete(struct request *r, struct session *s)
{
    enum status st = session_delete(s, &r->problem);

    return st ? st : reply_empty(&r->reply, 204);
}

enum status sessions_heartbeat(struct request *r)
{
    struct session *s;
    enum status     st = nothing_check(r);

    if (!st)
        st = session_of(r, &s);
    if (st)
        return st;
    session_renew(s);
    session_return_unnoticed(s);
    return reply_empty(&r->reply, 204);
}

static enum status reset_it(struct request *r, struct session *s)
{
    enum status st = session_reset(s, &r->problem);

    return st ? st : session_answer(r, s, 200);
}

enum status sessions_reset(struct request *r)
{
    enum status st = nothing_check(r);

    return st ? st : on_session(r, reset_it);
}

struct sync_request {
    struct span stream;
};
static const struct json_field sync_fields[] = {
    JSON_FIELD(FIELD_STRING, struct sync_request, stream, false, STREAM_NAME_BYTES - 1),
};

enum status sessions_sync(struct request *r, struct session *s)
{
    struct sync_request q = {0};
    enum status         st = body_decode(r, sync_fields, COUNT(sync_fields), &q);

    if (!st)
        st = session_sync(s, q.stream, &r->problem);
    return st ? st : reply_json(&r->reply, 200, SPAN_LITERAL("{}"));
}
