/* chroot or its stand-in, limits, an own user, Landlock and a system-call list, in the order in which they stay possible. */
#include "worker/compile/compile_jail.h"
#include "worker/bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log/log.h"
#include "ipc/compile_job.h"
#include "limits.h"
#include "worker/compile/compile_paths.h"
#include "worker/compile/scratch.h"
#include "worker/jail/landlock.h"
#include "worker/jail/privileges.h"

enum {
    CPU_SECONDS_MAX = 2 * COMPILE_DEADLINE_MS / 1000, /* the parent kills far earlier; for the case that it cannot */
};

struct jail {
    int  log_fd;      /* standard error as it came */
    int  root_fd;     /* the include folder, O_PATH; -1 = none */
    int  landlock_fd; /* -1 = not offered */
    bool rooted;      /* chroot worked */
    bool trapped;     /* path calls are answered by compile_paths.c */
    bool scratch;     /* ... out of memory alone */
    bool report;
};

static void say_missing(const struct jail *j, const char *what)
{
    if (j->report)
        log_warn("compile", "compile jail goes without %s: %s", what, strerror(errno));
}

/* ---- files ---- */

static void landlock_prepare(struct jail *j)
{
    j->landlock_fd = landlock_create(LANDLOCK_AND_PEERS);
    if (j->landlock_fd < 0) {
        say_missing(j, "Landlock");
        return;
    }
    if (j->root_fd >= 0 && !landlock_allow_at(j->landlock_fd, j->root_fd, LANDLOCK_ACCESS_FS_READ_FILE))
        say_missing(j, "headers (Landlock rule)");
}

static enum status open_root(struct jail *j, const char *include_folder, struct problem *why)
{
    j->root_fd = -1;
    if (!include_folder)
        return STATUS_OK;
    j->root_fd = open(include_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (j->root_fd < 0)
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE, "The folder of CUDA headers cannot be opened");
    return STATUS_OK;
}

/* The files of a scratch folder stand above all other descriptors, and come when these are closed. */
static bool make_scratch(const struct jail *j)
{
    if (!j->scratch)
        return true;
    if (!j->trapped || !scratch_make())
        return false;
    compile_paths_use_scratch();
    return true;
}

/* chroot needs a privilege that a service in a container mostly lacks: then path calls are trapped instead, to the same effect. */
static void enter_root(struct jail *j)
{
    if (j->root_fd >= 0 && fchdir(j->root_fd) == 0 && chroot(".") == 0 && chdir("/") == 0) {
        j->rooted = true;
        return;
    }
    if (chdir("/")) /* where it is must not show in names of files */
        say_missing(j, "a neutral folder");
    j->trapped = compile_paths_install(j->root_fd);
    if (!j->trapped)
        say_missing(j, "a root of its own");
}

/* Afterwards only the job, the output, the log, maybe the root and the Landlock rules are left besides 0, 1, 2: first out of each other's way,
 * then each to its place. */
static void close_others(struct jail *j)
{
    int *const kept[] = {&j->log_fd, &j->root_fd, &j->landlock_fd};
    const int  first = COMPILE_OUTPUT_FD + 1;
    int        next = first;

    if (!j->trapped)
        j->root_fd = -1;
    for (size_t i = 0; i < COUNT(kept); i++)
        if (*kept[i] >= 0)
            *kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, first + (int)COUNT(kept));
    for (size_t i = 0; i < COUNT(kept); i++)
        if (*kept[i] >= 0)
            *kept[i] = dup2(*kept[i], next++);
    syscall(SYS_close_range, next, ~0u, 0);
    log_output(j->log_fd);
    if (j->trapped)
        compile_paths_install(j->root_fd);
}

/* ---- limits and identity ---- */

/* What the process maps already (the library; under a sanitizer, terabytes of shadow) does not count against the compile. */
static rlim_t address_space_max(void)
{
    unsigned long long pages = 0;
    FILE              *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%llu", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)COMPILE_ADDRESS_SPACE_MIB << 20);
}

