/* The answer: a struct reply, or a problem, as MHD's response or as text for a client whose request is not MHD's (any more). What header fields it
 * has is decided here alone. */
#include <strings.h>
#include <time.h>

#include "base/log/log.h"
#include "http/bounds.h"
#include "http/engine/internal.h"
#include "http/message/problem_document.h"

bool exchange_is_endless(const struct exchange *x)
{
    return x->r.reply.source && x->r.reply.source_bytes == REPLY_BYTES_UNKNOWN;
}

static ssize_t read_source(struct exchange *x, char *to, size_t room)
{
    struct body_source *source = x->r.reply.source;
    size_t              bytes = 0;
    enum status         st;

    x->woken = false;
    if (exchange_is_endless(x) && atomic_load(&x->revoked))
        return MHD_CONTENT_READER_END_OF_STREAM;
    st = body_source_read(source, to, room, &bytes, &x->r.waker);
    if (bytes > 0 && bytes <= room && (st == STATUS_OK || st == STATUS_PENDING))
        return (ssize_t)bytes;
    if (!st && !bytes && x->r.reply.source_bytes == REPLY_BYTES_UNKNOWN)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (st != STATUS_PENDING || bytes)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (exchange_is_endless(x) && atomic_load(&x->loop->server->paused))
        return MHD_CONTENT_READER_END_OF_STREAM;
    exchange_suspend(x);
    return 0;
}

