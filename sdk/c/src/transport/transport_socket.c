/* The transport over own sockets, without copying bodies. */
#include "transport/transport.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "transport/http_answer.h"

struct connection {
    int        fd;
    struct buf fields; /* of every request's header */
    struct buf head;   /* of the request; its memory is used again */
    char       received[RECEIVE_BYTES];
};

static void interrupt_fd(void *arg)
{
    socket_interrupt(*(const int *)arg);
}

static gpurest_status cancelled(void)
{
    return fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled");
}

static gpurest_status no_connection(const struct target *t, int error)
{
    const struct endpoint *e = &t->endpoint;

    if (error == EAFNOSUPPORT && e->scheme == SCHEME_UNIX)
        return fail(GPUREST_E_UNSUPPORTED, "use an http:// URL; ssh -L forwards a port to the service's host",
                    "this build has no Unix sockets for unix://%.200s", e->path);
    return fail(error == ETIMEDOUT ? GPUREST_E_TIMEOUT : GPUREST_E_CONNECT,
                "check that gpurestd runs and that GPUREST_URL or gpurest_options.url is the address in its first line of output",
                "no connection to %s%.200s: %s", e->scheme == SCHEME_UNIX ? "unix://" : "",
                e->scheme == SCHEME_UNIX ? e->path : e->authority, error_text(error));
}

/* ---- connecting ---- */

/* 0 or an errno. */
static int finish_connect(int fd, int timeout_ms)
{
    uint64_t until = clock_ms() + (uint64_t)timeout_ms;
    int      n;

    do {
        uint64_t now = clock_ms();
        n = socket_wait_connected(fd, now >= until ? 0 : (int)(until - now));
    } while (n == -EINTR);
    if (n == 0)
        return ETIMEDOUT;
    return n < 0 ? -n : socket_error(fd);
}

/* A descriptor, or -errno. */
static int connect_to(const struct address *a, int timeout_ms, struct cancel *c)
{
    int fd = socket_make(a), error;

    if (fd < 0)
        return fd;
    if (!cancel_enter(c, interrupt_fd, &fd)) {
        socket_close(fd);
        return -ECANCELED;
    }
    error = socket_connect(fd, a);
    if (error == EINPROGRESS)
        error = finish_connect(fd, timeout_ms);
    cancel_leave(c);
    if (!error)
        return fd;
    socket_close(fd);
    return -error;
}

static int connect_unix(const struct target *t, struct cancel *c)
{
    struct address a;
    int            error = address_of_path(t->endpoint.path, &a);

    return error ? -error : connect_to(&a, t->connect_timeout_ms, c);
}

/* Every address of the host in turn. */
static int connect_host(const struct target *t, struct cancel *c)
{
    size_t          count = 0;
    const char     *host = t->endpoint.address[0] ? t->endpoint.address : t->endpoint.host;
    struct address *list = addresses_find(host, t->endpoint.port, &count);
    int             fd = -EHOSTUNREACH;

    for (size_t i = 0; list && i < count && fd < 0 && fd != -ECANCELED; i++)
        fd = connect_to(&list[i], t->connect_timeout_ms, c);
    free(list);
    return fd;
}

/* The head never moves to larger memory: what it left would have the token still. */
static bool write_fields(struct connection *n, const struct target *t)
{
    buf_init(&n->head, REQUEST_HEAD_BYTES_MAX);
    buf_init(&n->fields, REQUEST_HEAD_BYTES_MAX);
    if (!buf_reserve(&n->head, REQUEST_HEAD_BYTES_MAX))
        return false;
    buf_printf(&n->fields, " HTTP/1.1\r\nHost: %s\r\nUser-Agent: gpurest-c/%s\r\n", t->endpoint.authority, gpurest_version());
    if (t->token[0])
        buf_printf(&n->fields, "Authorization: Bearer %s\r\n", t->token);
    return !n->fields.failed;
}

static void connection_free(struct connection *n)
{
    if (n->fields.data)
        memory_wipe(n->fields.data, n->fields.room);
    if (n->head.data)
        memory_wipe(n->head.data, n->head.room); /* behind the last head is the end of a longer one before */
    buf_finish(&n->fields);
    buf_finish(&n->head);
    free(n);
}

static gpurest_status connection_make(const struct target *t, struct cancel *c, void **out)
{
    struct connection *n = malloc(sizeof *n);

    if (!n)
        return fail_memory();
    if (!write_fields(n, t)) {
        connection_free(n);
        return fail_memory();
    }
    n->fd = t->endpoint.scheme == SCHEME_UNIX ? connect_unix(t, c) : connect_host(t, c);
    if (n->fd < 0) {
        int error = -n->fd;
        connection_free(n);
        return cancel_asked(c) ? cancelled() : no_connection(t, error);
    }
    *out = n;
    return GPUREST_OK;
}

