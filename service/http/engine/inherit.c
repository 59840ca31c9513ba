/* Sockets that an earlier process has left: those that listen, each with its queue, and connections between two requests. */
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log/log.h"
#include "http/engine/internal.h"

static bool address_of(int fd, struct sockaddr_storage *a)
{
    socklen_t bytes = sizeof *a;

    *a = (struct sockaddr_storage){0};
    return fd >= 0 && getsockname(fd, (struct sockaddr *)a, &bytes) == 0;
}

static bool listens(int fd)
{
    int       on = 0;
    socklen_t bytes = sizeof on;

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &bytes) == 0 && on;
}

static bool is_same_v4(const struct sockaddr_in *a, const struct sockaddr_in *wanted)
{
    return a->sin_addr.s_addr == wanted->sin_addr.s_addr && (!wanted->sin_port || a->sin_port == wanted->sin_port);
}

static bool is_same_v6(const struct sockaddr_in6 *a, const struct sockaddr_in6 *wanted)
{
    return memcmp(&a->sin6_addr, &wanted->sin6_addr, sizeof a->sin6_addr) == 0 && a->sin6_scope_id == wanted->sin6_scope_id &&
           (!wanted->sin6_port || a->sin6_port == wanted->sin6_port);
}

static bool is_at(int fd, const struct sockaddr *wanted)
{
    struct sockaddr_storage a;
    const void             *given = &a, *other = wanted;

    if (!listens(fd) || !address_of(fd, &a) || a.ss_family != wanted->sa_family)
        return false;
    if (a.ss_family == AF_INET)
        return is_same_v4(given, other);
    if (a.ss_family == AF_INET6)
        return is_same_v6(given, other);
    return strcmp(((const struct sockaddr_un *)given)->sun_path, ((const struct sockaddr_un *)other)->sun_path) == 0;
}

unsigned inherited_take(struct inherited *from, struct sockaddr *a, socklen_t bytes, int fds[], unsigned fds_count)
{
    struct sockaddr_storage own;
    unsigned                count = 0;

    for (unsigned i = 0; i < from->count && count < fds_count; i++) {
        if (!is_at(from->fds[i], a))
            continue;
        if (count == 0 && address_of(from->fds[i], &own)) /* the others must have the same port */
            memcpy(a, &own, bytes < sizeof own ? bytes : sizeof own);
        fds[count++] = from->fds[i];
        from->fds[i] = -1;
    }
    for (unsigned i = count; count && i < fds_count; i++)
        fds[i] = fcntl(fds[i % count], F_DUPFD_CLOEXEC, 0);
    return count;
}

unsigned inherited_most(const struct inherited *from)
{
    struct sockaddr_storage a;
    unsigned                most = 0;

    for (unsigned i = 0; i < from->count; i++) {
        unsigned same = 0;

        if (!listens(from->fds[i]) || !address_of(from->fds[i], &a))
            continue;
        for (unsigned k = 0; k < from->count; k++)
            same += is_at(from->fds[k], (const struct sockaddr *)&a);
        most = same > most ? same : most;
    }
    return most < LOOP_THREADS_MAX ? most : LOOP_THREADS_MAX;
}

void inherited_adopt(struct server *s)
{
    unsigned closed = 0;

    for (unsigned i = 0; i < s->inherited.count; i++) {
        int fd = s->inherited.fds[i];

        if (fd < 0)
            continue;
        if (listens(fd)) {
            close(fd);
            closed++;
        } else {
            connection_inherit(&s->loops[i % s->loops_count], fd);
        }
        s->inherited.fds[i] = -1;
    }
    if (closed)
        log_info("http", "sockets of addresses that are no longer listened at are closed: %u", closed);
}
