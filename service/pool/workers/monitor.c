/* One thread that learns of the death of every process, and of what else descriptors tell, when it happens. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log/log.h"
#include "pool/workers/worker_internal.h"

enum { EVENTS_AT_ONCE = 16 };

struct monitor {
    int       epoll_fd;
    int       stop_fd;
    pthread_t thread;
};

static void tell(struct monitor *m, struct watched *w)
{
    epoll_ctl(m->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    w->readable(w);
}

static void *monitor_run(void *context)
{
    struct monitor    *m = context;
    struct epoll_event events[EVENTS_AT_ONCE];

    for (;;) {
        int n = epoll_wait(m->epoll_fd, events, EVENTS_AT_ONCE, -1);

        for (int i = 0; i < n; i++) {
            if (!events[i].data.ptr)
                return NULL;
            tell(m, events[i].data.ptr);
        }
    }
}

static bool watch_fd(struct monitor *m, int fd, void *data)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = data};

    return epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0;
}

enum status monitor_create(struct monitor **out)
{
    struct monitor *m = calloc(1, sizeof *m);

    if (!m)
        return STATUS_OUT_OF_MEMORY;
    m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    m->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (m->epoll_fd < 0 || m->stop_fd < 0 || !watch_fd(m, m->stop_fd, NULL) || pthread_create(&m->thread, NULL, monitor_run, m)) {
        descriptor_close(&m->stop_fd);
        descriptor_close(&m->epoll_fd);
        free(m);
        return STATUS_OUT_OF_MEMORY;
    }
    *out = m;
    return STATUS_OK;
}

void monitor_destroy(struct monitor *m)
{
    const uint64_t one = 1;

    if (!m)
        return;
    if (write(m->stop_fd, &one, sizeof one) != sizeof one)
        log_error("pool", "cannot stop the monitor");
    pthread_join(m->thread, NULL);
    close(m->stop_fd);
    close(m->epoll_fd);
    free(m);
}

enum status monitor_add(struct monitor *m, struct watched *w)
{
    return watch_fd(m, w->fd, w) ? STATUS_OK : STATUS_OUT_OF_MEMORY;
}