static void limit_resources(const struct jail *j, rlim_t address_space)
{
    const rlim_t file_bytes = j->scratch ? (rlim_t)COMPILE_SCRATCH_FILE_MIB << 20 : 0;
    const struct {
        int    which;
        rlim_t soft, hard;
    } rows[] = {
        {RLIMIT_CORE, 0, 0},
        {RLIMIT_FSIZE, file_bytes, file_bytes},
        {RLIMIT_AS, address_space, address_space},
        {RLIMIT_CPU, CPU_SECONDS_MAX, CPU_SECONDS_MAX},
        {RLIMIT_NOFILE, COMPILE_FILES_MAX, COMPILE_FILES_MAX},
        {RLIMIT_MEMLOCK, 0, 0},
        {RLIMIT_STACK, (rlim_t)COMPILE_STACK_MIB << 20, (rlim_t)COMPILE_STACK_HARD_MIB << 20},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        if (!privileges_limit(rows[i].which, rows[i].soft, rows[i].hard))
            say_missing(j, "a resource limit");
}

static void guard_files(struct jail *j)
{
    if (j->landlock_fd >= 0 && !landlock_enter(j->landlock_fd)) {
        say_missing(j, "Landlock");
        j->landlock_fd = -1;
    }
}

/* ---- system calls ---- */

static const int calls_allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(close),
    SCMP_SYS(lseek),
    SCMP_SYS(brk),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(futex),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(sysinfo),
    SCMP_SYS(getrusage),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(getcwd),
    SCMP_SYS(fstat),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_yield),
    SCMP_SYS(getrandom),
    SCMP_SYS(pread64),
    SCMP_SYS(sched_get_priority_max),
    SCMP_SYS(sched_get_priority_min),
};

/* Asked without need by what writes files: newer releases of AMD's compiler may. */
static const int calls_refused_with_scratch[] = {
    SCMP_SYS(fallocate), SCMP_SYS(fchmod), SCMP_SYS(chmod), SCMP_SYS(flock), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(faccessat2),
};

/* With a root of the kernel's making these may run; else compile_paths.c answers them. */
static const int calls_reading_paths[] = {SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(newfstatat)};

/* The library asks these without need: it is refused, not killed. */
static const int calls_refused[] = {
    SCMP_SYS(unlink), SCMP_SYS(unlinkat),   SCMP_SYS(mkdir),     SCMP_SYS(mkdirat),    SCMP_SYS(rmdir),
    SCMP_SYS(rename), SCMP_SYS(renameat),   SCMP_SYS(readlink),  SCMP_SYS(readlinkat), SCMP_SYS(ioctl),
    SCMP_SYS(fcntl),  SCMP_SYS(statx),      SCMP_SYS(clone),     SCMP_SYS(fork),       SCMP_SYS(vfork),
    SCMP_SYS(socket), SCMP_SYS(getdents64), SCMP_SYS(setrlimit), SCMP_SYS(prctl),
};

static bool is_scratch_call(int call)
{
    for (const int *c = compile_paths_scratch_calls; *c >= 0; c++)
        if (*c == call)
            return true;
    return false;
}

static int allow_list(const struct jail *j, scmp_filter_ctx c)
{
    const uint32_t allow = SCMP_ACT_ALLOW;
    int            bad = 0;

    for (size_t i = 0; i < COUNT(calls_allowed); i++)
        bad |= seccomp_rule_add(c, allow, calls_allowed[i], 0);
    for (size_t i = 0; i < COUNT(calls_refused); i++)
        if (!j->scratch || !is_scratch_call(calls_refused[i]))
            bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(EACCES), calls_refused[i], 0);
    bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    bad |= seccomp_rule_add(c, allow, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    bad |= seccomp_rule_add(c, allow, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    bad |= seccomp_rule_add(c, allow, SCMP_SYS(prlimit64), 1, SCMP_A0(SCMP_CMP_EQ, 0, 0));
    bad |= seccomp_rule_add(c, allow, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0)); /* abort() */
    return bad;
}

static int allow_reading(scmp_filter_ctx c)
{
    static const unsigned writing[] = {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND};
    const unsigned        all = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
    int                   bad = 0;

    for (size_t i = 0; i < COUNT(calls_reading_paths); i++)
        bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, calls_reading_paths[i], 0);
    bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(open), 0);
    bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(access), 0);
    bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(faccessat), 0);
    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, all, 0));
    for (size_t i = 0; i < COUNT(writing); i++)
        bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, writing[i], writing[i]));
    return bad;
}

static int trap_paths(scmp_filter_ctx c)
{
    int bad = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(openat2), 0);

    for (const int *call = compile_paths_calls; *call >= 0; call++)
        bad |= seccomp_rule_add(c, SCMP_ACT_TRAP, *call, 0);
    return bad;
}

