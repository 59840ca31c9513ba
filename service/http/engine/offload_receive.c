/* Receives the body of an upload into the sink's memory, and has the request handled. On an I/O thread. */
#include <errno.h>
#include <poll.h>

#include "http/bounds.h"
#include "http/engine/internal.h"

/* Counted as received when MHD read it. */
static size_t take_head(struct offload *h, char *to, size_t room)
{
    struct span piece = span_first(h->head, room);

    memcpy(to, piece.data, piece.bytes);
    h->head = span_from(h->head, piece.bytes);
    h->left -= piece.bytes;
    return piece.bytes;
}

/* What a socket gave: bytes, 0 for "look again", or CANCELLED. */
static enum status receive_some(struct exchange *x, char *to, size_t room, size_t *got)
{
    ssize_t n;

    if (x->offload.head.bytes) {
        *got = take_head(&x->offload, to, room);
        return STATUS_OK;
    }
    n = recv(x->offload.fd, to, room, MSG_DONTWAIT);
    *got = n > 0 ? (size_t)n : 0;
    if (n > 0) {
        io_progress(x);
        x->offload.left -= *got;
        x->pace.bytes += *got;
        x->offload.late = pace_too_slow(x, x->loop->server->config.body_bytes_per_s, x->progress_ns);
        return x->offload.late ? STATUS_CANCELLED : STATUS_OK;
    }
    if (n < 0 && errno == EAGAIN)
        return io_wait(x, POLLIN);
    return n < 0 && errno == EINTR ? STATUS_OK : io_lost(x);
}

/* Until the room is full or the sink wants it back. */
static enum status fill(struct exchange *x, char *to, size_t room, size_t *filled)
{
    enum status st = STATUS_OK;

    while (*filled < room && !x->offload.woken && !st) {
        size_t got;

        st = receive_some(x, to + *filled, room - *filled, &got);
        *filled += got;
    }
    return st;
}

/* The sink has said PENDING. The client's time stands still meanwhile. */
static enum status wait_for_sink(struct exchange *x)
{
    enum status st;

    if (!x->r.prepare)
        return io_wait_woken(x);
    pace_pause(&x->pace, now_ns());
    st = exchange_run_prepare(x);
    io_progress(x);
    pace_go_on(&x->pace, x->progress_ns);
    return st;
}

static enum status receive_piece(struct exchange *x)
{
    struct offload   *h = &x->offload;
    struct body_sink *sink = x->r.sink;
    size_t            room = 0, filled = 0;
    char             *to = NULL;
    enum status       st, committed;

    h->woken = false;
    st = sink->borrow(sink, &x->r, &to, &room);
    if (st == STATUS_PENDING)
        return wait_for_sink(x);
    if (st)
        return st;
    if (room > h->left)
        room = (size_t)h->left;
    st = fill(x, to, room, &filled);
    committed = sink->commit(sink, &x->r, filled);
    return st ? st : committed;
}

/* So that a client that sends first and reads then gets its answer. */
static enum status drop_rest(struct exchange *x)
{
    struct offload *h = &x->offload;
    char            dropped[OFFLOAD_DROP_BYTES];
    enum status     st = STATUS_OK;

    while (h->left && !st && !io_stopping(x)) {
        size_t got;

        st = receive_some(x, dropped, h->left < sizeof dropped ? (size_t)h->left : sizeof dropped, &got);
    }
    return st;
}

static enum status receive_body(struct exchange *x)
{
    enum status st = STATUS_OK;

    while (x->offload.left && !st && !io_stopping(x))
        st = receive_piece(x);
    return st;
}

static enum status handle(struct exchange *x)
{
    enum status st = exchange_run_handler(x);

    if (st == STATUS_PENDING)
        return problem_set(&x->r.problem, STATUS_INTERNAL, "the handler of an offloaded body cannot wait");
    return st;
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

/* By hand: MHD no longer has that client's socket. */
static void answer(struct exchange *x, enum status st)
{
    struct offload *h = &x->offload;
    bool            close = h->late || h->left || exchange_closes(x) || !client_goes_on(x);
    struct buf      text;

    if (!st && x->r.reply.source)
        st = problem_set(&x->r.problem, STATUS_INTERNAL, "the answer to an offloaded body cannot be long");
    exchange_settle(x, st);
    io_progress(x);
    pace_start(&x->pace, x->progress_ns);
    buf_init(&text, REPLY_BODY_BYTES_MAX);
    if (!x->speechless && answer_write(&x->r.reply, x->r.id, close, &text) && io_send(x, buf_span(&text)) == STATUS_OK)
        h->done = !close;
    else
        h->lost = true;
    buf_finish(&text);
}

void offload_receive_all(struct exchange *x)
{
    struct offload *h = &x->offload;
    enum status     st;

    st = receive_body(x);
    if (st && !h->lost && !h->late)
        drop_rest(x);
    if (h->lost || io_stopping(x))
        return;
    if (h->late)
        st = problem_set(&x->r.problem, STATUS_REQUEST_TIMEOUT, "the body stopped arriving");
    answer(x, st ? st : handle(x));
}
