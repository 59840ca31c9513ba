/* Sends an answer's body straight from the source's memory. On an I/O thread. */
#include <errno.h>
#include <poll.h>

#include "http/engine/internal.h"

static bool takes_too_slowly(struct exchange *x)
{
    x->offload.late = pace_too_slow(x, x->loop->server->config.answer_bytes_per_s, now_ns());
    return x->offload.late;
}

/* `sent` of the bytes, when that ends early because the socket is lost or the source wants them back. */
static enum status send_some(struct exchange *x, struct span bytes, size_t *sent)
{
    enum status st = STATUS_OK;

    *sent = 0;
    while (*sent < bytes.bytes && !x->offload.woken && !st) {
        ssize_t n = send(x->offload.fd, bytes.data + *sent, bytes.bytes - *sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            *sent += (size_t)n;
            x->pace.bytes += (size_t)n;
            io_progress(x);
        } else if (n < 0 && errno == EAGAIN) {
            st = takes_too_slowly(x) ? STATUS_CANCELLED : io_wait(x, POLLOUT);
        } else if (n == 0 || errno != EINTR) {
            st = io_lost(x);
        }
    }
    return st;
}

enum status io_send(struct exchange *x, struct span bytes)
{
    enum status st = STATUS_OK;

    while (bytes.bytes && !st) {
        size_t sent;

        x->offload.woken = false;
        st = send_some(x, bytes, &sent);
        bytes = span_from(bytes, sent);
    }
    return st;
}

/* OK without bytes: look again. */
static enum status lend(struct exchange *x, struct span *out)
{
    struct body_source *source = x->r.reply.source;
    enum status         st;

    *out = (struct span){0};
    x->offload.woken = false;
    st = source->lend(source, out, &x->r.waker);
    return st == STATUS_PENDING ? io_wait_woken(x) : st;
}

static enum status send_piece(struct exchange *x)
{
    struct body_source *source = x->r.reply.source;
    struct span         piece;
    size_t              sent;
    enum status         st = lend(x, &piece);

    if (st || !piece.bytes)
        return st;
    if (piece.bytes > x->offload.left)
        piece.bytes = (size_t)x->offload.left;
    st = send_some(x, piece, &sent);
    source->release(source, sent);
    x->offload.left -= sent;
    return st;
}

void offload_send_all(struct exchange *x)
{
    enum status st = STATUS_OK;

    while (x->offload.left && !st && !io_stopping(x))
        st = send_piece(x);
    x->offload.done = !st && !x->offload.left;
}
