/* Buffers: make, list, look at, fill, copy, free. */
#include "api/bounds.h"
#include "api/call.h"
#include "api/decode/args.h"
#include "api/endpoints.h"
#include "api/memory/etag.h"
#include "api/memory/upload.h"

struct buffer_request {
    uint64_t size;
    bool     shareable;
};
static const struct json_field create_fields[] = {
    JSON_FIELD(FIELD_U64, struct buffer_request, size, true, MEMORY_BYTES_ASKED_MAX),
    JSON_FIELD(FIELD_BOOL, struct buffer_request, shareable, false, 0),
};

static void add_members(struct json_writer *w, const struct buffer_info *i)
{
    json_add_text(w, "id", i->id);
    json_add_u64(w, "size", i->bytes);
    if (i->address)
        json_add_u64(w, "address", i->address);
    json_add_time(w, "created_at", i->created_wall_ns);
    if (i->shareable)
        json_add_bool(w, "shareable", true);
}

static enum status answer_buffer(struct request *r, const struct buffer_info *i, unsigned http_status)
{
    struct answer a;

    if (http_status == 201)
        reply_header(&r->reply, "Location", "/v1/sessions/%.*s/buffers/%s", SPAN_ARG(sid_of(r)), i->id);
    answer_begin(&a);
    add_members(&a.w, i);
    return answer_end(&a, r, http_status);
}

static bool is_stream(const struct request *r)
{
    return span_equal_nocase(request_media_type(r), SPAN_LITERAL("application/octet-stream"));
}

/* ---- create and fill from octets ---- */

/* Free memory as the device was last looked at; all of it may be one block. */
static enum status larger_than_device(struct request *r, const struct device_info *d)
{
    uint64_t used = d->total_bytes > d->free_bytes ? d->total_bytes - d->free_bytes : 0;

    problem_limit(&r->problem, STATUS_DEVICE_MEMORY_EXHAUSTED, "device_memory_bytes", d->total_bytes, used, r->body_bytes);
    snprintf(r->problem.detail, sizeof r->problem.detail,
             "%" PRIu64 " bytes requested, %" PRIu64 " of %" PRIu64
             " bytes on the device are free, the largest free block has at most %" PRIu64,
             r->body_bytes, d->free_bytes, d->total_bytes, d->free_bytes);
    return STATUS_DEVICE_MEMORY_EXHAUSTED;
}

static enum status check_device(struct request *r, const struct session_info *info)
{
    struct pool        *pool = app_of(r)->pool;
    int                 at = pool_device_find(pool, span_of(info->device));
    struct pool_device *d = arena_alloc(&r->arena, sizeof *d);

    if (!d || at < 0 || !pool_device_at(pool, (unsigned)at, d))
        return STATUS_OK;
    if (d->info.total_bytes == 0 || r->body_bytes <= d->info.total_bytes) /* 0: unknown */
        return STATUS_OK;
    return larger_than_device(r, &d->info);
}

/* What will surely not fit is refused before it is sent; whoever passes is counted exactly when the buffer is made. */
static enum status check_room(struct request *r, struct session *s)
{
    struct tenant        t = tenant_of(r);
    uint64_t             used = registry_use_of(app_of(r)->registry, &t).memory_bytes;
    struct session_info *info = arena_alloc(&r->arena, sizeof *info);

    if (!info)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    session_info_of(s, info);
    if (t.memory_max_bytes < used || r->body_bytes > t.memory_max_bytes - used)
        return problem_limit(&r->problem, STATUS_QUOTA_EXCEEDED, "caller_memory_bytes", t.memory_max_bytes, used, r->body_bytes);
    if (info->memory_limit < info->memory_bytes || r->body_bytes > info->memory_limit - info->memory_bytes)
        return problem_limit(&r->problem, STATUS_QUOTA_EXCEEDED, "session_memory_bytes", info->memory_limit, info->memory_bytes,
                             r->body_bytes);
    return check_device(r, info);
}

