/* Asks a service for its health: connects, sends one request, reads the first bytes of the answer. */
#include "health/probe.h"
#include "health/bounds.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/deadline.h"
#include "http/engine/address.h"

static enum status probe_failed(struct problem *why, const char *what)
{
    return problem_set(why, STATUS_NOT_READY, "%s: %s", what,
                       errno == ETIMEDOUT || errno == EAGAIN ? "no answer in time" : strerror(errno));
}

bool probe_wait(int fd, short events, uint64_t deadline)
{
    struct pollfd p = {.fd = fd, .events = events};
    uint64_t      left_ms;
    int           n;

    do {
        left_ms = deadline_left_ns(deadline) / NS_PER_MS;
        n = left_ms ? poll(&p, 1, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX) : 0;
    } while (n < 0 && errno == EINTR);
    if (n == 0)
        errno = ETIMEDOUT;
    return n > 0;
}

/* What became of a connection that was not made at once; sets errno. */
static bool await_connected(int fd, uint64_t deadline)
{
    int       error = 0;
    socklen_t bytes = sizeof error;

    if (!probe_wait(fd, POLLOUT, deadline) || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes))
        return false;
    errno = error;
    return error == 0;
}

/* connect() to a Unix socket with a full queue fails with EAGAIN and cannot be waited for, so it is retried. */
static int connect_when_there_is_room(int fd, const struct sockaddr *a, socklen_t bytes, uint64_t deadline)
{
    int done;

    while ((done = connect(fd, a, bytes)) < 0 && errno == EAGAIN && deadline_left_ns(deadline))
        poll(NULL, 0, PROBE_RETRY_MS);
    return done;
}

static int connect_within(const struct sockaddr *a, socklen_t bytes, uint64_t deadline)
{
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int saved;

    if (fd < 0)
        return -1;
    if (connect_when_there_is_room(fd, a, bytes, deadline) == 0 ||
        ((errno == EINPROGRESS || errno == EINTR) && await_connected(fd, deadline)))
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static enum status connect_tcp(const struct probe_target *t, uint64_t deadline, int *fd, struct problem *why)
{
    struct addrinfo *found;
    bool             any;
    enum status      st = address_resolve(t->address, false, &found, &any, why);

    if (st)
        return st;
    *fd = -1;
    for (const struct addrinfo *a = found; a && *fd < 0; a = a->ai_next)
        *fd = connect_within(a->ai_addr, a->ai_addrlen, deadline);
    freeaddrinfo(found);
    return *fd < 0 ? probe_failed(why, "cannot connect") : STATUS_OK;
}

static enum status connect_unix(const struct probe_target *t, uint64_t deadline, int *fd, struct problem *why)
{
    struct sockaddr_un a;
    enum status        st = address_unix(t->address, &a, why);

    if (st)
        return st;
    *fd = connect_within((const struct sockaddr *)&a, sizeof a, deadline);
    return *fd < 0 ? probe_failed(why, "cannot connect") : STATUS_OK;
}

enum status probe_take(struct probe_answer *out, size_t bytes, struct problem *why)
{
    static const char head[] = "HTTP/1.1 ";
    struct span       line = {out->text, bytes};
    uint64_t          status;

    out->text[bytes] = '\0';
    if (!span_starts(line, head) || !span_u64(span_first(span_from(line, sizeof head - 1), 3), &status))
        return problem_set(why, STATUS_NOT_READY, "the answer is not HTTP");
    out->status = (unsigned)status;
    return STATUS_OK;
}

static bool try_again(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* The request is smaller than any socket's buffer: it is sent at once, or not at all. */
static enum status probe_plain(int fd, struct span request, uint64_t deadline, struct probe_answer *out, struct problem *why)
{
    size_t bytes = 0;

    if (send(fd, request.data, request.bytes, MSG_NOSIGNAL) != (ssize_t)request.bytes)
        return probe_failed(why, "cannot send");
    while (bytes < sizeof out->text - 1) {
        ssize_t n = recv(fd, out->text + bytes, sizeof out->text - 1 - bytes, 0);

        if (n == 0)
            break;
        if (n > 0)
            bytes += (size_t)n;
        else if (!try_again() || !probe_wait(fd, POLLIN, deadline))
            return probe_failed(why, "cannot receive");
    }
    return probe_take(out, bytes, why);
}

enum status probe(const struct probe_target *t, struct probe_answer *out, struct problem *why)
{
    uint64_t    deadline = deadline_after_ms(t->timeout_ms);
    bool        is_unix = address_is_unix(t->address);
    char        request[256];
    int         fd = -1;
    int         n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", t->path);
    enum status st;

    if (n < 0 || (size_t)n >= sizeof request)
        return problem_set(why, STATUS_INVALID_REQUEST, "the path is too long");
    st = is_unix ? connect_unix(t, deadline, &fd, why) : connect_tcp(t, deadline, &fd, why);
    if (st)
        return st;
    if (t->tls && !is_unix)
        st = probe_tls(fd, (struct span){request, (size_t)n}, deadline, out, why);
    else
        st = probe_plain(fd, (struct span){request, (size_t)n}, deadline, out, why);
    close(fd);
    return st;
}
