/* The transport over own sockets, without copying bodies. */
#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "transport/http_answer.h"

struct connection {
    int  fd;
    char received[RECEIVE_BYTES];
};

static void interrupt_fd(void *arg)
{
    shutdown(*(const int *)arg, SHUT_RDWR);
}

static gpurest_status cancelled(void)
{
    return fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled");
}

static gpurest_status no_connection(const struct target *t, int error)
{
    const struct endpoint *e = &t->endpoint;

    return fail(error == ETIMEDOUT ? GPUREST_E_TIMEOUT : GPUREST_E_CONNECT,
                "check that gpurestd runs and that GPUREST_URL or gpurest_options.url is the address in its first line of output",
                "no connection to %s%.200s: %s", e->scheme == SCHEME_UNIX ? "unix://" : "",
                e->scheme == SCHEME_UNIX ? e->path : e->authority, strerror(error));
}

/* ---- connecting ---- */

static bool is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* Uses reno on loopback: bbr's pacing halves the rate there. Errors are ignored. */
static void set_socket_options(int fd, const struct sockaddr *a)
{
    int one = 1, idle_s = KEEPALIVE_IDLE_S, interval_s = KEEPALIVE_INTERVAL_S;

    if (a->sa_family == AF_UNIX)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one); /* detects a dead peer during long waits */
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    if (is_loopback(a))
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

/* 0 or an errno. */
static int finish_connect(int fd, int timeout_ms)
{
    struct pollfd p = {fd, POLLOUT, 0};
    uint64_t      until = clock_ms() + (uint64_t)timeout_ms;
    int           error = 0, n;
    socklen_t     bytes = sizeof error;

    do {
        uint64_t now = clock_ms();
        n = poll(&p, 1, now >= until ? 0 : (int)(until - now));
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        return ETIMEDOUT;
    return n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) ? errno : error;
}

/* A descriptor, or -errno. */
static int connect_to(const struct sockaddr *a, socklen_t bytes, int timeout_ms, struct cancel *c)
{
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;

    if (fd < 0)
        return -errno;
    set_socket_options(fd, a);
    if (!cancel_enter(c, interrupt_fd, &fd)) {
        close(fd);
        return -ECANCELED;
    }
    if (connect(fd, a, bytes))
        error = errno == EINPROGRESS || errno == EINTR ? finish_connect(fd, timeout_ms) : errno;
    cancel_leave(c);
    if (!error)
        return fd;
    close(fd);
    return -error;
}

static int connect_unix(const struct target *t, struct cancel *c)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    static_assert(sizeof a.sun_path >= sizeof t->endpoint.path, "a path fits a socket's address");
    memcpy(a.sun_path, t->endpoint.path, strlen(t->endpoint.path) + 1);
    return connect_to((const struct sockaddr *)&a, sizeof a, t->connect_timeout_ms, c);
}

/* Every address of the host in turn. */
static int connect_host(const struct target *t, struct cancel *c)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
    int             fd = -EHOSTUNREACH;

    if (getaddrinfo(t->endpoint.host, t->endpoint.port, &hints, &list))
        return fd;
    for (const struct addrinfo *a = list; a && fd < 0 && fd != -ECANCELED; a = a->ai_next)
        fd = connect_to(a->ai_addr, a->ai_addrlen, t->connect_timeout_ms, c);
    freeaddrinfo(list);
    return fd;
}

static gpurest_status socket_connect(const struct target *t, struct cancel *c, void **out)
{
    struct connection *n = malloc(sizeof *n);

    if (!n)
        return fail_memory();
    n->fd = t->endpoint.scheme == SCHEME_UNIX ? connect_unix(t, c) : connect_host(t, c);
    if (n->fd < 0) {
        int error = -n->fd;
        free(n);
        return cancel_asked(c) ? cancelled() : no_connection(t, error);
    }
    *out = n;
    return GPUREST_OK;
}

