/* Another executable in place of this one: what it is told, and the way back. */
#include "upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log/log.h"
#include "notify.h"

/* "BEFORE:SOCKET,SOCKET,…": numbers of descriptors; BEFORE is empty if nothing comes back. */
#define VARIABLE "GPUREST_UPGRADE"

enum {
    TEXT_BYTES_MAX = 16 * (SOCKETS_INHERITED_MAX + 1),
    ARGUMENTS_MAX = 4096,
    CHECK_MS = 30 * 1000,
    REFUSAL_BYTES_MAX = 4096, /* of what the new executable says */
};

/* ---- taking over ---- */

static bool take_number(struct span *text, char end, int *fd)
{
    struct span word = span_cut(text, end);
    uint64_t    number;

    if (!span_u64(word, &number) || number > INT32_MAX || fcntl((int)number, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    *fd = (int)number;
    return true;
}

void upgrade_begin(struct upgrade *u, char *const argv[])
{
    const char *variable = getenv(VARIABLE);
    struct span text = span_of(variable ? variable : "");

    *u = (struct upgrade){.argv = argv, .before = -1};
    if (span_starts(text, ":"))
        span_cut(&text, ':');
    else if (variable && !take_number(&text, ':', &u->before)) {
        fprintf(stderr, "gpurestd: " VARIABLE " is not what an earlier process has left, and is ignored\n");
        text.bytes = 0;
    }
    while (text.bytes && u->count < SOCKETS_INHERITED_MAX && take_number(&text, ',', &u->inherited[u->count])) {
        u->kept[u->count] = fcntl(u->inherited[u->count], F_DUPFD_CLOEXEC, 0);
        u->count++;
    }
    unsetenv(VARIABLE);
}

void upgrade_done(struct upgrade *u)
{
    for (unsigned i = 0; i < u->count; i++)
        if (u->kept[i] >= 0)
            close(u->kept[i]);
    if (u->before >= 0)
        close(u->before);
    u->count = 0;
    u->before = -1;
}

/* ---- the executable ---- */

/* Where it was found, not what was there then: a link may have been changed, and a file replaced. */
static const char *path_of(const struct upgrade *u)
{
    const char *found = (const char *)(uintptr_t)getauxval(AT_EXECFN);

    return strchr(u->argv[0], '/') || !found ? u->argv[0] : found;
}

/* The same arguments; `more` (optional) before them. The caller frees it. */
static char **arguments(const struct upgrade *u, const char *more)
{
    char   **argv = calloc(ARGUMENTS_MAX, sizeof *argv);
    unsigned count = 0;

    if (!argv)
        return NULL;
    argv[count++] = (char *)(uintptr_t)path_of(u);
    if (more)
        argv[count++] = (char *)(uintptr_t)more;
    for (unsigned i = 1; u->argv[i]; i++) {
        if (count == ARGUMENTS_MAX - 1) {
            free(argv);
            return NULL;
        }
        argv[count++] = u->argv[i];
    }
    return argv;
}

/* ---- before the point of no return ---- */

static int spawn_check(const struct upgrade *u, int output, pid_t *pid)
{
    char                     **argv = arguments(u, "--check-config");
    posix_spawn_file_actions_t files;
    posix_spawnattr_t          attributes;
    sigset_t                   none;
    int                        bad;

    if (!argv)
        return ENOMEM;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    bad = posix_spawnattr_setsigmask(&attributes, &none);
    bad = bad ? bad : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    bad = bad ? bad : posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    bad = bad ? bad : posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    bad = bad ? bad : posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    bad = bad ? bad : posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    bad = bad ? bad : posix_spawn(pid, path_of(u), &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(argv);
    return bad;
}

/* One that hangs is killed. */
static int wait_for(pid_t pid)
{
    int           status = -1, fd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (fd < 0 || poll(&p, 1, CHECK_MS) == 0)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (fd >= 0)
        close(fd);
    return status;
}

static void log_refusal(const struct upgrade *u, int output)
{
    char    said[REFUSAL_BYTES_MAX] = "";
    ssize_t bytes = pread(output, said, sizeof said - 1, 0);

    while (bytes > 0 && said[bytes - 1] == '\n')
        bytes--;
    said[bytes > 0 ? bytes : 0] = '\0';
    log_error("frontend", "not upgraded: %s refuses to start, and this process goes on: %s", path_of(u), said);
}

bool upgrade_check(const struct upgrade *u)
{
    int   output = memfd_create("upgrade", MFD_CLOEXEC), bad, status;
    pid_t pid;

    if (output < 0) {
        log_error("frontend", "not upgraded: %s", strerror(errno));
        return false;
    }
    bad = spawn_check(u, output, &pid);
    status = bad ? -1 : wait_for(pid);
    if (bad)
        log_error("frontend", "not upgraded: %s cannot be executed, and this process goes on: %s", path_of(u), strerror(bad));
    else if (status)
        log_refusal(u, output);
    close(output);
    return status == 0;
}

/* ---- behind it ---- */

static bool leave_open(int fd)
{
    return fd >= 0 && fcntl(fd, F_SETFD, 0) == 0;
}

/* `before`: the executable that comes back if this one cannot serve; -1: none. */
static bool leave_behind(int before, const int sockets[], unsigned count)
{
    struct buf text;
    bool       done;

    buf_init(&text, TEXT_BYTES_MAX);
    if (before >= 0)
        buf_printf(&text, "%d", before);
    buf_add_text(&text, ":");
    for (unsigned i = 0; i < count; i++)
        if (leave_open(sockets[i]))
            buf_printf(&text, "%d,", sockets[i]);
    done = !text.failed && setenv(VARIABLE, text.data, 1) == 0 && notify_hand_over();
    buf_finish(&text);
    return done;
}

void upgrade_execute(const struct upgrade *u, const int sockets[], unsigned count)
{
    char **argv = arguments(u, NULL);
    int    own = open("/proc/self/exe", O_RDONLY);

    if (!argv || own < 0 || !leave_behind(own, sockets, count)) {
        fprintf(stderr, "gpurestd: cannot upgrade: %s\n", strerror(errno));
        return;
    }
    execve(path_of(u), argv, environ);
    fprintf(stderr, "gpurestd: not upgraded: %s cannot be executed, and the present one starts anew: %s\n", path_of(u), strerror(errno));
    fexecve(own, argv, environ);
    fprintf(stderr, "gpurestd: cannot start anew: %s\n", strerror(errno));
    free(argv);
}

void upgrade_go_back(const struct upgrade *u)
{
    char **argv = u->before >= 0 ? arguments(u, NULL) : NULL;

    if (!argv || !leave_behind(-1, u->kept, u->count)) {
        free(argv);
        return;
    }
    fprintf(stderr, "gpurestd: not upgraded: this executable cannot serve, and the one before goes on\n");
    fexecve(u->before, argv, environ);
    fprintf(stderr, "gpurestd: the one before cannot be executed: %s\n", strerror(errno));
    free(argv);
}