static enum status check_new(struct request *r, struct session *s, struct span id)
{
    struct buffer_info there;
    enum status        st = session_usable(s, &r->problem);

    if (st)
        return st;
    if (id.bytes == 0 || buffer_info_of(s, id, &there, NULL))
        return check_room(r, s);
    if (there.shareable)
        return problem_set(&r->problem, STATUS_SPEC_CONFLICT, "the buffer exists and is shareable");
    return there.bytes == r->body_bytes
               ? STATUS_OK
               : problem_set(&r->problem, STATUS_SPEC_CONFLICT, "the buffer exists with %" PRIu64 " bytes", there.bytes);
}

static enum status begin_in(struct request *r, struct session *s)
{
    struct span      id = r->params[1]; /* none: the service is to choose one */
    struct condition condition = {0};
    enum status      st = id.bytes ? condition_of_id(r, s, id, &condition) : STATUS_OK;

    if (!st)
        st = check_new(r, s, id);
    return st ? st : upload_start_new(r, id, r->body_bytes, &condition);
}

enum status buffers_create_begin(struct request *r)
{
    if (!is_stream(r))
        return STATUS_OK;
    if (!r->has_body_bytes)
        return problem_set(&r->problem, STATUS_LENGTH_REQUIRED, "the size of a new buffer is required: send Content-Length");
    if (r->body_bytes == 0)
        return problem_set(&r->problem, STATUS_LENGTH_MISMATCH, "a buffer must have at least 1 byte");
    return on_session(r, begin_in);
}

static enum status finish_upload(struct request *r)
{
    const struct buffer_info *buffer;
    bool                      created;
    enum status               st = upload_finish(r);

    if (st)
        return st;
    buffer = upload_buffer(r, &created);
    etag_add(&r->reply, upload_contents(r));
    return answer_buffer(r, buffer, created ? 201 : 200);
}

/* ---- create by size ---- */

/* Of a buffer that has to be there nothing is written. */
static enum status as_it_is(struct request *r, const struct buffer_request *q, const struct buffer_info *there)
{
    if (q->size == there->bytes && q->shareable == there->shareable)
        return answer_buffer(r, there, 200);
    return problem_set(&r->problem, STATUS_SPEC_CONFLICT, "the buffer exists with %" PRIu64 " bytes and is %sshareable", there->bytes,
                       there->shareable ? "" : "not ");
}

static enum status make_sized(struct request *r, struct session *s, struct span id, const struct buffer_request *q)
{
    struct condition   condition = {0};
    struct buffer_info info;
    bool               created = false;
    enum status        st = id.bytes ? condition_of_id(r, s, id, &condition) : STATUS_OK;

    if (!st && condition.only)
        return as_it_is(r, q, &condition.there);
    if (!st)
        st = buffer_create(s, id, q->size, q->shareable, &info, &created, &r->problem);
    if (!st && condition.absent && !created)
        st = condition_not_absent(&r->problem);
    return st ? st : answer_buffer(r, &info, created ? 201 : 200);
}

static enum status create_sized(struct request *r, struct session *s)
{
    struct buffer_request q = {0};
    enum status           st = body_decode(r, create_fields, COUNT(create_fields), &q);

    if (!st && q.size == 0)
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/size", "range", "size must be at least 1");
    return st ? st : make_sized(r, s, r->params[1], &q);
}

enum status buffers_create(struct request *r)
{
    return r->progress ? finish_upload(r) : on_session(r, create_sized);
}

/* ---- look at, free ---- */

static void add_buffers(struct list *l)
{
    struct buffer_info *items = l->items;
    unsigned            n = buffer_list(l->session, &l->page, items);

    for (unsigned i = 0; i < n; i++) {
        json_open_object(l->w, NULL);
        add_members(l->w, &items[i]);
        json_close_object(l->w);
    }
}

enum status buffers_list(struct request *r)
{
    return answer_list(r, 0, sizeof(struct buffer_info), add_buffers);
}