/* What a compiler with a scratch folder writes is counted, but to the log, to which a handler of its crash writes, too. */
static int allow_writing(const struct jail *j, scmp_filter_ctx c)
{
    const scmp_datum_t log = (scmp_datum_t)(j->log_fd >= 0 ? j->log_fd : STDERR_FILENO);
    int                bad = 0;

    if (!j->scratch)
        return seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(write), 0);
    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, SCMP_A0(SCMP_CMP_EQ, log));
    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(write), 2, SCMP_A0(SCMP_CMP_NE, log), SCMP_A3(SCMP_CMP_EQ, SCRATCH_PASS));
    bad |= seccomp_rule_add(c, SCMP_ACT_TRAP, SCMP_SYS(write), 2, SCMP_A0(SCMP_CMP_NE, log), SCMP_A3(SCMP_CMP_NE, SCRATCH_PASS));
    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(ftruncate), 1, SCMP_A2(SCMP_CMP_EQ, SCRATCH_PASS));
    bad |= seccomp_rule_add(c, SCMP_ACT_TRAP, SCMP_SYS(ftruncate), 1, SCMP_A2(SCMP_CMP_NE, SCRATCH_PASS));
    return bad;
}

/* LLVM sets handlers of nearly all signals, and AMD's compiler fails where one cannot be set again: ours of SIGSYS, which answers for the
 * file system, stays without a word. */
static int allow_handlers(scmp_filter_ctx c)
{
    int bad = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(rt_sigaction), 1, SCMP_A0(SCMP_CMP_NE, SIGSYS));

    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(rt_sigaction), 2, SCMP_A0(SCMP_CMP_EQ, SIGSYS), SCMP_A1(SCMP_CMP_EQ, 0));
    bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(0), SCMP_SYS(rt_sigaction), 2, SCMP_A0(SCMP_CMP_EQ, SIGSYS), SCMP_A1(SCMP_CMP_NE, 0));
    return bad;
}

/* No call that takes a path is let through. */
static int trap_scratch(scmp_filter_ctx c)
{
    int bad = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(dup), 0);

    for (size_t i = 0; i < COUNT(calls_refused_with_scratch); i++)
        bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(EACCES), calls_refused_with_scratch[i], 0);
    for (const int *call = compile_paths_calls; *call >= 0; call++)
        bad |= seccomp_rule_add(c, SCMP_ACT_TRAP, *call, 0);
    for (const int *call = compile_paths_scratch_calls; *call >= 0; call++)
        if (*call != SCMP_SYS(ftruncate))
            bad |= seccomp_rule_add(c, SCMP_ACT_TRAP, *call, 0);
    return bad;
}

static bool seccomp_enter(const struct jail *j)
{
    scmp_filter_ctx c = seccomp_init(SCMP_ACT_KILL_PROCESS);
    int             bad;

    if (!c)
        return false;
    bad = seccomp_attr_set(c, SCMP_FLTATR_CTL_TSYNC, 1); /* a thread that a library has started already is held to it, too */
    bad |= allow_list(j, c) | allow_writing(j, c) | allow_handlers(c);
    bad |= j->scratch ? trap_scratch(c) : j->trapped ? trap_paths(c) : allow_reading(c);
    if (!bad)
        bad = seccomp_load(c);
    seccomp_release(c);
    errno = bad ? EPERM : 0;
    return !bad;
}

/* ---- all of it ---- */

/* The compiler's back end writes to descriptor 1 and its last words to 2: none of it may be read as an answer or a log of ours, which goes
 * another way. */
static enum status silence(struct jail *j, struct problem *why)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return problem_set(why, STATUS_INTERNAL, "The null device cannot be opened");
    j->log_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    log_output(j->log_fd);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close(null);
    return STATUS_OK;
}

enum status compile_jail_enter(const struct compile_jail *wanted, struct problem *why)
{
    struct jail j = {.report = wanted->report, .scratch = wanted->scratch};
    pid_t       parent = getppid();
    rlim_t      address_space = address_space_max();
    bool        own;
    enum status st = wanted->optional ? STATUS_OK : privileges_check(why);

    st = st ? st : open_root(&j, wanted->include_folder, why);
    if (st)
        return st;
    tzset(); /* for __TIME__: reads the zone's file now or never */
    landlock_prepare(&j);
    if (silence(&j, why))
        return STATUS_INTERNAL;
    enter_root(&j);
    close_others(&j);
    if (!make_scratch(&j))
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE, "This machine offers no folder in memory for the compiler's temporary files");
    limit_resources(&j, address_space);
    if (!privileges_drop_user(&own))
        say_missing(&j, "a user of its own");
    if (!privileges_bind(parent))
        say_missing(&j, "process attributes");
    guard_files(&j);
    if (!seccomp_enter(&j)) {
        j.trapped = false; /* without the list nothing is trapped */
        if (!wanted->optional || j.scratch)
            return problem_set(why, STATUS_COMPILER_UNAVAILABLE,
                               "This machine offers no way to hold the compiler to a list of system calls");
    }
    if (!wanted->optional && !j.rooted && !j.trapped && j.landlock_fd < 0)
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE, "This machine offers no way to keep the compiler from its files");
    return STATUS_OK;
}
