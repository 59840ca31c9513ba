/* Stands before recv(), so that what libmicrohttpd 0.9.75 misreads never reaches it: bare line feeds, folded lines, NULs and lines without
 * a name cannot be seen in what it hands on. It calls recv() (under TLS gnutls_record_recv(), see http/engine/tls.c) by the process's global
 * scope, where the executable's own definition comes first. Looking with MSG_PEEK instead would be a race: it receives by itself.
 *
 * It costs the smallest request 0.5 to 2.4 % of its time (2026-11-23, two cores: tests/bench/results/2026-11-23-framing.txt).
 *
 * All of the process calls this recv(). Only plain reads by a loop's thread of a socket that is a connection's go through the scanner;
 * anything else goes straight on as recvfrom(), which is the same call. If MHD should ever receive in another way, exchange_begin() meets
 * requests that were not scanned, and ends their connections. */
#include <errno.h>
#include <stdlib.h>

#include "http/engine/internal.h"

static _Thread_local struct loop *own_loop; /* NULL: no event loop's thread */

void receive_on_this_thread(struct loop *loop)
{
    own_loop = loop;
}

/* ---- sockets of connections ---- */

static bool make_room(struct loop *loop, int fd)
{
    unsigned            count = loop->by_fd_count ? loop->by_fd_count : 64;
    struct connection **larger;

    while (count <= (unsigned)fd)
        count *= 2;
    if (count == loop->by_fd_count)
        return true;
    larger = realloc(loop->by_fd, count * sizeof *larger);
    if (!larger)
        return false;
    memset(larger + loop->by_fd_count, 0, (count - loop->by_fd_count) * sizeof *larger);
    loop->by_fd = larger;
    loop->by_fd_count = count;
    return true;
}

bool receive_add(struct connection *c)
{
    if (!make_room(c->loop, c->fd))
        return false;
    c->loop->by_fd[c->fd] = c;
    return true;
}

void receive_remove(struct connection *c)
{
    if ((unsigned)c->fd < c->loop->by_fd_count && c->loop->by_fd[c->fd] == c)
        c->loop->by_fd[c->fd] = NULL;
}

struct connection *receive_connection(int fd)
{
    return own_loop && (unsigned)fd < own_loop->by_fd_count ? own_loop->by_fd[fd] : NULL;
}

/* ---- refusing ---- */

/* Of a request that MHD has begun, or of one that it has not seen anything of: that lives for its answer only. MHD ends the one that it
 * knows, as soon as it reads the end of the stream. */
static void answer_refusal(struct connection *c)
{
    struct exchange *x = c->exchange, *own = x ? NULL : exchange_create(c, "");
    void            *context = own;

    x = x ? x : own;
    if (!x || x->state == EXCHANGE_HANDLING || x->state == EXCHANGE_ANSWERED)
        return;
    problem_set(&x->r.problem, c->framing.refused, "%s", c->framing.why);
    exchange_settle(x, c->framing.refused);
    if (!x->speechless)
        answer_send_last(c, &x->r.reply, x->r.id);
    if (own)
        exchange_completed(c->loop, c->mhd, &context, MHD_REQUEST_TERMINATED_WITH_ERROR);
}

void receive_refuse(struct connection *c, enum status st, const char *why)
{
    c->framing.refused = st;
    c->framing.why = why;
    receive_refused(c);
    connection_cut(c);
}

ssize_t receive_refused(struct connection *c)
{
    bool first = !c->linger;

    c->linger = true;
    if (first)
        answer_refusal(c);
    return 0;
}

/* MHD has no reason to read again by itself. */
void receive_answered(struct connection *c)
{
    if (c->framing.refused && !c->linger && c->begun >= c->framing.ended)
        shutdown(c->fd, SHUT_RD);
}

/* ---- receiving ---- */

/* What is without fault goes to MHD first, which answers it and then reads on. */
ssize_t receive_scanned(struct connection *c, const char *data, ssize_t n)
{
    size_t good;

    if (n <= 0)
        return n;
    good = framing_scan(&c->framing, data, (size_t)n);
    return c->framing.refused && !good ? receive_refused(c) : (ssize_t)good;
}

static ssize_t receive_plain(struct connection *c, void *to, size_t room)
{
    if (c->framing.refused)
        return receive_refused(c);
    return receive_scanned(c, to, recvfrom(c->fd, to, room, 0, NULL, NULL));
}

/* Nothing of the connection is read before its first bytes are known not to be a proxy's, also below TLS. 1: go on. */
static ssize_t receive_header(struct connection *c)
{
    switch (client_read_header(c)) {
    case CLIENT_HEADER_DONE:
        return 1;
    case CLIENT_HEADER_SHORT:
        errno = EAGAIN;
        return -1;
    case CLIENT_HEADER_FULL:
        connection_reject(c, STATUS_OVERLOADED);
        break;
    case CLIENT_HEADER_BAD:
        connection_reject(c, STATUS_INVALID_REQUEST);
        break;
    }
    connection_cut(c);
    return 0;
}

__attribute__((visibility("default"))) ssize_t recv(int fd, void *to, size_t room, int flags)
{
    struct connection *c = flags & MSG_PEEK ? NULL : receive_connection(fd);
    ssize_t            n = c && c->may_be_proxied ? receive_header(c) : 1;

    if (n != 1)
        return n;
    return c && !c->is_tls ? receive_plain(c, to, room) : recvfrom(fd, to, room, flags, NULL, NULL);
}
