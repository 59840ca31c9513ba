/* Writes the answer to a body that was offloaded: MHD no longer has that client's socket. */
#include <inttypes.h>
#include <strings.h>
#include <time.h>

#include "http/engine/internal.h"

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

/* False for a client of HTTP/1.0 as well: it would have to be told otherwise. */
static bool client_goes_on(const struct exchange *x)
{
    struct span options = exchange_header(x, "Connection");

    while (options.bytes)
        if (span_equal_nocase(span_trim(span_cut(&options, ',')), SPAN_LITERAL("close")))
            return false;
    return !x->http_1_0;
}

static bool has_length(unsigned http_status)
{
    return http_status != 204 && http_status != 304;
}

bool exchange_write(const struct exchange *x, bool close, struct buf *text)
{
    const struct reply *r = &x->r.reply;
    bool                ok;

    buf_printf(text, "HTTP/1.1 %u %s\r\n", r->http_status, MHD_get_reason_phrase_for(r->http_status));
    put_date(text);
    ok = exchange_headers(x, close, put_line, text);
    if (has_length(r->http_status))
        buf_printf(text, "Content-Length: %zu\r\n", r->body.bytes);
    buf_add_text(text, "\r\n");
    buf_add_span(text, buf_span(&r->body));
    return ok && !text->failed && !x->speechless;
}

void offload_answer(struct exchange *x, enum status st)
{
    struct offload *h = &x->offload;
    bool            close = h->late || h->left || x->close_after || !client_goes_on(x) || atomic_load(&x->loop->server->quiescing);
    struct buf      text;

    if (!st && x->r.reply.source)
        st = problem_set(&x->r.problem, STATUS_INTERNAL, "the answer to an offloaded body cannot be long");
    exchange_settle(x, st);
    io_progress(x);
    pace_start(&x->pace, x->progress_ns);
    buf_init(&text, REPLY_BODY_BYTES_MAX);
    if (exchange_write(x, close, &text) && io_send(x, buf_span(&text)) == STATUS_OK)
        h->done = !close;
    else
        h->lost = true;
    buf_finish(&text);
}
