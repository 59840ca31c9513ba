/* Finds the devices by asking a short-lived process, so that this one never loads a driver. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log/log.h"
#include "ipc/device_count.h"
#include "ipc/worker_fds.h"
#include "pool/bounds.h"
#include "pool/devices/devices.h"
#include "pool/workers/worker_internal.h"

enum { ARGUMENT_BYTES = 4096 + 16 };

/* Reads to the end, or the deadline. Whole rows only. */
static unsigned rows_read(int fd, struct device_count *rows, uint64_t deadline_ns)
{
    size_t bytes = 0, room = BACKENDS_MAX * sizeof *rows;

    while (bytes < room) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t      left_ms = deadline_left_ns(deadline_ns) / NS_PER_MS;
        int           ready = left_ms ? poll(&p, 1, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX) : 0;
        ssize_t       n = ready > 0 ? read(fd, (char *)rows + bytes, room - bytes) : ready;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        bytes += (size_t)n;
    }
    return (unsigned)(bytes / sizeof *rows);
}

static enum status count_start(struct pool *p, struct spawned *process, int *answers, int *control)
{
    char  backends[ARGUMENT_BYTES];
    char *argv[3 + DEVICE_ARGUMENTS_MAX + 1] = {(char *)(uintptr_t)p->config.executable, (char *)(uintptr_t) "--role=count", backends};
    int   answers_child = -1, control_child = -1;
    struct spawn_fd fds[2];
    enum status     st;

    snprintf(backends, sizeof backends, "--backends=%.*s", (int)p->config.backends.bytes, p->config.backends.data);
    worker_add_device_arguments(argv, 3, p->config.device_arguments);
    if ((st = spawn_pipe(answers, &answers_child)) || (st = spawn_pipe(&control_child, control)))
        goto done;
    fds[0] = (struct spawn_fd){answers_child, WORKER_COUNT_FD};
    fds[1] = (struct spawn_fd){control_child, WORKER_CONTROL_FD};
    st = spawn_start(p->config.executable, argv, fds, COUNT(fds), process);
done:
    spawn_close(&answers_child);
    spawn_close(&control_child);
    return st;
}

static void device_add(struct pool *p, const char *backend, unsigned index)
{
    struct device_slot *d = &p->devices[p->devices_count];

    if (p->devices_count == DEVICES_MAX)
        return;
    pthread_mutex_init(&d->ask_lock, NULL);
    pthread_mutex_init(&d->settings_lock, NULL);
    d->index = index;
    snprintf(d->public.backend, sizeof d->public.backend, "%.15s", backend);
    snprintf(d->public.id, sizeof d->public.id, "%.15s:%u", backend, index);
    p->devices_count++;
}

/* One device per row and index. The order of rows is the order of preference. */
static void rows_use(struct pool *p, struct device_count *rows, unsigned count, struct problem *why)
{
    for (unsigned i = 0; i < count; i++) {
        struct device_count *r = &rows[i];

        r->backend[sizeof r->backend - 1] = '\0';
        r->why[sizeof r->why - 1] = '\0';
        log_info("pool", "backend %s: %u device%s%s%s", r->backend, r->count, r->count == 1 ? "" : "s", r->why[0] ? ", " : "", r->why);
        for (unsigned k = 0; k < r->count && k < DEVICES_MAX; k++)
            device_add(p, r->backend, k);
    }
    if (p->devices_count == 0)
        problem_set(why, STATUS_DEVICE_NOT_FOUND, "no backend has a device%s%s", count ? ": " : "", count ? rows[0].why : "");
}

enum status devices_discover(struct pool *p, struct problem *why)
{
    struct device_count rows[BACKENDS_MAX] = {0};
    struct spawned      process = {.pid_fd = -1};
    int                 answers = -1, control = -1, ignored;
    unsigned            count = 0;
    enum status         st = count_start(p, &process, &answers, &control);

    if (st) {
        problem_set(why, st, "cannot start the process that counts devices");
    } else {
        count = rows_read(answers, rows, deadline_after_ms(p->config.start_deadline_ms));
        spawn_kill(&process); /* it may hang in a driver; nothing is lost after the end of its answers */
        spawn_reap(&process, &ignored);
        rows_use(p, rows, count, why);
        st = p->devices_count ? STATUS_OK : STATUS_DEVICE_NOT_FOUND;
    }
    spawn_close(&process.pid_fd);
    spawn_close(&answers);
    spawn_close(&control);
    return st;
}
