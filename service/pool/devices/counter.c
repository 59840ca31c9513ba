/* Devices are counted by a short-lived process, so that this one never loads a driver. */
#include "pool/devices/counter.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/descriptor.h"
#include "base/log/log.h"
#include "ipc/worker_fds.h"
#include "pool/workers/worker_internal.h"

enum { ARGUMENT_BYTES = 4096 + 16 };

static enum status counter_spawn(struct device_counter *c, const struct pool_config *config, const char *visible)
{
    char  backends[ARGUMENT_BYTES];
    char *argv[3 + DEVICE_ARGUMENTS_MAX + 2] = {(char *)(uintptr_t)config->executable, (char *)(uintptr_t) "--role=count", backends};
    int   answers_child = -1, control_child = -1;
    struct spawn_fd fds[2];
    enum status     st;

    snprintf(backends, sizeof backends, "--backends=%.*s", (int)config->backends.bytes, config->backends.data);
    worker_add_device_arguments(argv, 3, config->device_arguments, visible);
    if ((st = spawn_pipe(&c->answers, &answers_child)) || (st = spawn_pipe(&control_child, &c->control)))
        goto done;
    fds[0] = (struct spawn_fd){answers_child, WORKER_COUNT_FD};
    fds[1] = (struct spawn_fd){control_child, WORKER_CONTROL_FD};
    st = fcntl(c->answers, F_SETFL, O_NONBLOCK) ? STATUS_INTERNAL : spawn_start(config->executable, argv, fds, COUNT(fds), &c->process);
done:
    descriptor_close(&answers_child);
    descriptor_close(&control_child);
    return st;
}

static void forget(struct device_counter *c)
{
    descriptor_close(&c->process.pid_fd);
    descriptor_close(&c->answers);
    descriptor_close(&c->control);
    c->process.pid = 0;
}

enum status counter_start(struct device_counter *c, const struct pool_config *config, const char *visible, struct problem *why)
{
    enum status st;

    *c = (struct device_counter){.process.pid_fd = -1, .answers = -1, .control = -1};
    st = counter_spawn(c, config, visible);
    if (st) {
        forget(c);
        return problem_set(why, st, "cannot start the process that counts devices");
    }
    c->deadline_ns = deadline_after_ms(config->start_deadline_ms);
    return STATUS_OK;
}

static void read_answers(struct device_counter *c)
{
    ssize_t n;

    while (c->bytes < sizeof c->rows && (n = read(c->answers, (char *)c->rows + c->bytes, sizeof c->rows - c->bytes)) > 0)
        c->bytes += (size_t)n;
}

enum status counter_look(struct device_counter *c, struct problem *why)
{
    bool over = descriptor_readable(c->process.pid_fd);
    int  end = 0;

    read_answers(c);
    if (!over && !c->killed && deadline_left_ns(c->deadline_ns) == 0) {
        spawn_kill(&c->process);
        c->killed = true;
    }
    if (!over)
        return STATUS_PENDING;
    spawn_reap(&c->process, &end);
    read_answers(c);
    forget(c);
    if (WIFEXITED(end) && WEXITSTATUS(end) == 0)
        return STATUS_OK;
    if (c->killed)
        return problem_set(why, STATUS_DEVICE_ERROR, "the process that counts devices did not end in time");
    return problem_set(why, STATUS_DEVICE_ERROR, "the process that counts devices failed (%s %d)", WIFEXITED(end) ? "exit code" : "signal",
                       WIFEXITED(end) ? WEXITSTATUS(end) : WTERMSIG(end));
}

void counter_wait(const struct device_counter *c)
{
    struct pollfd p = {.fd = c->process.pid_fd, .events = POLLIN};
    uint64_t      left_ms = c->killed ? UINT64_MAX : deadline_left_ns(c->deadline_ns) / NS_PER_MS + 1;

    poll(&p, 1, left_ms < INT32_MAX ? (int)left_ms : -1);
}

/* A process with a driver wrote them. */
unsigned counter_rows(struct device_counter *c)
{
    unsigned count = (unsigned)(c->bytes / sizeof c->rows[0]);

    for (unsigned i = 0; i < count; i++) {
        struct device_count *r = &c->rows[i];

        r->backend[sizeof r->backend - 1] = '\0';
        r->why[sizeof r->why - 1] = '\0';
        if (r->count > DEVICES_MAX)
            log_warn("pool", "backend %s: of %u devices %d are used", r->backend, r->count, DEVICES_MAX);
        r->count = r->count < DEVICES_MAX ? r->count : DEVICES_MAX;
        for (unsigned k = 0; k < r->count; k++)
            r->uuids[k][DEVICE_UUID_BYTES - 1] = '\0';
    }
    return count;
}

void counter_drop(struct device_counter *c)
{
    int ignored;

    if (!counter_runs(c))
        return;
    spawn_kill(&c->process);
    spawn_reap(&c->process, &ignored);
    forget(c);
}
