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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/deadline.h"
#include "base/files/descriptor.h"
#include "base/log/log.h"
#include "notify.h"

/* "BEFORE:SETTINGS:DRAINS:SOCKET,SOCKET,…": numbers of descriptors, "-" for none; DRAINS is 1 or 0. */
#define VARIABLE "GPUREST_UPGRADE"

enum {
    TEXT_BYTES_MAX = 16 * (SOCKETS_INHERITED_MAX + 3),
    ARGUMENTS_MAX = 4096,
    CHECK_MS = 30 * 1000,
    LOOK_MS = 20,
    REFUSAL_BYTES_MAX = 4096, /* of what the new executable says */
    SETTINGS_BYTES_MAX = 1024 * 1024,
};

/* ---- taking over ---- */

/* A descriptor of that kind; a variable that somebody else has set may have any number. */
static bool take_fd(struct span *text, char end, mode_t kind, int *fd)
{
    struct span word = span_cut(text, end);
    struct stat st;
    uint64_t    number;

    *fd = -1;
    if (span_is(word, "-"))
        return true;
    if (!span_u64(word, &number) || number <= STDERR_FILENO || number > INT32_MAX || fstat((int)number, &st) ||
        (st.st_mode & S_IFMT) != kind || fcntl((int)number, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    *fd = (int)number;
    return true;
}

static void take_sockets(struct upgrade *u, struct span text)
{
    while (text.bytes && u->count < SOCKETS_INHERITED_MAX) {
        int *fd = &u->inherited[u->count];

        if (!take_fd(&text, ',', S_IFSOCK, fd) || *fd < 0)
            continue;
        u->kept[u->count] = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
        u->count++;
    }
}

void upgrade_begin(struct upgrade *u, char *const argv[])
{
    const char *variable = getenv(VARIABLE);
    struct span text = span_of(variable ? variable : "");

    *u = (struct upgrade){.argv = argv, .before = -1, .settings = -1};
    u->is_upgrade = variable && take_fd(&text, ':', S_IFREG, &u->before) && take_fd(&text, ':', S_IFREG, &u->settings);
    if (u->is_upgrade) {
        u->drains = span_is(span_cut(&text, ':'), "1");
        take_sockets(u, text);
    } else if (variable) {
        log_warn("frontend", VARIABLE " is not what an earlier process has left, and is ignored");
    }
    unsetenv(VARIABLE);
}

void upgrade_done(struct upgrade *u)
{
    for (unsigned i = 0; i < u->count; i++)
        descriptor_close(&u->kept[i]);
    u->count = 0;
    descriptor_close(&u->before);
    descriptor_close(&u->settings);
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

/* What it prints, and what it says. */
struct check {
    int   printed, said;
    pid_t pid;
};

static int spawn_check(const struct upgrade *u, struct check *k)
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
    bad = bad ? bad : posix_spawn_file_actions_adddup2(&files, k->printed, STDOUT_FILENO);
    bad = bad ? bad : posix_spawn_file_actions_adddup2(&files, k->said, STDERR_FILENO);
    bad = bad ? bad : posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    bad = bad ? bad : posix_spawn(&k->pid, path_of(u), &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(argv);
    return bad;
}

enum ended { ENDED_WELL, ENDED_BADLY, ENDED_HUNG, ENDED_INTERRUPTED };

/* One that hangs is killed, and so is one that nobody waits for any more. */
static enum ended wait_for(pid_t pid, const struct upgrade_interrupt *interrupt)
{
    int           status = -1, fd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t      until = deadline_after_ms(CHECK_MS);
    enum ended    early = ENDED_WELL;

    while (fd >= 0 && poll(&p, 1, 0) == 0 && early == ENDED_WELL)
        early = interrupt->is_wanted(interrupt->context, LOOK_MS) ? ENDED_INTERRUPTED : deadline_left_ns(until) ? ENDED_WELL : ENDED_HUNG;
    if (fd < 0 || early)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    descriptor_close(&fd);
    return early ? early : status ? ENDED_BADLY : ENDED_WELL;
}

static void log_refusal(const struct upgrade *u, int output)
{
    char    said[REFUSAL_BYTES_MAX] = "";
    ssize_t bytes = pread(output, said, sizeof said - 1, 0);

    while (bytes > 0 && said[bytes - 1] == '\n')
        bytes--;
    said[bytes > 0 ? bytes : 0] = '\0';
    log_error("frontend", "not upgraded: %s refuses to start, and this process goes on: %s", path_of(u),
              bytes > 0 ? said : "it does not say why");
}

/* The sessions are in that folder; and what prints no such line is no gpurestd. */
static bool keeps_state(const struct upgrade *u, int printed, const char *state)
{
    static const char name[] = "state = ";
    char             *text = calloc(1, SETTINGS_BYTES_MAX);
    ssize_t           bytes = text ? pread(printed, text, SETTINGS_BYTES_MAX, 0) : 0;
    struct span       rest = {text, bytes > 0 ? (size_t)bytes : 0}, line = {0};
    bool              same;

    while (rest.bytes && !span_starts(line, name))
        line = span_cut(&rest, '\n');
    same = span_starts(line, name) && span_is(span_from(line, sizeof name - 1), state);
    if (!span_starts(line, name))
        log_error("frontend", "not upgraded: %s does not answer --check-config as gpurestd does, and this process goes on", path_of(u));
    else if (!same)
        log_error("frontend", "not upgraded: the sessions are in --state %s, and the new settings have \"%.*s\"; this process goes on",
                  state, SPAN_ARG(span_from(line, sizeof name - 1)));
    free(text);
    return same;
}

static bool judge(const struct upgrade *u, const struct check *k, enum ended how, const char *state)
{
    switch (how) {
    case ENDED_WELL:
        return keeps_state(u, k->printed, state);
    case ENDED_BADLY:
        log_refusal(u, k->said);
        return false;
    case ENDED_HUNG:
        log_error("frontend", "not upgraded: %s --check-config has not ended after %d s, and this process goes on", path_of(u),
                  CHECK_MS / 1000);
        return false;
    case ENDED_INTERRUPTED:
        return false;
    }
    return false;
}

bool upgrade_check(const struct upgrade *u, const char *state, const struct upgrade_interrupt *interrupt)
{
    struct check k = {.printed = memfd_create("upgrade", MFD_CLOEXEC), .said = memfd_create("upgrade", MFD_CLOEXEC)};
    int          bad = k.printed < 0 || k.said < 0 ? errno : spawn_check(u, &k);
    bool         good = false;

    if (bad)
        log_error("frontend", "not upgraded: %s cannot be executed, and this process goes on: %s", path_of(u), strerror(bad));
    else
        good = judge(u, &k, wait_for(k.pid, interrupt), state);
    descriptor_close(&k.printed);
    descriptor_close(&k.said);
    return good;
}

/* ---- behind it ---- */

static bool leave_open(int fd)
{
    return fd >= 0 && fcntl(fd, F_SETFD, 0) == 0;
}

static void write_fd(struct buf *text, int fd)
{
    if (leave_open(fd))
        buf_printf(text, "%d:", fd);
    else
        buf_add_text(text, "-:");
}

/* `before`: the executable that comes back if the next one cannot serve, with `settings`; -1: none. */
static bool leave_behind(int before, int settings, bool drains, const int sockets[], unsigned count)
{
    struct buf text;
    bool       done;

    buf_init(&text, TEXT_BYTES_MAX);
    write_fd(&text, before);
    write_fd(&text, settings);
    buf_printf(&text, "%d:", drains);
    for (unsigned i = 0; i < count; i++)
        if (leave_open(sockets[i]))
            buf_printf(&text, "%d,", sockets[i]);
    done = !text.failed && setenv(VARIABLE, text.data, 1) == 0 && notify_hand_over();
    buf_finish(&text);
    return done;
}

/* -1: not possible. */
static int keep_settings(const struct config *c)
{
    int   fd = memfd_create("settings", MFD_CLOEXEC), own = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *to = own < 0 ? NULL : fdopen(own, "w");

    if (to) {
        config_print_settings(c, to);
        if (fclose(to) == 0)
            return fd;
    } else {
        descriptor_close(&own);
    }
    descriptor_close(&fd);
    return -1;
}

/* The variable's text stays the environment's. */
static bool use_settings(int settings)
{
    char number[16];

    snprintf(number, sizeof number, "%d", settings);
    return leave_open(settings) && setenv(CONFIG_FORMER, number, 1) == 0;
}

void upgrade_execute(const struct upgrade *u, const struct upgrade_legacy *legacy)
{
    char **argv = arguments(u, NULL);
    int    own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), settings = keep_settings(legacy->settings);

    if (!argv || own < 0 || settings < 0 || !leave_behind(own, settings, legacy->drains, legacy->sockets, legacy->count)) {
        fprintf(stderr, "gpurestd: cannot upgrade: %s\n", strerror(errno));
        return;
    }
    execve(path_of(u), argv, environ);
    fprintf(stderr, "gpurestd: not upgraded: %s cannot be executed, and the present one starts anew: %s\n", path_of(u), strerror(errno));
    if (use_settings(settings) && leave_behind(-1, -1, legacy->drains, legacy->sockets, legacy->count))
        fexecve(own, argv, environ);
    fprintf(stderr, "gpurestd: cannot start anew: %s\n", strerror(errno));
    free(argv);
}

/* It has nobody behind it, so that this ends. */
void upgrade_go_back(const struct upgrade *u)
{
    char **argv = u->before >= 0 ? arguments(u, NULL) : NULL;

    if (!argv || !use_settings(u->settings) || !leave_behind(-1, -1, u->drains, u->kept, u->count)) {
        free(argv);
        return;
    }
    fprintf(stderr, "gpurestd: not upgraded: this executable cannot serve, and the one before goes on\n");
    fexecve(u->before, argv, environ);
    fprintf(stderr, "gpurestd: the one before cannot be executed: %s\n", strerror(errno));
    free(argv);
}
