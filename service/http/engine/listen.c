/* The sockets that listen. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log/log.h"
#include "http/bounds.h"
#include "http/engine/address.h"
#include "http/engine/internal.h"

enum {
    UNIX_SOCKET_MODE = 0660,
    KEEPALIVE_IDLE_S = 15, /* a connection on which nothing comes is asked whether its other end still exists */
    KEEPALIVE_INTERVAL_S = 5,
    KEEPALIVE_QUESTIONS = 3, /* without an answer to them it is closed */
};

static void set_option(int fd, int level, int name, int value)
{
    if (setsockopt(fd, level, name, &value, sizeof value))
        log_debug("http", "cannot set a socket option: %s", strerror(errno));
}

/* A host default such as bbr costs more than half of the rate on loopback. */
static void set_congestion_control(int fd)
{
    static const char *const preferred[] = {"cubic", "reno"};

    for (size_t i = 0; i < COUNT(preferred); i++)
        if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, preferred[i], (socklen_t)strlen(preferred[i])) == 0)
            return;
}

/* Accepted sockets inherit it. A machine that vanished says nothing; while its request is worked on nobody sends it anything either. */
static void set_keepalive(int fd)
{
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_QUESTIONS);
}

static int open_tcp(const struct addrinfo *a, bool both_families, bool shared)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (shared)
        set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (a->ai_family == AF_INET6)
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, !both_families);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_keepalive(fd);
    set_congestion_control(fd);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static uint16_t *port_of(struct sockaddr *a)
{
    return a->sa_family == AF_INET6 ? &((struct sockaddr_in6 *)(void *)a)->sin6_port : &((struct sockaddr_in *)(void *)a)->sin_port;
}

/* Shared ports would let a second server of the same user join in silently: an exclusive bind tells first. */
static bool port_is_free(const struct addrinfo *a, bool both_families)
{
    int fd = *port_of(a->ai_addr) ? open_tcp(a, both_families, false) : -2;

    if (fd >= 0)
        close(fd);
    return fd != -1;
}

/* The first socket may choose the port; the others join it. */
static bool open_all_tcp(struct listener *l, const struct addrinfo *a, bool both_families, unsigned count, struct inherited *from)
{
    socklen_t bytes = a->ai_addrlen;

    if (inherited_take(from, a->ai_addr, bytes, l->fds, count))
        return true;
    if (!port_is_free(a, both_families))
        return false;
    for (unsigned i = 0; i < count; i++) {
        l->fds[i] = open_tcp(a, both_families, true);
        if (l->fds[i] < 0)
            return false;
        if (i == 0 && getsockname(l->fds[0], a->ai_addr, &bytes))
            return false;
    }
    return true;
}

static void name_tcp(struct listener *l, const struct addrinfo *a)
{
    char host[64] = "?", port[8] = "?";

    getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(l->address, sizeof l->address, a->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static enum status open_tcp_listener(struct listener *l, const char *address, unsigned count, struct inherited *from, struct problem *why)
{
    struct addrinfo *found = NULL;
    bool             any, done;
    int              saved;
    enum status      st = address_resolve(address, true, &found, &any, why);

    if (st)
        return st;
    done = open_all_tcp(l, found, any, count, from);
    saved = errno;
    if (done)
        name_tcp(l, found);
    freeaddrinfo(found);
    if (!done && any && saved == EAFNOSUPPORT) {
        char v4[24];
        snprintf(v4, sizeof v4, "0.0.0.0%s", strrchr(address, ':'));
        return open_tcp_listener(l, v4, count, from, why);
    }
    return done ? STATUS_OK : problem_set(why, STATUS_INVALID_REQUEST, "cannot listen: %s", strerror(saved));
}

/* A name left by a server that died; one that answers is left alone. */
static void remove_stale(const struct sockaddr_un *a)
{
    struct stat what;
    int         fd;

    if (lstat(a->sun_path, &what) || !S_ISSOCK(what.st_mode))
        return;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED)
        unlink(a->sun_path);
    close(fd);
}

static bool open_all_unix(struct listener *l, const struct sockaddr_un *a, unsigned count)
{
    l->fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (l->fds[0] < 0 || bind(l->fds[0], (const struct sockaddr *)a, sizeof *a))
        return false;
    l->is_unix = l->owns_name = true;
    if (fchmodat(AT_FDCWD, a->sun_path, UNIX_SOCKET_MODE, AT_SYMLINK_NOFOLLOW) || listen(l->fds[0], LISTEN_BACKLOG))
        return false;
    for (unsigned i = 1; i < count; i++) {
        l->fds[i] = fcntl(l->fds[0], F_DUPFD_CLOEXEC, 0);
        if (l->fds[i] < 0)
            return false;
    }
    return true;
}

static enum status open_unix_listener(struct listener *l, const char *address, unsigned count, struct inherited *from, struct problem *why)
{
    struct sockaddr_un a;
    enum status        st = address_unix(address, &a, why);

    if (st)
        return st;
    snprintf(l->address, sizeof l->address, "%s", address);
    l->is_unix = inherited_take(from, (struct sockaddr *)&a, sizeof a, l->fds, count);
    if (l->is_unix)
        return STATUS_OK;
    remove_stale(&a);
    if (!open_all_unix(l, &a, count))
        return problem_set(why, STATUS_INVALID_REQUEST, "cannot listen: %s", strerror(errno));
    return STATUS_OK;
}

enum status listener_open(struct listener *l, const char *address, unsigned fds_count, struct inherited *from, struct problem *why)
{
    bool        is_unix = address_is_unix(address);
    enum status st;

    *l = (struct listener){0};
    for (unsigned i = 0; i < LOOP_THREADS_MAX; i++)
        l->fds[i] = -1;
    st = is_unix ? open_unix_listener(l, address, fds_count, from, why) : open_tcp_listener(l, address, fds_count, from, why);
    if (st)
        listener_close(l);
    return st;
}

void listener_close_fd(struct listener *l, unsigned loop_index)
{
    if (l->fds[loop_index] >= 0)
        close(l->fds[loop_index]);
    l->fds[loop_index] = -1;
}

void listener_close(struct listener *l)
{
    for (unsigned i = 0; i < LOOP_THREADS_MAX; i++)
        listener_close_fd(l, i);
    if (l->owns_name)
        unlink(l->address + strlen(ADDRESS_UNIX_PREFIX));
    l->is_unix = l->owns_name = false;
}