enum status buffers_get(struct request *r, struct session *s)
{
    struct buffer_info info;
    enum status        st = buffer_info_of(s, r->params[1], &info, &r->problem);

    return st ? st : answer_buffer(r, &info, 200);
}

enum status buffers_delete(struct request *r, struct session *s)
{
    struct condition condition;
    enum status      st = condition_of_id(r, s, r->params[1], &condition);

    if (!st && condition.absent)
        st = problem_set(&r->problem, STATUS_BUFFER_NOT_FOUND, "the session has no buffer with this id");
    if (!st)
        st = buffer_delete(s, r->params[1], condition_contents(&condition), &r->problem);
    return st ? st : reply_empty(&r->reply, 204);
}

/* ---- fill and copy ---- */

struct fill_request {
    const struct json *pattern;
    uint64_t           offset, size;
    struct span        stream;
    bool               has_size;
};
static const struct json_field fill_fields[] = {
    JSON_FIELD(FIELD_ANY, struct fill_request, pattern, true, 0),
    JSON_FIELD(FIELD_U64, struct fill_request, offset, false, UINT64_MAX),
    JSON_FIELD_SEEN(FIELD_U64, struct fill_request, size, has_size, UINT64_MAX),
    JSON_FIELD(FIELD_STRING, struct fill_request, stream, false, STREAM_NAME_BYTES - 1),
};

/* From `offset` to the end; an offset past it leaves nothing, which the session then refuses with the right words. */
static uint64_t left_from(uint64_t bytes, uint64_t offset)
{
    return offset < bytes ? bytes - offset : 0;
}

enum status buffers_fill(struct request *r, struct session *s)
{
    struct fill_request q = {0};
    struct launch_arg   pattern;
    struct buffer_info  info;
    enum status         st = body_decode(r, fill_fields, COUNT(fill_fields), &q);

    if (!st)
        st = scalar_decode(q.pattern, "/pattern", &pattern, &r->problem);
    if (!st)
        st = buffer_info_of(s, r->params[1], &info, &r->problem);
    if (st)
        return st;
    if (!q.has_size)
        q.size = left_from(info.bytes, q.offset);
    st = buffer_fill(s, r->params[1], q.offset, q.size, pattern.value, pattern.scalar_bytes, q.stream, &r->problem);
    return st ? st : reply_empty(&r->reply, 204);
}

struct copy_request {
    struct span from;
    uint64_t    from_offset, offset, size;
    struct span stream;
    bool        has_size;
};
static const struct json_field copy_fields[] = {
    JSON_FIELD(FIELD_STRING, struct copy_request, from, true, ID_BYTES - 1),
    JSON_FIELD(FIELD_U64, struct copy_request, from_offset, false, UINT64_MAX),
    JSON_FIELD(FIELD_U64, struct copy_request, offset, false, UINT64_MAX),
    JSON_FIELD_SEEN(FIELD_U64, struct copy_request, size, has_size, UINT64_MAX),
    JSON_FIELD(FIELD_STRING, struct copy_request, stream, false, STREAM_NAME_BYTES - 1),
};

enum status buffers_copy(struct request *r, struct session *s)
{
    struct copy_request q = {0};
    struct buffer_info  to, from;
    enum status         st = body_decode(r, copy_fields, COUNT(copy_fields), &q);

    if (!st)
        st = buffer_info_of(s, r->params[1], &to, &r->problem);
    if (!st)
        st = buffer_info_of(s, q.from, &from, &r->problem);
    if (st)
        return st;
    if (!q.has_size) {
        uint64_t room = left_from(to.bytes, q.offset), there = left_from(from.bytes, q.from_offset);
        q.size = room < there ? room : there;
    }
    st = buffer_copy(s, r->params[1], q.offset, q.from, q.from_offset, q.size, q.stream, &r->problem);
    return st ? st : reply_empty(&r->reply, 204);
}
