/* Writes problem documents and the header fields that their status requires. */
#include "http/message/problem_document.h"

#include <inttypes.h>

#include "base/random.h"
#include "http/json/json.h"

enum { RETRY_AFTER_DEFAULT_MS = 1000 };

/* A handler that fails with status OK is a bug of ours. */
static enum status failure_of(const struct problem *why)
{
    bool none = why->status == STATUS_OK || why->status == STATUS_PENDING || (unsigned)why->status >= STATUS_COUNT;

    return none ? STATUS_INTERNAL : why->status;
}

static void write_errors(struct json_writer *w, const struct problem *why)
{
    json_open_array(w, "errors");
    if (why->has_field) {
        json_open_object(w, NULL);
        json_add_text(w, "pointer", why->field.pointer);
        json_add_text(w, "code", why->field.code);
        json_add_text(w, "detail", why->field.detail);
        json_close_object(w);
    }
    json_close_array(w);
}

static void write_cuda(struct json_writer *w, const struct problem *why)
{
    if (why->cuda_result == 0) {
        json_add_null(w, "cuda");
        return;
    }
    json_open_object(w, "cuda");
    json_add_i64(w, "result", why->cuda_result);
    json_add_text(w, "name", why->cuda_name);
    json_close_object(w);
}

static void write_diagnostic(struct json_writer *w, const struct diagnostic *d)
{
    json_open_object(w, NULL);
    json_add_string(w, "file", d->file);
    json_add_u64(w, "line", d->line);
    json_add_u64(w, "column", d->column);
    json_add_string(w, "severity", d->severity);
    json_add_string(w, "message", d->message);
    json_close_object(w);
}

static void write_compile(struct json_writer *w, const struct problem *why)
{
    if (!why->compile_log.data && why->diagnostics_count == 0) {
        json_add_null(w, "compile");
        return;
    }
    json_open_object(w, "compile");
    json_add_string(w, "log", why->compile_log);
    json_add_bool(w, "log_truncated", why->compile_log_truncated);
    json_open_array(w, "diagnostics");
    for (size_t i = 0; i < why->diagnostics_count; i++)
        write_diagnostic(w, &why->diagnostics[i]);
    json_close_array(w);
    json_close_object(w);
}

/* "No limit" is a number beyond those of JSON. */
static void write_limit(struct json_writer *w, const struct problem *why)
{
    if (why->limit_name[0] == '\0') {
        json_add_null(w, "limit");
        return;
    }
    json_open_object(w, "limit");
    json_add_text(w, "name", why->limit_name);
    json_add_u64_or_null(w, "max", why->limit_max);
    json_add_u64_or_null(w, "used", why->limit_used);
    json_add_u64_or_null(w, "requested", why->limit_requested);
    json_close_object(w);
}

static void write_ended(struct json_writer *w, const struct problem *why)
{
    json_open_object(w, "ended");
    json_add_text(w, "reason", why->ended_reason);
    json_add_time(w, "at", why->ended_wall_ns);
    json_add_u64_or_null(w, "limit_s", why->ended_limit_s ? why->ended_limit_s : UINT64_MAX);
    json_close_object(w);
}

static void write_moved(struct json_writer *w, const struct problem *why)
{
    json_open_object(w, "moved");
    json_add_text(w, "to", why->moved_to);
    json_add_text(w, "id", why->moved_id);
    json_add_text(w, "secret", why->moved_secret);
    json_close_object(w);
}

static void write_place(struct json_writer *w, const char *name, const uint32_t place[3])
{
    json_open_array(w, name);
    for (unsigned i = 0; i < 3; i++)
        json_add_u64(w, NULL, place[i]);
    json_close_array(w);
}

static void write_nearest(struct json_writer *w, const struct problem_access *a)
{
    if (a->nearest == NEAREST_NONE) {
        json_add_null(w, "allocation");
        return;
    }
    json_open_object(w, "allocation");
    json_add_exact(w, "address", a->nearest_address);
    json_add_exact(w, "bytes", a->nearest_bytes);
    json_add_bool(w, "freed", a->nearest == NEAREST_FREED);
    json_close_object(w);
}

static void write_code_place(struct json_writer *w, const struct problem_access *a)
{
    json_add_text(w, "kernel", a->kernel);
    if (a->image)
        json_add_u64(w, "image", a->image);
    json_add_u64(w, "line", a->line);
    if (a->file[0] && a->source_line) {
        json_open_object(w, "source");
        json_add_text(w, "file", a->file);
        json_add_u64(w, "line", a->source_line);
        json_close_object(w);
    }
    write_place(w, "block", a->block);
    if (a->has_thread)
        write_place(w, "thread", a->thread);
    else
        json_add_null(w, "thread");
}