static bool socket_alive(void *connection)
{
    const struct connection *n = connection;
    char                     byte;

    return recv(n->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

static void socket_close(void *connection)
{
    struct connection *n = connection;

    close(n->fd);
    free(n);
}

/* ---- an exchange ---- */

struct turn {
    struct connection *n;
    struct exchange   *x;
    struct http_answer answer;
    struct buf         head;
    size_t             piece, at;     /* piece 0 is the head, the others are the body */
    bool               sending_ended; /* all is sent, or the service accepts no more */
    bool               cut;           /* not all could be sent */
};

static gpurest_status connection_stalled(const struct turn *t)
{
    return fail(GPUREST_E_TIMEOUT, "check the service and the network, or raise idle_timeout_ms", "no data for %d ms in %s %.200s",
                t->x->idle_ms, t->x->method, t->x->path);
}

static gpurest_status connection_broken(const struct turn *t, int error)
{
    if (cancel_asked(t->x->cancel))
        return cancelled();
    return fail(GPUREST_E_CONNECT, "see the log of the service and of proxies in front of it", "the connection broke in %s %.200s: %s",
                t->x->method, t->x->path, strerror(error));
}

static void write_head(struct turn *t, const struct target *to)
{
    const struct exchange *x = t->x;

    buf_init(&t->head, REQUEST_HEAD_BYTES_MAX);
    buf_printf(&t->head, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: gpurest-c/%s\r\n", x->method, x->path, to->endpoint.authority,
               gpurest_version());
    if (to->token[0])
        buf_printf(&t->head, "Authorization: Bearer %s\r\n", to->token);
    if (x->content_type)
        buf_printf(&t->head, "Content-Type: %s\r\n", x->content_type);
    if (x->content_type || strcmp(x->method, "POST") == 0 || strcmp(x->method, "PUT") == 0)
        buf_printf(&t->head, "Content-Length: %llu\r\n", (unsigned long long)exchange_body_bytes(x));
    buf_add_text(&t->head, x->headers ? x->headers : "");
    buf_add_text(&t->head, "\r\n");
}

/* Collects the data to send next. */
static int fill_vector(const struct turn *t, struct iovec v[PIECES_AT_ONCE], size_t *bytes)
{
    size_t at = t->at;
    int    n = 0;

    *bytes = 0;
    for (size_t i = t->piece; i <= t->x->upload_count && n < PIECES_AT_ONCE && *bytes < TRANSFER_BYTES; i++, at = 0) {
        const char *data = i == 0 ? t->head.data : t->x->upload[i - 1].data;
        size_t      left = (i == 0 ? t->head.bytes : t->x->upload[i - 1].bytes) - at;
        if (left == 0)
            continue;
        if (left > TRANSFER_BYTES - *bytes)
            left = TRANSFER_BYTES - *bytes;
        v[n].iov_base = (void *)(uintptr_t)(data + at);
        v[n++].iov_len = left;
        *bytes += left;
    }
    return n;
}

/* Notes `bytes` as sent; returns how many belong to the body. */
static size_t note_sent(struct turn *t, size_t bytes)
{
    size_t of_body = 0;

    while (t->piece <= t->x->upload_count) {
        size_t left = (t->piece == 0 ? t->head.bytes : t->x->upload[t->piece - 1].bytes) - t->at;
        size_t n = bytes < left ? bytes : left;
        of_body += t->piece ? n : 0;
        bytes -= n;
        t->at += n;
        if (n < left)
            break;
        t->piece++;
        t->at = 0;
    }
    t->sending_ended = t->piece > t->x->upload_count;
    return of_body;
}

/* Sends what the socket accepts. *blocked: nothing. */
static gpurest_status send_some(struct turn *t, bool *blocked)
{
    struct iovec  v[PIECES_AT_ONCE];
    struct msghdr m = {.msg_iov = v};
    size_t        bytes;
    ssize_t       n;

    m.msg_iovlen = (size_t)fill_vector(t, v, &bytes);
    *blocked = false;
    n = sendmsg(t->n->fd, &m, MSG_NOSIGNAL);
    if (n >= 0) {
        t->x->sent = true;
        return progress_add(t->x->sending, note_sent(t, (size_t)n));
    }
    *blocked = errno == EAGAIN || errno == EWOULDBLOCK;
    if (!*blocked && errno != EINTR)
        t->sending_ended = t->cut = true; /* an answer may still have come */
    return GPUREST_OK;
}

/* Keeps the first descriptor, closes others. */
static void take_descriptors(struct exchange *x, struct msghdr *m)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        const unsigned char *data = CMSG_DATA(h);
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= h->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int fd;
            memcpy(&fd, data + at, sizeof fd);
            if (x->descriptor < 0)
                x->descriptor = fd;
            else
                close(fd);
        }
    }
}

