/* Other programs that this one starts: the half of platform_posix.c that does that. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/cli.h"
#include "base/platform.h"

enum { CODE_OF_SIGNALS = 128 };

bool programs_supported(void)
{
#ifdef __linux__
    return true;
#else
    return false;
#endif
}

bool program_folder(char *out, size_t room)
{
    ssize_t bytes = readlink("/proc/self/exe", out, room - 1);
    char   *slash;

    if (bytes <= 0)
        return false;
    out[bytes] = '\0';
    slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
    return slash != NULL;
}

/* A program gets the signals as they were before this one took some. */
bool program_set_variable(const char *name, const char *value)
{
    return (value ? setenv(name, value, 1) : unsetenv(name)) == 0;
}

int program_become(char *const *argv)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    execvp(argv[0], argv);
    return errno;
}

static void end_with_parent(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(CODE_CANNOT_RUN);
#else
    (void)parent;
#endif
}

/* In a session of its own, so that Ctrl-C does not end the service before the program that uses it. */
long program_start(char *const *argv, const char *log_path)
{
    pid_t parent = getpid(), id = fork();
    int   log;

    if (id)
        return id;
    setsid();
    end_with_parent(parent);
    log = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
        _exit(CODE_CANNOT_RUN);
    program_become(argv);
    _exit(CODE_CANNOT_RUN);
}

bool program_runs(long id)
{
    return waitpid((pid_t)id, NULL, WNOHANG) == 0;
}

void program_stop(long id)
{
    kill((pid_t)id, SIGTERM);
    while (waitpid((pid_t)id, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* ---- in the foreground ---- */

static const int             passed_on[] = {SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
static volatile sig_atomic_t child;

static void pass_on(int number)
{
    int before = errno;

    if (child)
        kill((pid_t)child, number);
    errno = before;
}

/* The terminal sends Ctrl-C and Ctrl-\\ to the program, too, which decides what they mean. */
static void watch_signals(void)
{
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < COUNT(passed_on); i++)
        sigaction(passed_on[i], &action, NULL);
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
}

static void become_child(char *const *argv)
{
    int error;

    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    error = program_become(argv);
    fprintf(stderr, "gpurest: %s: %s\n", argv[0], strerror(error));
    _exit(error == ENOENT ? CODE_NO_PROGRAM : CODE_CANNOT_RUN);
}

/* A signal that comes before the program's id is known waits until it is, and the program has none of this one's handlers. */
static pid_t start_child(char *const *argv)
{
    sigset_t held, before;
    pid_t    id;

    sigemptyset(&held);
    for (size_t i = 0; i < COUNT(passed_on); i++)
        sigaddset(&held, passed_on[i]);
    sigprocmask(SIG_BLOCK, &held, &before);
    id = fork();
    if (id == 0) {
        for (size_t i = 0; i < COUNT(passed_on); i++)
            signal(passed_on[i], SIG_DFL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        become_child(argv);
    }
    child = id > 0 ? (sig_atomic_t)id : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return id;
}

int program_run(char *const *argv)
{
    int   status = 0;
    pid_t id;

    fflush(NULL);
    watch_signals();
    id = start_child(argv);
    if (id < 0)
        return CODE_CANNOT_RUN;
    while (waitpid(id, &status, 0) < 0 && errno == EINTR)
        continue;
    child = 0;
    return WIFSIGNALED(status) ? CODE_OF_SIGNALS + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A shell that waits for this process learns the same as if it had waited for the program. A core file of this one would tell nothing. */
void program_die_alike(int code)
{
    sigset_t none;

    if (code <= CODE_OF_SIGNALS || code >= CODE_OF_SIGNALS + NSIG)
        return;
#ifdef __linux__
    prctl(PR_SET_DUMPABLE, 0);
#endif
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(code - CODE_OF_SIGNALS, SIG_DFL);
    raise(code - CODE_OF_SIGNALS);
}

/* ---- files ---- */

bool folder_make_temporary(char *out, size_t room)
{
    const char *base = getenv("TMPDIR");
    int         length = snprintf(out, room, "%s/gpurest-XXXXXX", base && base[0] == '/' ? base : "/tmp");

    return length > 0 && (size_t)length < room && mkdtemp(out) != NULL;
}

void folder_delete(const char *path)
{
    DIR           *folder = opendir(path);
    struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}
