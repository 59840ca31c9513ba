/* One MPS control daemon and the server that it starts: started, watched, and ended together. They are programs of the driver's vendor that
 * know nothing of us, so a process of ours stands above them: whoever of the three ends, or if the front-end does, all end. */
#include "worker/mps_supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/folder.h"
#include "base/log/log.h"
#include "base/span.h"
#include "ipc/worker_fds.h"
#include "worker/device_worker.h"

enum { PATH_BYTES = 512, CHILDREN_BYTES = 256, START_LOOK_MS = 10, LOOK_MS = 100 };

struct supervisor {
    const char *control, *folder, *visible; /* the last: NULL: as the environment says */
    char        pipe[PATH_BYTES], log[PATH_BYTES], socket[PATH_BYTES];
    pid_t       daemon;
    int         server_fd; /* a pidfd of the server; -1: there is none yet */
    bool        ready;
};

/* ---- the processes below ---- */

/* Up to CHILDREN_BYTES of a file; "" if there is none. NUL bytes become spaces. */
static void read_file(const char *path, char text[CHILDREN_BYTES])
{
    FILE  *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, CHILDREN_BYTES - 1, f) : 0;

    if (f)
        fclose(f);
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : ' ';
    text[n] = '\0';
}

/* Calls look() for each child of a process, of whichever of its threads, until that returns true. True: it did. */
static bool each_child(pid_t parent, bool (*look)(pid_t child))
{
    char           path[PATH_BYTES], text[CHILDREN_BYTES];
    DIR           *tasks;
    struct dirent *e;
    bool           found = false;

    snprintf(path, sizeof path, "/proc/%d/task", (int)parent);
    tasks = opendir(path);
    while (tasks && !found && (e = readdir(tasks))) {
        char *at = text, *end;

        snprintf(path, sizeof path, "/proc/%d/task/%.32s/children", (int)parent, e->d_name);
        read_file(path, text);
        for (long pid = strtol(at, &end, 10); end != at && !found; at = end, pid = strtol(at, &end, 10))
            found = look((pid_t)pid);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

static pid_t found_server;

/* The daemon's child is the server from its exec on. */
static bool is_server(pid_t child)
{
    char path[PATH_BYTES], text[CHILDREN_BYTES];

    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)child);
    read_file(path, text);
    if (strstr(text, "mps-server"))
        found_server = child;
    return found_server != 0;
}

static bool kill_child(pid_t child)
{
    kill(child, SIGKILL);
    return false;
}

/* The daemon first; its children become ours then, for this process reaps orphans below it. */
static void end_all(void)
{
    int ignored;

    do
        each_child(getpid(), kill_child);
    while (waitpid(-1, &ignored, 0) > 0 || errno == EINTR);
}

/* ---- the daemon ---- */

static bool set_environment(const struct supervisor *s)
{
    char *slash = strrchr(s->control, '/'), path[PATH_BYTES + 32];

    if (!slash || s->control[0] != '/')
        return false;
    /* It looks for the server's program there. */
    snprintf(path, sizeof path, "%.*s:/usr/bin:/bin", (int)(slash - s->control), s->control);
    if (s->visible && setenv("CUDA_VISIBLE_DEVICES", s->visible, 1) != 0)
        return false;
    return setenv("PATH", path, 1) == 0 && setenv("CUDA_MPS_PIPE_DIRECTORY", s->pipe, 1) == 0 &&
           setenv("CUDA_MPS_LOG_DIRECTORY", s->log, 1) == 0;
}

/* In the child. */
static void become_daemon(const struct supervisor *s, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(WORKER_EXIT_UNABLE);
    close(MPS_READY_FD);
    close(WORKER_CONTROL_FD);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    execl(s->control, s->control, "-f", (char *)NULL);
    log_error("worker", "cannot run %s: %s", s->control, strerror(errno));
    _exit(WORKER_EXIT_UNABLE);
}

static bool start_daemon(struct supervisor *s)
{
    pid_t parent = getpid();

    s->daemon = fork();
    if (s->daemon == 0)
        become_daemon(s, parent);
    return s->daemon > 0;
}

/* Whether it takes connections. A socket that listens, but for another type of connection, tells that, too. */
static bool accepts_clients(const struct supervisor *s)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int                fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool               yes;

    if (fd < 0 || !span_copy(span_of(s->socket), to.sun_path, sizeof to.sun_path)) {
        close(fd);
        return false;
    }
    yes = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 || errno == EAGAIN || errno == EPROTOTYPE;
    close(fd);
    return yes;
}

static bool report_ready(struct supervisor *s)
{
    s->ready = write(MPS_READY_FD, "r", 1) == 1;
    return s->ready;
}

/* Finds its server on the way. */
static bool daemon_lives(struct supervisor *s)
{
    int wait_status;

    if (waitpid(s->daemon, &wait_status, WNOHANG) != 0) {
        log_warn("worker", "the MPS control daemon ended (%s %d)", WIFEXITED(wait_status) ? "exit code" : "signal",
                 WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : WTERMSIG(wait_status));
        return false;
    }
    if (s->server_fd < 0 && each_child(s->daemon, is_server))
        s->server_fd = (int)syscall(SYS_pidfd_open, found_server, 0);
    return true;
}

/* Until something ends, or the other end of the pipe is closed. */
static void watch(struct supervisor *s)
{
    struct pollfd ends[] = {{.fd = WORKER_CONTROL_FD, .events = POLLIN}, {.fd = -1, .events = POLLIN}};

    while (daemon_lives(s)) {
        ends[1].fd = s->server_fd; /* while negative, it is passed over */
        if (!s->ready && accepts_clients(s) && !report_ready(s))
            return;
        if (poll(ends, COUNT(ends), s->ready && s->server_fd >= 0 ? LOOK_MS : START_LOOK_MS) != 0)
            break;
    }
    if (ends[1].revents)
        log_warn("worker", "the MPS server ended");
}

static bool fill(struct supervisor *s, int argc, char **argv)
{
    s->control = worker_argument(argc, argv, "control");
    s->folder = worker_argument(argc, argv, "folder");
    s->visible = worker_argument(argc, argv, "visible-devices");
    if (!s->control || !s->folder)
        return false;
    return snprintf(s->pipe, sizeof s->pipe, "%s/pipe", s->folder) < (int)sizeof s->pipe &&
           snprintf(s->log, sizeof s->log, "%s/log", s->folder) < (int)sizeof s->log &&
           snprintf(s->socket, sizeof s->socket, "%s/control", s->pipe) < (int)sizeof s->socket;
}

int mps_supervisor_main(int argc, char **argv)
{
    struct supervisor s = {.server_fd = -1};

    log_init("mps", LOG_LEVEL_INFO);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (!fill(&s, argc, argv) || !set_environment(&s) || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || !start_daemon(&s))
        return WORKER_EXIT_UNABLE;
    watch(&s);
    end_all();
    if (!folder_remove(s.folder))
        log_warn("worker", "cannot remove the folder of an MPS server: %s", strerror(errno));
    return EXIT_SUCCESS;
}
