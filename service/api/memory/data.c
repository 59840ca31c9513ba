/* The bytes of a buffer, of a variable of a module, or of a texture: read and written whole or in ranges, under preconditions. */
#include <stdlib.h>

#include "api/call.h"
#include "api/endpoints.h"
#include "api/memory/data_digest.h"
#include "api/memory/etag.h"
#include "api/memory/upload.h"
#include "http/message/precondition.h"
#include "http/message/range.h"

/* ---- reading ---- */

struct download {
    struct body_source source;
    struct transfer   *transfer; /* NULL for HEAD */
    struct session    *session;  /* borrowed, so that a long download counts as use */
};

static enum status lend_piece(struct body_source *s, struct span *out, struct waker *w)
{
    return transfer_read_lend(((struct download *)s)->transfer, out, w);
}

static void release_piece(struct body_source *s, size_t bytes)
{
    transfer_read_release(((struct download *)s)->transfer, bytes);
}

static void close_download(struct body_source *s)
{
    struct download *d = (struct download *)s;

    transfer_destroy(d->transfer);
    session_return(d->session);
    free(d);
}

/* Sends the status line only when the first bytes have arrived, so that a failing device does not answer 200. */
static enum status start_download(struct request *r, struct byte_range range, unsigned http_status)
{
    struct download *d = calloc(1, sizeof *d);
    enum status st = d ? session_of(r, &d->session) : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the download");

    if (st) {
        free(d);
        return st;
    }
    d->source = (struct body_source){.close = close_download, .lend = lend_piece, .release = release_piece};
    if (r->method == METHOD_HEAD)
        st = session_usable(d->session, &r->problem);
    else
        st = transfer_read_begin(d->session, r->params[1], range.offset, range.bytes, &d->transfer, &r->problem);
    if (!st && d->transfer)
        st = transfer_read_wait(d->transfer, &r->problem);
    if (!st)
        return reply_source_take(&r->reply, http_status, &d->source, range.bytes);
    close_download(&d->source);
    return st;
}

static enum status send_range(struct request *r, struct session *s, struct byte_range range, unsigned http_status,
                              enum digest_algorithm digest)
{
    uint64_t    start = now_ns();
    enum status st;

    timing_begin(r);
    if (digest == DIGEST_NONE || range.bytes > VERIFIED_BODY_BYTES_MAX)
        st = start_download(r, range, http_status);
    else
        st = digest_answer(r, s, range, http_status, digest);
    r->timing.d2h_ms = ms_since(start);
    return st;
}

/* Range counts only for GET, and If-Range only with Range (RFC 9110 §14.2 and §13.1.5). */
static struct span range_wanted(const struct request *r, struct span etag)
{
    struct span range = r->method == METHOD_GET ? request_header(r, "Range") : (struct span){0};
    struct span if_range = request_header(r, "If-Range");

    return if_range.data && !etag_listed(if_range, etag, false) ? (struct span){0} : range;
}

static enum status answer_data(struct request *r, struct session *s, struct span etag, uint64_t size, const struct digest_wants *wants)
{
    struct byte_range range;
    enum range_kind   kind = range_parse(range_wanted(r, etag), size, &range);
    enum status       st = kind == RANGE_UNSATISFIED ? range_unsatisfied(&r->problem, size) : STATUS_OK;

    if (!st && wants->repr)
        st = digest_add_repr(r, s, etag, size, wants->repr);
    if (st)
        return st;
    reply_header_text(&r->reply, "Content-Type", "application/octet-stream");
    reply_header_text(&r->reply, "Accept-Ranges", "bytes");
    reply_header(&r->reply, "ETag", "%.*s", SPAN_ARG(etag));
    if (kind == RANGE_PART)
        reply_header(&r->reply, "Content-Range", "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, range.offset, range.offset + range.bytes - 1,
                     size);
    return send_range(r, s, range, kind == RANGE_PART ? 206 : 200, wants->content);
}

static enum status read_in(struct request *r, struct session *s)
{
    struct digest_wants wants;
    struct buffer_info  info;
    char                tag[ETAG_BYTES];
    struct span         etag;
    enum status         st = digest_wants_of(r, &wants);

