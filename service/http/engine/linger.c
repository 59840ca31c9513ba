/* Closing with unread input resets the connection and may destroy the answer on its way. So a copy of the socket stays open a
 * little, and what still comes in is dropped. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "http/bounds.h"
#include "http/engine/internal.h"

struct lingering {
    LIST_ENTRY(lingering) listed;
    int      fd;
    size_t   bytes_left;
    uint64_t until_ns;
};

void linger_add(struct loop *loop, int fd)
{
    struct lingering *l = calloc(1, sizeof *l);

    if (!l)
        return;
    l->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (l->fd < 0) {
        free(l);
        return;
    }
    shutdown(l->fd, SHUT_WR);
    l->bytes_left = LINGER_BYTES_MAX;
    l->until_ns = deadline_after_ms(LINGER_MS);
    LIST_INSERT_HEAD(&loop->lingering, l, listed);
    if (l->until_ns < loop->timer_ns)
        loop->timer_ns = l->until_ns;
}

/* True while more may come. */
static bool drop_input(struct lingering *l)
{
    char dropped[16 * 1024];

    while (l->bytes_left) {
        ssize_t n = recv(l->fd, dropped, sizeof dropped, MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (n == 0)
            return false;
        l->bytes_left -= (size_t)n < l->bytes_left ? (size_t)n : l->bytes_left;
    }
    return false;
}

static void linger_drop(struct lingering *l)
{
    LIST_REMOVE(l, listed);
    close(l->fd);
    free(l);
}

void linger_sweep(struct loop *loop, uint64_t now)
{
    for (struct lingering *l = LIST_FIRST(&loop->lingering), *next; l; l = next) {
        next = LIST_NEXT(l, listed);
        if (!drop_input(l) || now >= l->until_ns)
            linger_drop(l);
    }
}

void linger_close_all(struct loop *loop)
{
    while (!LIST_EMPTY(&loop->lingering))
        linger_drop(LIST_FIRST(&loop->lingering));
}
