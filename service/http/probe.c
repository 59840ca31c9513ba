/* Asks a service whether it is well: connects, sends one request, reads the first bytes of the answer. */
#include "http/probe.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/deadline.h"
#include "http/address.h"

static enum status failed(struct problem *why, const char *what)
{
    return problem_set(why, STATUS_NOT_READY, "%s: %s", what, errno == EAGAIN || errno == EINPROGRESS ? "no answer in time" : strerror(errno));
}

/* Linux takes the time-out of sending for connecting, too. */
static int connect_within(const struct sockaddr *a, socklen_t bytes, uint64_t timeout_ms)
{
    struct timeval limit = {.tv_sec = (time_t)(timeout_ms / 1000), .tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000)};
    int            fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int            saved;

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
        connect(fd, a, bytes) == 0)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static enum status connect_tcp(const struct probe_target *t, int *fd, struct problem *why)
{
    struct addrinfo *found;
    bool             any;
    enum status      st = address_resolve(t->address, false, &found, &any, why);

    if (st)
        return st;
    *fd = -1;
    for (const struct addrinfo *a = found; a && *fd < 0; a = a->ai_next)
        *fd = connect_within(a->ai_addr, a->ai_addrlen, t->timeout_ms);
    freeaddrinfo(found);
    return *fd < 0 ? failed(why, "cannot connect") : STATUS_OK;
}

static enum status connect_unix(const struct probe_target *t, int *fd, struct problem *why)
{
    struct sockaddr_un a;
    enum status        st = address_unix(t->address, &a, why);

    if (st)
        return st;
    *fd = connect_within((const struct sockaddr *)&a, sizeof a, t->timeout_ms);
    return *fd < 0 ? failed(why, "cannot connect") : STATUS_OK;
}

enum status probe_take(struct probe_answer *out, size_t bytes, struct problem *why)
{
    static const char head[] = "HTTP/1.1 ";
    struct span       line = {out->text, bytes};
    uint64_t          status;

    out->text[bytes] = '\0';
    if (!span_starts(line, head) || !span_u64(span_first(span_from(line, sizeof head - 1), 3), &status))
        return problem_set(why, STATUS_NOT_READY, "what answers there does not speak HTTP");
    out->status = (unsigned)status;
    return STATUS_OK;
}

static enum status probe_plain(int fd, struct span request, uint64_t deadline, struct probe_answer *out, struct problem *why)
{
    size_t  bytes = 0;
    ssize_t n = send(fd, request.data, request.bytes, MSG_NOSIGNAL);

    if (n != (ssize_t)request.bytes)
        return failed(why, "cannot send");
    while (bytes < sizeof out->text - 1 && deadline_left_ns(deadline)) {
        n = recv(fd, out->text + bytes, sizeof out->text - 1 - bytes, 0);
        if (n < 0)
            return failed(why, "cannot receive");
        if (n == 0)
            break;
        bytes += (size_t)n;
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
    st = is_unix ? connect_unix(t, &fd, why) : connect_tcp(t, &fd, why);
    if (st)
        return st;
    if (t->tls && !is_unix)
        st = probe_tls(fd, (struct span){request, (size_t)n}, out, why);
    else
        st = probe_plain(fd, (struct span){request, (size_t)n}, deadline, out, why);
    close(fd);
    return st;
}