static bool connection_alive(void *connection)
{
    const struct connection *n = connection;

    return socket_idle(n->fd);
}

static void connection_close(void *connection)
{
    struct connection *n = connection;

    socket_close(n->fd);
    connection_free(n);
}

/* ---- an exchange ---- */

struct turn {
    struct connection  *n;
    struct exchange    *x;
    struct http_answer  answer;
    const struct piece *body;
    size_t              body_count;
    size_t              piece, at;     /* piece 0 is the head, the others are the body */
    struct piece        drawn;         /* the body, if it has a source: one piece after the other */
    char               *drawn_room;    /* SOURCE_BYTES; NULL: it has none */
    uint64_t            undrawn;       /* bytes that the source has still */
    bool                sending_ended; /* all is sent, or the service accepts no more */
    bool                cut;           /* not all could be sent */
};

static gpurest_status connection_broken(const struct turn *t, int error)
{
    if (cancel_asked(t->x->cancel))
        return cancelled();
    return fail(GPUREST_E_CONNECT, "see the log of the service and of proxies in front of it", "the connection broke in %s %.200s: %s",
                t->x->method, t->x->path, error_text(error));
}

/* False: too long. */
static bool write_head(const struct turn *t)
{
    const struct exchange *x = t->x;
    struct buf            *head = &t->n->head;

    buf_clear(head);
    buf_add_text(head, x->method);
    buf_add(head, " ", 1);
    buf_add_text(head, x->path);
    buf_add(head, t->n->fields.data, t->n->fields.bytes);
    if (x->content_type) {
        buf_add_text(head, "Content-Type: ");
        buf_add_text(head, x->content_type);
        buf_add(head, "\r\n", 2);
    }
    if (x->content_type || strcmp(x->method, "POST") == 0 || strcmp(x->method, "PUT") == 0) {
        buf_add_text(head, "Content-Length: ");
        buf_add_u64(head, exchange_body_bytes(x));
        buf_add(head, "\r\n", 2);
    }
    if (x->generation) {
        buf_add_text(head, "Gpurest-Generation: ");
        buf_add_u64(head, x->generation);
        buf_add(head, "\r\n", 2);
    }
    buf_add_text(head, x->headers ? x->headers : "");
    return buf_add(head, "\r\n", 2);
}

/* Collects the data to send next. */
static size_t fill_vector(const struct turn *t, struct piece v[PIECES_AT_ONCE], size_t *bytes)
{
    size_t at = t->at, n = 0;

    *bytes = 0;
    for (size_t i = t->piece; i <= t->body_count && n < PIECES_AT_ONCE && *bytes < TRANSFER_BYTES; i++, at = 0) {
        const char *data = i == 0 ? t->n->head.data : t->body[i - 1].data;
        size_t      left = (i == 0 ? t->n->head.bytes : t->body[i - 1].bytes) - at;
        if (left == 0)
            continue;
        if (left > TRANSFER_BYTES - *bytes)
            left = TRANSFER_BYTES - *bytes;
        v[n++] = (struct piece){data + at, left};
        *bytes += left;
    }
    return n;
}

/* Notes `bytes` as sent; returns how many belong to the body. */
static size_t note_sent(struct turn *t, size_t bytes)
{
    size_t of_body = 0;

    while (t->piece <= t->body_count) {
        size_t left = (t->piece == 0 ? t->n->head.bytes : t->body[t->piece - 1].bytes) - t->at;
        size_t n = bytes < left ? bytes : left;
        of_body += t->piece ? n : 0;
        bytes -= n;
        t->at += n;
        if (n < left)
            break;
        t->piece++;
        t->at = 0;
    }
    t->sending_ended = t->piece > t->body_count;
    return of_body;
}

/* Sends what the socket accepts. *blocked: nothing. */
static gpurest_status send_some(struct turn *t, bool *blocked)
{
    struct piece v[PIECES_AT_ONCE];
    size_t       bytes, count = fill_vector(t, v, &bytes);
    int64_t      n = socket_send(t->n->fd, v, count);

    *blocked = n == -EAGAIN;
    if (n >= 0) {
        t->x->sent = true;
        return progress_add(t->x->sending, note_sent(t, (size_t)n));
    }
    if (!*blocked && n != -EINTR)
        t->sending_ended = t->cut = true; /* an answer may still have come */
    return GPUREST_OK;
}

static int64_t receive_bytes(struct turn *t, void *to, size_t room)
{
    if (t->x->takes_descriptor)
        return socket_receive_descriptor(t->n->fd, to, room, &t->x->descriptor);
    return socket_receive(t->n->fd, to, room);
}

