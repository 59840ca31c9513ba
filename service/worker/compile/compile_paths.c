/* Answers trapped path calls by openat2 with RESOLVE_IN_ROOT. Whatever cannot be opened "does not exist", whether it does or not: a log
 * must not reveal which files a machine has. With a scratch folder that is all there is, and no call that takes a path reaches the kernel. */
#include "worker/compile/compile_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker/compile/scratch.h"

const int compile_paths_calls[] = {
    SYS_openat, SYS_newfstatat, SYS_faccessat,
#ifdef SYS_open
    SYS_open,   SYS_stat,       SYS_lstat,     SYS_access,
#endif
    -1,
};

const int compile_paths_scratch_calls[] = {
    SYS_mkdirat, SYS_unlinkat, SYS_renameat, SYS_renameat2, SYS_readlinkat, SYS_getdents64, SYS_ftruncate,
#ifdef SYS_open
    SYS_mkdir,   SYS_rmdir,    SYS_unlink,   SYS_rename,    SYS_readlink,
#endif
    -1,
};

static int  root = -1;
static bool scratch;

#if defined(__x86_64__)
static uint64_t syscall_argument(const ucontext_t *c, int n)
{
    static const int registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10};

    return (uint64_t)c->uc_mcontext.gregs[registers[n]];
}

static void set_result(ucontext_t *c, long result)
{
    c->uc_mcontext.gregs[REG_RAX] = result;
}
#elif defined(__aarch64__)
static uint64_t syscall_argument(const ucontext_t *c, int n)
{
    return c->uc_mcontext.regs[n];
}

static void set_result(ucontext_t *c, long result)
{
    c->uc_mcontext.regs[0] = (uint64_t)result;
}
#else
#error "registers of this architecture are unknown here"
#endif

static const void *syscall_pointer(const ucontext_t *c, int n)
{
    return (const void *)(uintptr_t)syscall_argument(c, n);
}

static long open_in_root(const void *path, uint64_t flags)
{
    const uint64_t  writing = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    long            fd;

    if (flags & writing)
        return -EACCES;
    fd = root < 0 ? -1 : syscall(SYS_openat2, root, path, &how, sizeof how);
    return fd < 0 ? -ENOENT : fd;
}

static long stat_in_root(const void *path, const void *to)
{
    long fd = open_in_root(path, O_PATH);
    long result;

    if (fd < 0)
        return fd;
    result = syscall(SYS_fstat, fd, to) ? -errno : 0;
    close((int)fd);
    return result;
}

static long access_in_root(const void *path)
{
    long fd = open_in_root(path, O_PATH);

    if (fd < 0)
        return fd;
    close((int)fd);
    return 0;
}

static long stat_at(const ucontext_t *c)
{
    const char *path = syscall_pointer(c, 1);

    /* fstat(fd) of the C library arrives as this call. */
    if ((syscall_argument(c, 3) & AT_EMPTY_PATH) && path[0] == '\0')
        return syscall(SYS_fstat, syscall_argument(c, 0), syscall_argument(c, 2)) ? -errno : 0;
    return stat_in_root(path, syscall_pointer(c, 2));
}

/* ---- with a scratch folder ---- */

static int syscall_fd(const ucontext_t *c, int n)
{
    return (int)syscall_argument(c, n);
}

/* Paths that begin at an open folder are not needed. */
static bool begins_elsewhere(const ucontext_t *c, int n)
{
    const char *path = syscall_pointer(c, n + 1);

    return syscall_fd(c, n) != AT_FDCWD && path[0] != '/';
}

static long scratch_stat_at(const ucontext_t *c)
{
    const char  *path = syscall_pointer(c, 1);
    struct stat *to = (struct stat *)(uintptr_t)syscall_argument(c, 2);

    if ((syscall_argument(c, 3) & AT_EMPTY_PATH) && path[0] == '\0')
        return scratch_stat_fd(syscall_fd(c, 0), to);
    return begins_elsewhere(c, 0) ? -ENOENT : scratch_stat(path, to);
}

