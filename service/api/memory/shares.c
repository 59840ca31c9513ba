/* Shared memory of buffers for clients of the same host: sent over Unix sockets, copied to and from the device, taken back. */
#include <unistd.h>

#include "api/call.h"
#include "api/endpoints.h"
#include "api/memory/etag.h"
#include "session/memory/share.h"

/* A client over TCP would get an answer without a descriptor, or wait for a copy to memory that it cannot see. */
static enum status check_local(struct request *r)
{
    if (!app_of(r)->config->local_sharing)
        return problem_set(&r->problem, STATUS_FEATURE_DISABLED, "the setting local_sharing is off");
    if (!r->is_local)
        return problem_set(&r->problem, STATUS_FEATURE_DISABLED, "shared memory needs HTTP/1.1 over a Unix socket");
    return STATUS_OK;
}

/* Completes the answer `a` and attaches the descriptor, which it takes. */
static enum status answer_with(struct request *r, struct answer *a, int fd)
{
    enum status st = answer_end(a, r, 200);

    if (st)
        close(fd);
    else
        reply_descriptor_take(&r->reply, fd);
    return st;
}

static enum status open_memory(struct request *r, struct session *s)
{
    struct share_view v;
    struct answer     a;
    enum status       st = share_open(s, r->params[1], &v, &r->problem);

    if (st)
        return st;
    answer_begin(&a);
    json_add_string(&a.w, "buffer", r->params[1]);
    json_add_u64(&a.w, "size", v.bytes);
    json_add_bool(&a.w, "created", v.created);
    if (v.direct) {
        json_add_bool(&a.w, "direct", true);
        json_add_u64(&a.w, "offset", v.offset);
    }
    return answer_with(r, &a, v.fd);
}

static enum status open_cuda(struct request *r, struct session *s)
{
    struct share_handle h;
    struct answer       a;
    enum status         st = share_export(s, r->params[1], &h, &r->problem);

    if (st)
        return st;
    answer_begin(&a);
    json_add_string(&a.w, "buffer", r->params[1]);
    json_add_u64(&a.w, "size", h.bytes);
    json_add_u64(&a.w, "allocation_size", h.taken);
    json_add_u64(&a.w, "granularity", h.unit);
    return answer_with(r, &a, h.fd);
}

struct open_request {
    struct span as;
};
static const struct json_field open_fields[] = {
    JSON_FIELD(FIELD_STRING, struct open_request, as, false, 16),
};

static enum status open_in(struct request *r, struct session *s)
{
    struct open_request q = {.as = SPAN_LITERAL("memory")};
    enum status         st = body_decode(r, open_fields, COUNT(open_fields), &q);
    bool                cuda = !st && span_is(q.as, "cuda_fd");

    if (!st && !cuda && !span_is(q.as, "memory"))
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "/as", "value", "as must be memory or cuda_fd");
    if (st)
        return st;
    return cuda ? open_cuda(r, s) : open_memory(r, s);
}

enum status shares_open(struct request *r)
{
    enum status st = check_local(r);

    return st ? st : on_session(r, open_in);
}

struct move_request {
    struct span direction;
    uint64_t    offset, size;
    bool        has_size;
};
static const struct json_field move_fields[] = {
    JSON_FIELD(FIELD_STRING, struct move_request, direction, true, 16),
    JSON_FIELD(FIELD_U64, struct move_request, offset, false, UINT64_MAX),
    JSON_FIELD_SEEN(FIELD_U64, struct move_request, size, has_size, UINT64_MAX),
};

static enum status direction_of(struct request *r, struct span text, enum share_direction *out)
{
    *out = span_is(text, "to_device") ? SHARE_TO_DEVICE : SHARE_FROM_DEVICE;
    if (*out == SHARE_FROM_DEVICE && !span_is(text, "from_device"))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "/direction", "value", "direction must be to_device or from_device");
    return STATUS_OK;
}

static enum status move_decoded(struct request *r, struct session *s, struct move_request *q)
{
    enum share_direction direction;
    struct buffer_info   info;
    enum status          st = direction_of(r, q->direction, &direction);

    if (!st)
        st = buffer_info_of(s, r->params[1], &info, &r->problem);
    if (st)
        return st;
    if (!q->has_size) /* without a size, share_move() refuses an offset past the end with a better text */
        q->size = q->offset < info.bytes ? info.bytes - q->offset : 0;
    return share_move(s, r->params[1], direction, q->offset, q->size, &r->problem);
}

static enum status move_in(struct request *r, struct session *s)
{
    struct move_request q = {0};
    struct buffer_info  info;
    enum status         st = body_decode(r, move_fields, COUNT(move_fields), &q);

    if (!st)
        st = move_decoded(r, s, &q);
    if (st)
        return st;
    if (!buffer_info_of(s, r->params[1], &info, NULL)) /* deleted meanwhile: no tag */
        etag_add(&r->reply, info.contents);
    return reply_empty(&r->reply, 204);
}

enum status shares_move(struct request *r)
{
    enum status st = check_local(r);

    return st ? st : on_session(r, move_in);
}

static enum status close_in(struct request *r, struct session *s)
{
    enum status st = share_close(s, r->params[1], &r->problem);

    return st ? st : reply_empty(&r->reply, 204);
}

enum status shares_close(struct request *r)
{
    enum status st = check_local(r);

    return st ? st : on_session(r, close_in);
}
