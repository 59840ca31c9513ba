/* Loaded before a gpurestd that runs under valgrind, whose ignorance it covers. There are no process descriptors: a pipe stands in for each, and a
 * thread closes its other end when the process ends. And /proc/self/exe is valgrind's own program when it is to be started. For measurements only. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESCRIPTORS = 4096 };

static _Atomic pid_t process_of[DESCRIPTORS];

long syscall(long number, ...);

/* The process stays to be reaped by whoever started it. */
static void *watch(void *argument)
{
    uintptr_t packed = (uintptr_t)argument;
    siginfo_t ended;

    while (waitid(P_PID, (id_t)(packed >> 16), &ended, WEXITED | WNOWAIT) && errno == EINTR)
        continue;
    close((int)(packed & 0xffff));
    return NULL;
}

static int open_process(pid_t pid)
{
    pthread_t thread;
    int       ends[2];

    if (pipe(ends))
        return -1;
    if (ends[0] >= DESCRIPTORS || ends[1] >= DESCRIPTORS ||
        pthread_create(&thread, NULL, watch, (void *)((uintptr_t)pid << 16 | (uintptr_t)ends[1]))) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    pthread_detach(thread);
    process_of[ends[0]] = pid;
    return ends[0];
}

long syscall(long number, ...)
{
    static long (*next)(long, ...);
    long    a[6];
    va_list args;

    va_start(args, number);
    for (unsigned i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_pidfd_open)
        return open_process((pid_t)a[0]);
    if (number == SYS_pidfd_send_signal && a[0] >= 0 && a[0] < DESCRIPTORS)
        return kill(process_of[a[0]], (int)a[1]);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const environment[restrict])
{
    static int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);
    char    own[4096];
    ssize_t bytes = strcmp(path, "/proc/self/exe") == 0 ? readlink(path, own, sizeof own - 1) : -1; /* valgrind tells the guest's */

    if (bytes > 0) {
        own[bytes] = '\0';
        path = own;
    }
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "posix_spawn");
    return next(pid, path, actions, attributes, argv, environment);
}
