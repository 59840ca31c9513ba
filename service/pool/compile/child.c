/* Starts compile workers. A job goes in through a socket, the output comes back through a pipe, and a deadline limits both. */
#include "pool/compile/child.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/files/descriptor.h"
#include "ipc/compile_job.h"

/* The role's name on our executable's command line; main.c and roles.def have it, too. */
static const char ROLE[] = "compile-worker";

enum {
    READ_PIECE_BYTES = 64 * 1024,
    ARGUMENTS_MAX = 7,
};

/* ---- start ---- */

/* NULL-terminated; everything borrowed. */
static void arguments_fill(const struct compile_command *c, const char *more, char *argv[ARGUMENTS_MAX])
{
    unsigned n = 0;

    argv[n++] = c->executable;
    argv[n++] = (char *)(uintptr_t)ROLE;
    if (c->nvrtc_argument)
        argv[n++] = c->nvrtc_argument;
    if (c->include_argument)
        argv[n++] = c->include_argument;
    if (c->allow_no_sandbox)
        argv[n++] = (char *)(uintptr_t) "--allow-no-sandbox";
    if (more)
        argv[n++] = (char *)(uintptr_t)more;
    argv[n] = NULL;
}

enum status compile_child_start(const struct compile_command *c, const char *more, struct compile_child *out)
{
    char           *argv[ARGUMENTS_MAX];
    struct spawn_fd fds[] = {{-1, COMPILE_JOB_FD}, {-1, COMPILE_OUTPUT_FD}};
    enum status     st;

    out->job_fd = out->output_fd = out->stop_fd = -1;
    arguments_fill(c, more, argv);
    st = spawn_socket(SOCK_STREAM, &out->job_fd, &fds[0].from); /* no pipe: writing to a dead worker must not raise SIGPIPE */
    if (!st)
        st = spawn_pipe(&out->output_fd, &fds[1].from);
    if (!st)
        st = spawn_start(c->executable, argv, fds, COUNT(fds), &out->process);
    descriptor_close(&fds[0].from); /* only the worker may keep its ends open */
    descriptor_close(&fds[1].from);
    if (st) {
        descriptor_close(&out->job_fd);
        descriptor_close(&out->output_fd);
    }
    return st;
}

/* ---- wait ---- */

/* Waits until fd is readable or at its end; false at the deadline, and when stop_fd is readable. */
static bool wait_for(int fd, short events, int stop_fd, uint64_t deadline)
{
    struct pollfd p[] = {{.fd = fd, .events = events}, {.fd = stop_fd, .events = POLLIN}};

    for (;;) {
        uint64_t        left_ns = deadline_left_ns(deadline);
        struct timespec left = timespec_of_ns(left_ns);
        int             n = left_ns ? ppoll(p, COUNT(p), &left, NULL) : 0;
        if (n > 0)
            return p[0].revents;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

bool compile_child_send(struct compile_child *c, struct span job, uint64_t deadline)
{
    while (job.bytes) {
        ssize_t n = send(c->job_fd, job.data, job.bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
            job = span_from(job, (size_t)n);
        else if (errno != EINTR && (errno != EAGAIN || !wait_for(c->job_fd, POLLOUT, c->stop_fd, deadline)))
            break;
    }
    descriptor_close(&c->job_fd);
    return job.bytes == 0;
}

enum status compile_child_read(const struct compile_child *c, uint64_t deadline, struct buf *into)
{
    for (;;) {
        char   *at;
        ssize_t n;
        if (!wait_for(c->output_fd, POLLIN, c->stop_fd, deadline))
            return descriptor_readable(c->stop_fd) ? STATUS_DRAINING : STATUS_COMPILE_TIMEOUT;
        at = buf_reserve(into, READ_PIECE_BYTES);
        if (!at)
            return STATUS_COMPILER_CRASHED;
        n = read(c->output_fd, at, READ_PIECE_BYTES);
        if (n == 0)
            return STATUS_OK;
        if (n > 0)
            buf_grew(into, (size_t)n);
        else if (errno != EINTR)
            return STATUS_INTERNAL;
    }
}

int compile_child_end(struct compile_child *c, bool patient, uint64_t deadline)
{
    int state = 0;

    if (!patient || !wait_for(c->process.pid_fd, POLLIN, c->stop_fd, deadline))
        spawn_kill(&c->process);
    spawn_reap(&c->process, &state);
    descriptor_close(&c->process.pid_fd);
    descriptor_close(&c->job_fd);
    descriptor_close(&c->output_fd);
    return state;
}