/* Receives available data. *blocked: none. */
static gpurest_status receive_some(struct turn *t, bool *blocked)
{
    size_t  room = sizeof t->n->received;
    char   *place = http_answer_place(&t->answer, &room);
    int64_t n;

    if (place && room > TRANSFER_BYTES)
        room = TRANSFER_BYTES;
    n = receive_bytes(t, place ? place : t->n->received, room);
    *blocked = n == -EAGAIN;
    if (n > 0)
        return place ? http_answer_placed(&t->answer, (size_t)n) : http_answer_feed(&t->answer, t->n->received, (size_t)n);
    if (n < 0 && (*blocked || n == -EINTR))
        return GPUREST_OK;
    if (n < 0 || cancel_asked(t->x->cancel))
        return connection_broken(t, n < 0 ? (int)-n : ECONNRESET);
    return http_answer_closed(&t->answer);
}

static gpurest_status wait_for(struct turn *t, bool also_writable)
{
    if (socket_wait(t->n->fd, also_writable, t->x->idle_ms) != 0)
        return GPUREST_OK;
    return exchange_stalled(t->x, interrupt_fd, &t->n->fd);
}

/* An early answer stops the upload: the service refused it. */
static gpurest_status look_for_answer(struct turn *t, bool *nothing)
{
    gpurest_status st = receive_some(t, nothing);

    if (!st && t->x->status >= 200)
        t->sending_ended = t->cut = true;
    return st;
}

/* The next piece of a body that has a source, which may be slower than the peer. */
static gpurest_status draw_more(struct turn *t)
{
    bool           nothing;
    size_t         n = t->undrawn < SOURCE_BYTES ? (size_t)t->undrawn : SOURCE_BYTES;
    gpurest_status st = look_for_answer(t, &nothing);

    if (st || t->cut)
        return st;
    n = t->x->source(t->x->source_arg, t->drawn_room, n);
    if (!n)
        return failure_last()->status;
    t->drawn.bytes = n;
    t->undrawn -= n;
    t->piece = 1;
    t->at = 0;
    t->sending_ended = false;
    return GPUREST_OK;
}

static gpurest_status send_all(struct turn *t)
{
    bool           send_blocked, nothing;
    gpurest_status st = GPUREST_OK;

    while (!st && !t->sending_ended) {
        st = send_some(t, &send_blocked);
        if (!st && t->sending_ended && !t->cut && t->undrawn)
            st = draw_more(t);
        if (st || !send_blocked)
            continue;
        st = look_for_answer(t, &nothing);
        if (!st && !t->cut && nothing)
            st = wait_for(t, true);
    }
    return st;
}

static gpurest_status begin_body(struct turn *t)
{
    const struct exchange *x = t->x;

    t->body = x->upload;
    t->body_count = x->upload_count;
    if (!x->source)
        return GPUREST_OK;
    t->drawn_room = malloc(SOURCE_BYTES);
    t->drawn.data = t->drawn_room;
    t->body = &t->drawn;
    t->body_count = 1;
    t->undrawn = x->source_bytes;
    return t->drawn_room ? GPUREST_OK : fail_memory();
}

/* For the first bytes of the answer, which take longer than to look for them. */
static gpurest_status spin(struct turn *t)
{
    uint64_t       until = clock_us() + (uint64_t)t->x->spin_us;
    bool           blocked = true;
    gpurest_status st = GPUREST_OK;

    while (!st && blocked && t->answer.state != ANSWER_DONE && clock_us() < until)
        st = receive_some(t, &blocked);
    return st;
}

static gpurest_status receive_all(struct turn *t)
{
    bool           blocked = true;
    gpurest_status st = t->x->spin_us ? spin(t) : GPUREST_OK;

    while (!st && t->answer.state != ANSWER_DONE) {
        if (blocked)
            st = wait_for(t, false);
        if (!st)
            st = receive_some(t, &blocked);
    }
    return st ? st : exchange_end(t->x);
}

static gpurest_status connection_perform(void *connection, const struct target *to, struct exchange *x, bool *keep)
{
    struct turn    t = {.n = connection, .x = x};
    gpurest_status st;

    (void)to; /* its header lines are the connection's */
    *keep = false;
    if (!cancel_enter(x->cancel, interrupt_fd, &t.n->fd))
        return cancelled();
    http_answer_init(&t.answer, x);
    st = write_head(&t) ? begin_body(&t) : fail_invalid("the request's path and header are too long");
    if (!st)
        st = send_all(&t);
    if (!st)
        st = receive_all(&t);
    *keep = !st && !t.answer.closes && !t.cut;
    free(t.drawn_room);
    http_answer_finish(&t.answer);
    cancel_leave(x->cancel);
    return st;
}

const struct transport transport_socket = {
    .connect = connection_make, .alive = connection_alive, .perform = connection_perform, .close = connection_close};