    if (!st)
        st = buffer_info_of(s, r->params[1], &info, &r->problem);
    if (st)
        return st;
    etag = etag_of(info.contents, tag);
    switch (precondition_check(request_header(r, "If-Match"), request_header(r, "If-None-Match"), etag, true)) {
    case PRECONDITION_HOLDS:
        return answer_data(r, s, etag, info.bytes, &wants);
    case PRECONDITION_FAILS:
        return problem_set(&r->problem, STATUS_PRECONDITION_FAILED, "the buffer has another entity tag");
    case PRECONDITION_NOT_MODIFIED:
        break;
    }
    reply_header_text(&r->reply, "ETag", tag);
    return reply_empty(&r->reply, 304);
}

enum status data_get(struct request *r)
{
    if (!request_accepts(r, "application/octet-stream"))
        return problem_set(&r->problem, STATUS_NOT_ACCEPTABLE, "Accept must allow application/octet-stream, the type of buffer contents");
    return on_session(r, read_in);
}

/* ---- writing ---- */

static enum status whole_range(struct request *r, uint64_t size, struct byte_range *out)
{
    if (!r->has_body_bytes)
        return problem_set(&r->problem, STATUS_LENGTH_REQUIRED, "Content-Length or Content-Range is required");
    if (r->body_bytes > size)
        return problem_limit(&r->problem, STATUS_BODY_TOO_LARGE, "buffer_bytes", size, 0, r->body_bytes);
    if (r->body_bytes < size)
        return problem_set(&r->problem, STATUS_LENGTH_MISMATCH,
                           "the body has %" PRIu64 " bytes, the buffer %" PRIu64 "; send Content-Range to write a part", r->body_bytes,
                           size);
    *out = (struct byte_range){0, size};
    return STATUS_OK;
}

static enum status part_range(struct request *r, struct span header, uint64_t size, struct byte_range *out)
{
    enum status st = content_range_parse(header, size, out, &r->problem);

    if (!st && r->has_body_bytes && r->body_bytes != out->bytes)
        st = problem_set(&r->problem, STATUS_LENGTH_MISMATCH, "the body has %" PRIu64 " bytes, its Content-Range %" PRIu64, r->body_bytes,
                         out->bytes);
    return st;
}

static enum status check_write(struct request *r, struct session *s, struct byte_range *range, struct condition *condition)
{
    struct span        header = request_header(r, "Content-Range");
    struct buffer_info info;
    enum status        st = buffer_info_of(s, r->params[1], &info, &r->problem);

    if (!st)
        st = session_usable(s, &r->problem);
    if (!st)
        st = condition_of(r, &info, condition);
    if (st)
        return st;
    return header.data ? part_range(r, header, info.bytes, range) : whole_range(r, info.bytes, range);
}

static enum status begin_in(struct request *r, struct session *s)
{
    struct byte_range range;
    struct condition  condition;
    enum status       st = check_write(r, s, &range, &condition);

    return st ? st : upload_start(r, r->params[1], range.offset, range.bytes, &condition);
}

enum status data_put_begin(struct request *r)
{
    return on_session(r, begin_in);
}

enum status data_put(struct request *r)
{
    enum status st = upload_finish(r);

    if (st)
        return st;
    etag_add(&r->reply, upload_contents(r));
    return reply_empty(&r->reply, 204);
}

/* ---- variables of modules; textures, whose rows share these handlers ---- */

/* From here on the request's path is that of a buffer. */
static enum status name_buffer(struct request *r, struct session *s)
{
    char       *id = arena_alloc(&r->arena, ID_BYTES);
    enum status st;

    if (!id)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the request");
    st = r->params[2].bytes ? global_id_of(s, r->params[1], r->params[2], id, &r->problem) : texels_id_of(s, r->params[1], id, &r->problem);
    if (st)
        return st;
    r->params[1] = span_of(id);
    r->params[2] = (struct span){0};
    return STATUS_OK;
}

enum status globals_get(struct request *r)
{
    enum status st = on_session(r, name_buffer);

    return st ? st : data_get(r);
}

enum status globals_put_begin(struct request *r)
{
    enum status st = on_session(r, name_buffer);

    return st ? st : data_put_begin(r);
}

enum status globals_put(struct request *r)
{
    return data_put(r);
}