/* Like recv(); the kernel drops descriptors that are not expected. */
static ssize_t receive_bytes(struct turn *t, void *to, size_t room)
{
    union {
        struct cmsghdr header;
        char           bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    } control;
    struct iovec  line = {to, room};
    struct msghdr m = {.msg_iov = &line, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t       n;

    if (!t->x->takes_descriptor)
        return recv(t->n->fd, to, room, 0);
    n = recvmsg(t->n->fd, &m, MSG_CMSG_CLOEXEC);
    if (n >= 0)
        take_descriptors(t->x, &m);
    return n;
}

/* Receives available data. *blocked: none. */
static gpurest_status receive_some(struct turn *t, bool *blocked)
{
    size_t  room = sizeof t->n->received;
    char   *place = http_answer_place(&t->answer, &room);
    ssize_t n;

    if (place && room > TRANSFER_BYTES)
        room = TRANSFER_BYTES;
    n = receive_bytes(t, place ? place : t->n->received, room);
    *blocked = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (n > 0)
        return place ? http_answer_placed(&t->answer, (size_t)n) : http_answer_feed(&t->answer, t->n->received, (size_t)n);
    if (n < 0 && (*blocked || errno == EINTR))
        return GPUREST_OK;
    if (n < 0 || cancel_asked(t->x->cancel))
        return connection_broken(t, n < 0 ? errno : ECONNRESET);
    return http_answer_closed(&t->answer);
}

static gpurest_status wait_for(struct turn *t, short events)
{
    struct pollfd p = {t->n->fd, events, 0};
    int           n = poll(&p, 1, t->x->idle_ms);

    return n == 0 ? connection_stalled(t) : GPUREST_OK;
}

/* An early answer stops the upload: the service refused it. */
static gpurest_status send_all(struct turn *t)
{
    bool           send_blocked, nothing;
    gpurest_status st = GPUREST_OK;

    while (!st && !t->sending_ended) {
        st = send_some(t, &send_blocked);
        if (st || !send_blocked)
            continue;
        st = receive_some(t, &nothing);
        if (!st && t->x->status >= 200) {
            t->sending_ended = t->cut = true;
            return GPUREST_OK;
        }
        if (!st && nothing)
            st = wait_for(t, POLLIN | POLLOUT);
    }
    return st;
}

static gpurest_status receive_all(struct turn *t)
{
    bool           blocked;
    gpurest_status st = GPUREST_OK;

    while (!st && t->answer.state != ANSWER_DONE) {
        st = receive_some(t, &blocked);
        if (!st && blocked && t->answer.state != ANSWER_DONE)
            st = wait_for(t, POLLIN);
    }
    return st ? st : exchange_end(t->x);
}

static gpurest_status socket_perform(void *connection, const struct target *to, struct exchange *x, bool *keep)
{
    struct turn    t = {.n = connection, .x = x};
    gpurest_status st;

    *keep = false;
    if (!cancel_enter(x->cancel, interrupt_fd, &t.n->fd))
        return cancelled();
    http_answer_init(&t.answer, x);
    write_head(&t, to);
    st = t.head.failed ? fail_invalid("the request's path and header are too long") : send_all(&t);
    if (!st)
        st = receive_all(&t);
    *keep = !st && !t.answer.closes && !t.cut;
    buf_finish(&t.head);
    http_answer_finish(&t.answer);
    cancel_leave(x->cancel);
    return st;
}

const struct transport transport_socket = {
    .connect = socket_connect, .alive = socket_alive, .perform = socket_perform, .close = socket_close};
