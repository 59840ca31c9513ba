/* posix_spawn of our own executable: the child inherits only what is listed. */
#include "pool/workers/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/span.h"

/* None holds a secret. Without them a driver in an unusual place is not found, and a choice of GPUs, or of the number of their work queues, is ignored. */
static const char *const passed_on[] = {"LD_LIBRARY_PATH",          "CUDA_VISIBLE_DEVICES",
                                        "CUDA_DEVICE_ORDER",        "CUDA_DEVICE_MAX_CONNECTIONS",
                                        "GPUREST_WORKER_LOG_LEVEL", "GPUREST_WORKER_LOG_FORMAT"};

static void environment_free(char *envp[COUNT(passed_on) + 1])
{
    for (unsigned i = 0; envp[i]; i++)
        free(envp[i]);
}

static bool environment_fill(char *envp[COUNT(passed_on) + 1])
{
    unsigned n = 0;

    memset(envp, 0, (COUNT(passed_on) + 1) * sizeof *envp);
    for (unsigned i = 0; i < COUNT(passed_on); i++) {
        const char *value = getenv(passed_on[i]);

        if (!value)
            continue;
        if (asprintf(&envp[n], "%s=%s", passed_on[i], value) < 0) {
            envp[n] = NULL;
            environment_free(envp);
            return false;
        }
        n++;
    }
    return true;
}

static int attributes_fill(posix_spawnattr_t *a)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(a, &none);
    posix_spawnattr_setsigdefault(a, &all);
    posix_spawnattr_setpgroup(a, 0); /* a terminal's Ctrl-C is not for it */
    return posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

/* Its lines go to the log; without a pipe for them they are lost. Without a log's relay it has our standard error. */
static int give_stderr(posix_spawn_file_actions_t *f, int log)
{
    if (!log_relay_runs())
        return 0;
    return log >= 0 ? posix_spawn_file_actions_adddup2(f, log, STDERR_FILENO)
                    : posix_spawn_file_actions_addopen(f, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
}

static int actions_fill(posix_spawn_file_actions_t *f, const struct spawn_fd *fds, unsigned fds_count, int log)
{
    int bad = posix_spawn_file_actions_addopen(f, STDIN_FILENO, "/dev/null", O_RDONLY, 0), last = STDERR_FILENO;

    bad = bad ? bad : posix_spawn_file_actions_addopen(f, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    bad = bad ? bad : give_stderr(f, log); /* before the others, whose numbers it may occupy */
    for (unsigned i = 0; i < fds_count && !bad; i++) {
        bad = posix_spawn_file_actions_adddup2(f, fds[i].from, fds[i].to);
        last = fds[i].to > last ? fds[i].to : last;
    }
    return bad ? bad : posix_spawn_file_actions_addclosefrom_np(f, last + 1);
}

static int spawn_with(const char *executable, char *const argv[], const struct spawn_fd *fds, unsigned fds_count, char *envp[], int log,
                      pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attributes;
    int                        bad;

    if ((bad = posix_spawn_file_actions_init(&files)))
        return bad;
    if ((bad = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&files);
        return bad;
    }
    bad = attributes_fill(&attributes);
    bad = bad ? bad : actions_fill(&files, fds, fds_count, log);
    bad = bad ? bad : posix_spawn(pid, executable, &files, &attributes, argv, envp);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return bad;
}

/* The role's name, from "--role=name" or "name". */
static struct span role_of(char *const argv[])
{
    static const char flag[] = "--role=";
    struct span       word = span_of(argv[1] ? argv[1] : "");

    return span_starts(word, flag) ? span_from(word, sizeof flag - 1) : word;
}

/* Both -1 where there is no relay, or no descriptors. */
static void log_pipe(int ends[2])
{
    ends[0] = ends[1] = -1;
    if (log_relay_runs() && pipe2(ends, O_CLOEXEC))
        log_warn("pool", "a worker process runs without a log: %s", strerror(errno));
}

enum status spawn_start(const char *executable, char *const argv[], const struct spawn_fd *fds, unsigned fds_count, struct spawned *out)
{
    char *envp[COUNT(passed_on) + 1];
    int   bad, ignored, log[2];

    *out = (struct spawned){.pid_fd = -1};
    if (!environment_fill(envp))
        return STATUS_OUT_OF_MEMORY;
    log_pipe(log);
    bad = spawn_with(executable, argv, fds, fds_count, envp, log[1], &out->pid);
    environment_free(envp);
    descriptor_close(&log[1]);
    if (log[0] >= 0 && !bad)
        log_relay_add(log[0], role_of(argv), out->pid);
    else
        descriptor_close(&log[0]);
    if (bad) {
        log_error("pool", "cannot start a worker process: %s", strerror(bad));
        return bad == ENOMEM || bad == EAGAIN ? STATUS_OUT_OF_MEMORY : STATUS_INTERNAL;
    }
    out->pid_fd = (int)syscall(SYS_pidfd_open, out->pid, 0); /* close-on-exec by itself */
    if (out->pid_fd >= 0)
        return STATUS_OK;
    log_error("pool", "cannot watch a worker process: %s", strerror(errno));
    kill(out->pid, SIGKILL);
    spawn_reap(out, &ignored);
    return STATUS_INTERNAL;
}

static bool raise_fd(int *fd)
{
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, SPAWN_FD_LEAST);

    if (high < 0)
        return false;
    close(*fd);
    *fd = high;
    return true;
}

/* Closes both on failure. */
static enum status raise_both(int ends[2], int *one, int *other)
{
    if (!raise_fd(&ends[0]) || !raise_fd(&ends[1])) {
        close(ends[0]);
        close(ends[1]);
        return STATUS_OUT_OF_MEMORY;
    }
    *one = ends[0];
    *other = ends[1];
    return STATUS_OK;
}

enum status spawn_pipe(int *read_end, int *write_end)
{
    int ends[2];

    return pipe2(ends, O_CLOEXEC) ? STATUS_OUT_OF_MEMORY : raise_both(ends, read_end, write_end);
}

enum status spawn_socket(int type, int *one, int *other)
{
    int ends[2];

    return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) ? STATUS_OUT_OF_MEMORY : raise_both(ends, one, other);
}

void spawn_kill(const struct spawned *s)
{
    syscall(SYS_pidfd_send_signal, s->pid_fd, SIGKILL, NULL, 0);
}

void spawn_reap(struct spawned *s, int *wait_status)
{
    while (waitpid(s->pid, wait_status, 0) < 0 && errno == EINTR)
        continue;
}