static long answer_at(int call, const ucontext_t *c)
{
    if (begins_elsewhere(c, 0))
        return -ENOENT;
    switch (call) {
    case SYS_openat:
        return scratch_open(syscall_pointer(c, 1), syscall_argument(c, 2));
    case SYS_mkdirat:
        return scratch_make_folder(syscall_pointer(c, 1));
    case SYS_unlinkat:
        return scratch_remove(syscall_pointer(c, 1), syscall_argument(c, 2) & AT_REMOVEDIR);
    case SYS_readlinkat:
        return scratch_read_link(syscall_pointer(c, 1));
    case SYS_faccessat:
        return scratch_access(syscall_pointer(c, 1));
    case SYS_renameat:
        return begins_elsewhere(c, 2) ? -EINVAL : scratch_rename(syscall_pointer(c, 1), syscall_pointer(c, 3));
    case SYS_renameat2:
        return begins_elsewhere(c, 2) || syscall_argument(c, 4) ? -EINVAL : scratch_rename(syscall_pointer(c, 1), syscall_pointer(c, 3));
    default:
        return -ENOSYS;
    }
}

static long answer_in_scratch(int call, const ucontext_t *c)
{
    switch (call) {
    case SYS_newfstatat:
        return scratch_stat_at(c);
    case SYS_write:
        return scratch_write(syscall_fd(c, 0), syscall_pointer(c, 1), syscall_argument(c, 2));
    case SYS_ftruncate:
        return scratch_resize(syscall_fd(c, 0), (int64_t)syscall_argument(c, 1));
    case SYS_getdents64:
        return scratch_list(syscall_fd(c, 0), (void *)(uintptr_t)syscall_argument(c, 1), syscall_argument(c, 2));
#ifdef SYS_open
    case SYS_open:
        return scratch_open(syscall_pointer(c, 0), syscall_argument(c, 1));
    case SYS_stat:
    case SYS_lstat:
        return scratch_stat(syscall_pointer(c, 0), (struct stat *)(uintptr_t)syscall_argument(c, 1));
    case SYS_access:
        return scratch_access(syscall_pointer(c, 0));
    case SYS_mkdir:
        return scratch_make_folder(syscall_pointer(c, 0));
    case SYS_rmdir:
    case SYS_unlink:
        return scratch_remove(syscall_pointer(c, 0), call == SYS_rmdir);
    case SYS_rename:
        return scratch_rename(syscall_pointer(c, 0), syscall_pointer(c, 1));
    case SYS_readlink:
        return scratch_read_link(syscall_pointer(c, 0));
#endif
    default:
        return answer_at(call, c);
    }
}

/* ---- all calls ---- */

static long answer_call(int call, const ucontext_t *c)
{
    if (scratch)
        return answer_in_scratch(call, c);
    switch (call) {
    case SYS_openat:
        return open_in_root(syscall_pointer(c, 1), syscall_argument(c, 2));
    case SYS_newfstatat:
        return stat_at(c);
    case SYS_faccessat: /* access() of the C library, where the kernel has no call of that name */
        return access_in_root(syscall_pointer(c, 1));
#ifdef SYS_open
    case SYS_open:
        return open_in_root(syscall_pointer(c, 0), syscall_argument(c, 1));
    case SYS_stat:
    case SYS_lstat:
        return stat_in_root(syscall_pointer(c, 0), syscall_pointer(c, 1));
    case SYS_access:
        return access_in_root(syscall_pointer(c, 0));
#endif
    default:
        return -ENOSYS;
    }
}

static void on_trap(int signal_number, siginfo_t *info, void *context)
{
    int saved = errno;

    (void)signal_number;
    set_result(context, answer_call(info->si_syscall, context));
    errno = saved;
}

void compile_paths_use_scratch(void)
{
    scratch = true;
}

bool compile_paths_install(int root_fd)
{
    struct sigaction act = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    struct open_how  how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    long             probe;

    root = root_fd;
    if (root >= 0) {
        probe = syscall(SYS_openat2, root, "/", &how, sizeof how);
        if (probe < 0)
            return false;
        close((int)probe);
    }
    sigemptyset(&act.sa_mask);
    return sigaction(SIGSYS, &act, NULL) == 0;
}