static void write_access(struct json_writer *w, const struct problem_access *a)
{
    static const char *const errors[] = {"", "out_of_bounds", "misaligned", "uninitialised"}, *const kinds[] = {"read", "write", "atomic"},
                             *const spaces[] = {"global", "constant", "shared", "local", "param"};

    json_open_object(w, "access");
    json_add_text(w, "error", errors[a->error]);
    json_add_text(w, "kind", kinds[a->kind]);
    json_add_text(w, "space", spaces[a->space]);
    json_add_exact(w, "address", a->address);
    json_add_u64_or_null(w, "bytes", a->bytes ? a->bytes : UINT64_MAX);
    write_code_place(w, a);
    write_nearest(w, a);
    json_close_object(w);
}

static bool may_be_sent_again(const struct problem *why)
{
    return status_retryable(failure_of(why)) && !why->was_done;
}

static void write_head(struct json_writer *w, const struct problem *why, const struct problem_place *place)
{
    enum status st = failure_of(why);
    char        type[96] = "/problems/";

    strncat(type, status_code(st), sizeof type - sizeof "/problems/");
    json_add_text(w, "type", type);
    json_add_text(w, "title", status_title(st));
    json_add_u64(w, "status", status_http(st));
    json_add_text(w, "detail", why->detail[0] ? why->detail : status_title(st));
    json_add_string(w, "instance", place->instance);
    json_add_text(w, "code", status_code(st));
    json_add_text(w, "request_id", place->request_id);
    json_add_bool(w, "retryable", may_be_sent_again(why));
}

void problem_document_write(const struct problem *why, const struct problem_place *place, uint32_t retry_after_ms, struct buf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    json_open_object(&w, NULL);
    write_head(&w, why, place);
    if (retry_after_ms)
        json_add_u64(&w, "retry_after_ms", retry_after_ms);
    else
        json_add_null(&w, "retry_after_ms");
    write_errors(&w, why);
    write_cuda(&w, why);
    write_compile(&w, why);
    write_limit(&w, why);
    if (why->node[0])
        json_add_text(&w, "node", why->node);
    if (why->moved_to[0])
        write_moved(&w, why);
    if (why->ended_reason)
        write_ended(&w, why);
    if (why->access.error && problem_access_valid(&why->access))
        write_access(&w, &why->access);
    if (why->has_op) {
        json_add_u64(&w, "op_index", why->op_index);
        if (why->op_index_last > why->op_index)
            json_add_u64(&w, "op_index_last", why->op_index_last);
        json_add_u64(&w, "completed_ops", why->completed_ops);
    }
    json_close_object(&w);
}

/* Adds up to half at random, so that refused clients do not all retry at once. */
static uint32_t retry_after_ms(const struct problem *why)
{
    unsigned http = status_http(failure_of(why));
    uint32_t base = why->retry_after_ms, jitter = 0;

    if (!base && (http == 429 || http == 503) && may_be_sent_again(why))
        base = RETRY_AFTER_DEFAULT_MS;
    if (!base || base > UINT32_MAX / 2 || !random_bytes(&jitter, sizeof jitter))
        return base;
    return base + jitter % (base / 2 + 1);
}

static void add_status_headers(const struct problem *why, const struct problem_place *place, uint32_t retry_ms, struct reply *r)
{
    unsigned http = status_http(failure_of(why));

    if (http == 401)
        reply_header_text(r, "WWW-Authenticate", "Bearer");
    if (http == 405 && place->allow)
        reply_header_text(r, "Allow", place->allow);
    if (http == 415 && place->accept)
        reply_header_text(r, "Accept", place->accept);
    if (failure_of(why) == STATUS_UNSUPPORTED_DIGEST)
        reply_header_text(r, "Want-Content-Digest", "sha-256=10, crc32c=5");
    if (retry_ms)
        reply_header(r, "Retry-After", "%" PRIu32, retry_ms / 1000 + (retry_ms % 1000 != 0));
    if (http == 416 && why->has_unsatisfied_range)
        reply_header(r, "Content-Range", "bytes */%" PRIu64, why->range_size);
}

void problem_document_reply(const struct problem *why, const struct problem_place *place, struct reply *r)
{
    uint32_t retry_ms = retry_after_ms(why);

    reply_finish(r);
    r->http_status = status_http(failure_of(why));
    reply_header_text(r, "Content-Type", "application/problem+json");
    add_status_headers(why, place, retry_ms, r);
    problem_document_write(why, place, retry_ms, &r->body);
}
