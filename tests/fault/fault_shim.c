/* Preloaded into the front-end: the n-th call of a C library function fails as the test says, and the time of day jumps.
 * GPUREST_FAULT_CONTROL names the file of struct fault_control. Workers have no environment, so the library is not in them. */
#include "fault_shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void  __libc_free(void *p);

static struct fault_control        nothing; /* until the file is mapped, or if there is none */
static struct fault_control *const none = &nothing;
static struct fault_control       *control = &nothing;

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("GPUREST_FAULT_CONTROL");
    int         fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void       *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    if (at != MAP_FAILED)
        control = at;
}

static int64_t count(int64_t *counter, int64_t by)
{
    return __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

/* True: this call must fail with errno; errno 0: with a short count. */
static bool fails(enum fault_function f)
{
    struct fault_control *c = control;
    int64_t               times = __atomic_load_n(&c->times, __ATOMIC_ACQUIRE), left;

    count(&c->calls[f], 1);
    if (c == none || !times || __atomic_load_n(&c->function, __ATOMIC_RELAXED) != (uint32_t)f)
        return false;
    left = count(&c->countdown, -1);
    if (left > 0 || left <= -times)
        return false;
    count(&c->hits, 1);
    errno = __atomic_load_n(&c->error, __ATOMIC_RELAXED);
    return true;
}

/* ---- memory ---- */

static void *counted(void *p)
{
    if (p)
        count(&control->live, 1);
    return p;
}

static bool refused(void)
{
    if (!fails(FAULT_allocate))
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return refused() ? NULL : counted(__libc_malloc(bytes));
}

void *calloc(size_t n, size_t bytes)
{
    return refused() ? NULL : counted(__libc_calloc(n, bytes));
}

void *realloc(void *old, size_t bytes)
{
    void *p = refused() ? NULL : __libc_realloc(old, bytes);

    return old ? p : counted(p);
}

void *reallocarray(void *old, size_t n, size_t bytes)
{
    size_t whole;

    if (__builtin_mul_overflow(n, bytes, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, whole);
}

void *memalign(size_t alignment, size_t bytes)
{
    return refused() ? NULL : counted(__libc_memalign(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *p = memalign(alignment, bytes);

    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

void free(void *p)
{
    if (p)
        count(&control->live, -1);
    __libc_free(p);
}

/* ---- all others; each looks up the real function at its first call ---- */

#define REAL(name)                                                                                                                         \
    static __typeof__(&name) real;                                                                                                         \
    if (!real)                                                                                                                             \
    real = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name)

/* Whether the call fails; else it may do less than was asked for. */
static bool fails_or_shortens(enum fault_function f, size_t *bytes)
{
    if (!fails(f))
        return false;
    if (!errno && *bytes > 1)
        *bytes /= 2;
    return errno != 0;
}

/* The front-end's own recv(), which comes before this library's, calls this. */
ssize_t recvfrom(int fd, void *restrict to, size_t bytes, int flags, struct sockaddr *restrict from, socklen_t *restrict from_bytes)
{
    REAL(recvfrom);
    if (bytes > 1 && !(flags & MSG_PEEK) && fails_or_shortens(FAULT_recv, &bytes))
        return -1;
    return real(fd, to, bytes, flags, from, from_bytes);
}

ssize_t send(int fd, const void *from, size_t bytes, int flags)
{
    REAL(send);
    if (fails_or_shortens(FAULT_send, &bytes))
        return -1;
    return real(fd, from, bytes, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    REAL(sendmsg);
    return fails(FAULT_sendmsg) ? -1 : real(fd, m, flags);
}

int accept4(int fd, struct sockaddr *restrict a, socklen_t *restrict bytes, int flags)
{
    REAL(accept4);
    return fails(FAULT_accept4) ? -1 : real(fd, a, bytes, flags);
}

/* Delays the call and never fails it: work that the loop does between two turns is then due. */
int shutdown(int fd, int how)
{
    int64_t us = __atomic_load_n(&control->shutdown_us, __ATOMIC_RELAXED);
    int     result;

    REAL(shutdown);
    result = real(fd, how);
    if (us)
        usleep((useconds_t)us);
    return result;
}

int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
    REAL(epoll_wait);
    return fails(FAULT_epoll_wait) ? -1 : real(fd, events, most, ms);
}

int poll(struct pollfd *fds, nfds_t n, int ms)
{
    REAL(poll);
    return fails(FAULT_poll) ? -1 : real(fds, n, ms);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    REAL(mmap);
    return fd >= 0 && fails(FAULT_mmap) ? MAP_FAILED : real(at, bytes, protection, flags, fd, offset);
}

int memfd_create(const char *name, unsigned flags)
{
    REAL(memfd_create);
    return fails(FAULT_memfd_create) ? -1 : real(name, flags);
}

int ftruncate(int fd, off_t bytes)
{
    REAL(ftruncate);
    return fails(FAULT_ftruncate) ? -1 : real(fd, bytes);
}

int socketpair(int domain, int type, int protocol, int pair[2])
{
    REAL(socketpair);
    return fails(FAULT_socketpair) ? -1 : real(domain, type, protocol, pair);
}

int pipe2(int ends[2], int flags)
{
    REAL(pipe2);
    return fails(FAULT_pipe2) ? -1 : real(ends, flags);
}

int eventfd(unsigned value, int flags)
{
    int (*real)(unsigned, int) = (int (*)(unsigned, int))(uintptr_t)dlsym(RTLD_NEXT, "eventfd");

    return fails(FAULT_eventfd) ? -1 : real(value, flags);
}

int openat(int folder, const char *path, int flags, ...)
{
    mode_t  mode;
    va_list more;

    REAL(openat);
    va_start(more, flags);
    mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails(FAULT_openat) ? -1 : real(folder, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    mode_t  mode;
    va_list more;

    REAL(open);
    va_start(more, flags);
    mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return fails(FAULT_open) ? -1 : real(path, flags, mode);
}

/* Descriptors that wake threads never fail in practice, nor do memory files; named files and pipes do. */
static bool may_fail(int fd)
{
    struct stat s;

    return fstat(fd, &s) == 0 && ((S_ISREG(s.st_mode) && s.st_nlink > 0) || S_ISFIFO(s.st_mode)) && fd > STDERR_FILENO;
}

ssize_t read(int fd, void *to, size_t bytes)
{
    REAL(read);
    if (may_fail(fd) && fails_or_shortens(FAULT_read, &bytes))
        return -1;
    return real(fd, to, bytes);
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    REAL(write);
    if (may_fail(fd) && fails_or_shortens(FAULT_write, &bytes))
        return -1;
    return real(fd, from, bytes);
}

int fsync(int fd)
{
    REAL(fsync);
    return fails(FAULT_fsync) ? -1 : real(fd);
}

int renameat(int from, const char *old, int to, const char *new)
{
    REAL(renameat);
    return fails(FAULT_renameat) ? -1 : real(from, old, to, new);
}

int unlinkat(int folder, const char *path, int flags)
{
    REAL(unlinkat);
    return fails(FAULT_unlinkat) ? -1 : real(folder, path, flags);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    REAL(mkdirat);
    return fails(FAULT_mkdirat) ? -1 : real(folder, path, mode);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
    REAL(pread);
    return fails_or_shortens(FAULT_pread, &bytes) ? -1 : real(fd, to, bytes, at);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at)
{
    REAL(pwrite);
    return fails_or_shortens(FAULT_pwrite, &bytes) ? -1 : real(fd, from, bytes, at);
}

int posix_fallocate(int fd, off_t at, off_t bytes)
{
    REAL(posix_fallocate);
    return fails(FAULT_posix_fallocate) ? errno : real(fd, at, bytes);
}

int execve(const char *path, char *const argv[], char *const envp[])
{
    REAL(execve);
    return fails(FAULT_execve) ? -1 : real(path, argv, envp);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    REAL(waitpid);
    return fails(FAULT_waitpid) ? -1 : real(pid, status, options);
}

int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attributes, char *const argv[restrict], char *const envp[restrict])
{
    REAL(posix_spawn);
    return fails(FAULT_posix_spawn) ? errno : real(pid, path, actions, attributes, argv, envp);
}

int pthread_create(pthread_t *restrict out, const pthread_attr_t *restrict attributes, void *(*run)(void *), void *restrict argument)
{
    REAL(pthread_create);
    return fails(FAULT_pthread_create) ? errno : real(out, attributes, run, argument);
}

ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
    REAL(getrandom);
    return fails(FAULT_getrandom) ? -1 : real(to, bytes, flags);
}

/* ---- the time of day ---- */

static void move(struct timespec *t)
{
    int64_t ns = t->tv_nsec + __atomic_load_n(&control->wall_offset_ns, __ATOMIC_RELAXED) % 1000000000;

    t->tv_sec += __atomic_load_n(&control->wall_offset_ns, __ATOMIC_RELAXED) / 1000000000 + (ns >= 1000000000) - (ns < 0);
    t->tv_nsec = (long)((ns + 1000000000) % 1000000000);
}

int clock_gettime(clockid_t which, struct timespec *t)
{
    int failed;

    REAL(clock_gettime);
    failed = real(which, t);
    if (!failed && which == CLOCK_REALTIME)
        move(t);
    return failed;
}

time_t time(time_t *out)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}