static ssize_t read_piece(struct exchange *x, uint64_t position, char *to, size_t room)
{
    const struct span body = buf_span(&x->r.reply.body);
    struct span       piece = span_first(span_from(body, (size_t)position), room);

    if (atomic_load(&x->gone) || x->loop->cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (x->offload.thread)
        return offload_send_body(x);
    if (x->r.reply.source)
        return read_source(x, to, room);
    if (piece.bytes == 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    memcpy(to, piece.data, piece.bytes);
    return (ssize_t)piece.bytes;
}

/* MHD asks at most for what is left of the announced length. */
static ssize_t read_reply(void *context, uint64_t position, char *to, size_t room)
{
    struct exchange *x = context;
    ssize_t          bytes = read_piece(x, position, to, room);

    if (bytes > 0)
        x->pace.bytes += (size_t)bytes;
    return bytes;
}

static struct MHD_Response *make_response(struct exchange *x)
{
    struct reply *r = &x->r.reply;
    uint64_t      bytes = r->source ? r->source_bytes : r->body.bytes;

    if (r->source && offload_reserve(x))
        x->close_after = true; /* MHD never sees the body go, so the connection ends behind it */
    if (r->source && bytes == REPLY_BYTES_UNKNOWN)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, CONNECTION_MEMORY_BYTES, read_reply, x, NULL);
    if (bytes && (r->source || bytes > REPLY_WHOLE_BYTES_MAX))
        return MHD_create_response_from_callback(bytes, bytes < REPLY_WHOLE_BYTES_MAX ? (size_t)bytes : REPLY_WHOLE_BYTES_MAX, read_reply,
                                                 x, NULL);
    x->pace.bytes = bytes;
    /* The reply outlives the response: both end in exchange_completed or after it. */
    return MHD_create_response_from_buffer((size_t)bytes, bytes ? r->body.data : (char *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
}

bool exchange_closes(const struct exchange *x)
{
    return x->close_after || atomic_load(&x->loop->server->quiescing);
}

static bool has_header(const struct reply *r, const char *name)
{
    for (unsigned i = 0; i < r->headers_count; i++)
        if (strcasecmp(r->headers[i].name, name) == 0)
            return true;
    return false;
}

/* All fields but the framing's and the date; stops when put() does. request_id "": there was no request. */
static bool put_fields(const struct reply *r, const char *request_id, bool close,
                       bool (*put)(void *to, const char *name, const char *value), void *to)
{
    bool ok = !*request_id || put(to, "X-Request-Id", request_id);

    for (unsigned i = 0; i < r->headers_count && ok; i++)
        ok = put(to, r->headers[i].name, r->headers[i].value);
    if (ok && !has_header(r, "Cache-Control"))
        ok = put(to, "Cache-Control", "no-store");
    ok = ok && put(to, "X-Content-Type-Options", "nosniff");
    return ok && close ? put(to, "Connection", "close") : ok;
}

/* ---- as text ---- */

static bool put_line(void *text, const char *name, const char *value)
{
    return buf_printf(text, "%s: %s\r\n", name, value);
}

static void put_date(struct buf *text)
{
    time_t    now = time(NULL);
    struct tm utc;
    char      date[40];

    if (gmtime_r(&now, &utc) && strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &utc))
        put_line(text, "Date", date);
}

/* By definition; MHD would send one. */
static bool has_no_body(unsigned http_status)
{
    return http_status == 204 || http_status == 304;
}

bool answer_write(const struct reply *r, const char *request_id, bool close, struct buf *text)
{
    bool ok;

    buf_printf(text, "HTTP/1.1 %u %s\r\n", r->http_status, MHD_get_reason_phrase_for(r->http_status));
    put_date(text);
    ok = put_fields(r, request_id, close, put_line, text);
    if (!has_no_body(r->http_status))
        buf_printf(text, "Content-Length: %zu\r\n", r->body.bytes);
    buf_add_text(text, "\r\n");
    buf_add_span(text, buf_span(&r->body));
    return ok && !text->failed;
}

void answer_send_last(const struct connection *c, const struct reply *r, const char *request_id)
{
    struct buf text;

    buf_init(&text, REPLY_WHOLE_BYTES_MAX);
    if (answer_write(r, request_id, true, &text) && !tls_send(c, buf_span(&text)) &&
        send(c->fd, text.data, text.bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        log_debug("http", "a client disconnected before its error answer");
    buf_finish(&text);
}

/* ---- by MHD ---- */

static bool put_header(void *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

enum MHD_Result exchange_send(struct exchange *x)
{
    struct MHD_Response *response;
    enum MHD_Result      result = MHD_NO;

    pace_start(&x->pace, now_ns());
    response = x->speechless ? NULL : make_response(x);
    if (!response)
        return MHD_NO;
    if (exchange_pass_descriptor(x) && put_fields(&x->r.reply, x->r.id, exchange_closes(x), put_header, response))
        result = MHD_queue_response(x->mhd, x->r.reply.http_status, response);
    MHD_destroy_response(response);
    return result;
}

/* Ours at warn, the client's at debug. Details name no secret: the client sees them, too. */
static void log_problem(const struct exchange *x, enum status st)
{
    bool        memory = st == STATUS_DEVICE_MEMORY_EXHAUSTED || st == STATUS_OUT_OF_MEMORY || st == STATUS_QUOTA_EXCEEDED;
    const char *category = memory ? "memory" : st == STATUS_UNAUTHENTICATED || st == STATUS_INSUFFICIENT_SCOPE ? "auth" : "http";

    log_request(x->r.id, x->r.trace);
    if (status_http(st) >= 500 && st != STATUS_NOT_IMPLEMENTED && st != STATUS_HTTP_VERSION_NOT_SUPPORTED)
        log_warn(category, "%s: %s", status_code(st), x->r.problem.detail);
    else
        log_debug(category, "%s: %s", status_code(st), x->r.problem.detail);
    log_request(NULL, NULL);
}

static void answer_problem(struct exchange *x, enum status st)
{
    const struct server_config *config = &x->loop->server->config;
    struct problem_place        place = {x->r.path, x->r.id, x->allow[0] ? x->allow : NULL, x->accept};

    if (x->r.problem.status != st)
        problem_set(&x->r.problem, st, "%s", status_title(st));
    problem_document_reply(&x->r.problem, &place, &x->r.reply);
    if (x->r.reply.body.failed) /* what the request had taken was freed; perhaps that is enough */
        problem_document_reply(&x->r.problem, &place, &x->r.reply);
    x->speechless = x->r.reply.body.failed;
    count_problem(st);
    log_problem(x, st);
    if (config->on_problem)
        config->on_problem(config->app, st);
}

static void add_timing(struct exchange *x)
{
    const struct timing *t = &x->r.timing;
    char                 room[SERVER_TIMING_BYTES_MAX];
    struct buf           text;

    if (!t->known || has_header(&x->r.reply, "Server-Timing"))
        return;
    buf_over(&text, room, sizeof room);
    if (t->wake_ms > 0)
        duration_add(&text, "wake", t->wake_ms);
    duration_add(&text, "recv", t->recv_ms);
    duration_add(&text, "queue", t->queue_ms);
    duration_add(&text, "h2d", t->h2d_ms);
    duration_add(&text, "kernel", t->kernel_ms);
    duration_add(&text, "d2h", t->d2h_ms);
    reply_header_text(&x->r.reply, "Server-Timing", text.failed ? NULL : text.data);
}

void exchange_settle(struct exchange *x, enum status st)
{
    struct reply *r = &x->r.reply;

    if (!st && r->http_status == 0)
        st = problem_set(&x->r.problem, STATUS_INTERNAL, "the handler gave no answer");
    if (!st && r->descriptor >= 0 && (!x->r.is_local || x->offload.receiving))
        st = problem_set(&x->r.problem, STATUS_INTERNAL, "this connection cannot transfer a file descriptor");
    if (!st && r->body.failed) {
        st = problem_set(&x->r.problem, STATUS_OUT_OF_MEMORY, "not enough memory for the answer");
        x->r.problem.was_done = x->r.method != METHOD_GET && x->r.method != METHOD_HEAD;
    }
    if (st)
        answer_problem(x, st);
    add_timing(x);
    if (has_no_body(r->http_status))
        reply_empty(r, r->http_status);
    idempotent_settled(x, st);
    exchange_set_state(x, EXCHANGE_ANSWERED);
}

enum MHD_Result exchange_answer(struct exchange *x, enum status st)
{
    exchange_settle(x, st);
    return exchange_send(x);
}
