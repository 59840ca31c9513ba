/* Receives the body of an upload into the sink's memory, and has the request handled. On an I/O thread. */
#include <errno.h>
#include <poll.h>

#include "http/bounds.h"
#include "http/engine/internal.h"

/* ---- how much is waited for ----
 *
 * Each wake costs both ends, and while bytes come fast many more of them are there soon. So SO_RCVLOWAT lets poll() wake for UPLOAD_WAKE_BYTES
 * then, and for an end of stream, an error and a full socket as ever. A client that turns slow waits UPLOAD_WAKE_MS longer, once: every byte of
 * it wakes again, until so many have come within that time. */

/* A Unix socket takes the setting and wakes for every byte all the same; where it is refused every byte wakes, too. */
static void wake_from(struct exchange *x, int bytes)
{
    struct offload *h = &x->offload;

    if (h->wakes_from == bytes)
        return;
    setsockopt(h->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
    h->wakes_from = bytes;
}

/* Never for more than will come, or than was lent. What is left of that does not count: lowering it for each end of a slice costs more. */
static enum status wait_for_bytes(struct exchange *x)
{
    const struct offload *h = &x->offload;

    wake_from(x, h->fast && h->lent >= UPLOAD_WAKE_BYTES && h->left >= UPLOAD_WAKE_BYTES ? UPLOAD_WAKE_BYTES : 1);
    return io_wait(x, POLLIN);
}

static void note_speed(struct exchange *x, size_t got)
{
    struct offload *h = &x->offload;

    h->counted += got;
    if (h->counted < UPLOAD_WAKE_BYTES)
        return;
    h->fast = h->fast || x->progress_ns - h->counted_since_ns <= UPLOAD_WAKE_MS * NS_PER_MS;
    h->counted = 0;
    h->counted_since_ns = x->progress_ns;
}

/* ---- receiving ---- */

/* What a socket gave: bytes, 0 for "look again", or CANCELLED. */
static enum status receive_some(struct exchange *x, char *to, size_t room, size_t *got)
{
    ssize_t n = recv(x->offload.fd, to, room, MSG_DONTWAIT);

    *got = n > 0 ? (size_t)n : 0;
    if (n > 0) {
        io_progress(x);
        x->offload.left -= *got;
        note_speed(x, *got);
        x->pace.bytes += *got;
        x->offload.late = pace_too_slow(x, x->loop->server->config.body_bytes_per_s, x->progress_ns);
        return x->offload.late ? STATUS_CANCELLED : STATUS_OK;
    }
    if (n < 0 && errno == EAGAIN)
        return wait_for_bytes(x);
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
    h->lent = room;
    if (room > h->left)
        room = (size_t)h->left;
    st = fill(x, to, room, &filled);
    committed = sink->commit(sink, &x->r, filled);
    return st ? st : committed;
}

/* What MHD had read already. */
static enum status write_head(struct exchange *x)
{
    struct offload   *h = &x->offload;
    struct body_sink *sink = x->r.sink;
    enum status       st = STATUS_OK;

    while (h->head.bytes && !st && !io_stopping(x)) {
        size_t consumed = 0;

        h->woken = false;
        st = sink->write(sink, &x->r, h->head, &consumed);
        if (consumed > h->head.bytes || (!st && !consumed))
            return problem_set(&x->r.problem, STATUS_INTERNAL, "a body sink made no progress");
        h->head = span_from(h->head, consumed);
        if (st == STATUS_PENDING)
            st = wait_for_sink(x);
    }
    return st;
}

/* So that a client that sends first and reads then gets its answer. */
static enum status drop_rest(struct exchange *x)
{
    struct offload *h = &x->offload;
    char            dropped[OFFLOAD_DROP_BYTES];
    enum status     st = STATUS_OK;

    h->lent = sizeof dropped;
    while (h->left && !st && !io_stopping(x)) {
        size_t got;

        st = receive_some(x, dropped, h->left < sizeof dropped ? (size_t)h->left : sizeof dropped, &got);
    }
    return st;
}

static enum status receive_body(struct exchange *x)
{
    enum status st = write_head(x);

    while (x->offload.left && !st && !io_stopping(x))
        st = receive_piece(x);
    return st;
}

static enum status handle(struct exchange *x)
{
    enum status st = exchange_run_handler(x);

    if (st == STATUS_PENDING)
        return problem_set(&x->r.problem, STATUS_INTERNAL, "the handler of a body that was offloaded cannot wait");
    return st;
}

void offload_receive_all(struct exchange *x)
{
    struct offload *h = &x->offload;
    enum status     st;

    h->counted_since_ns = x->progress_ns;
    st = receive_body(x);
    if (st && !h->lost && !h->late)
        drop_rest(x);
    wake_from(x, 1); /* the next request is short, and may be there already */
    if (h->lost || io_stopping(x))
        return;
    if (h->late)
        st = problem_set(&x->r.problem, STATUS_REQUEST_TIMEOUT, "the body stopped arriving");
    offload_answer(x, st ? st : handle(x));
}
