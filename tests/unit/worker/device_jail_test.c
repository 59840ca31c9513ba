/* Children lock themselves like device workers and then try what must be forbidden, and what must be allowed. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/worker_fds.h"
#include "limits.h"
#include "worker/bounds.h"
#include "worker/jail/device_filter.h"
#include "worker/jail/device_jail.h"
#include "worker/jail/privileges.h"

enum { DONE = 7, NOT_LOCKED = 98, LARGE_BYTES = 64 * 1024 * 1024, THREADS = 32, CALLS_SCANNED = 600 };

typedef void (*act_fn)(void);

/* ---- children ---- */

static int wait_for(pid_t pid)
{
    int status = 0;

    cr_assert_gt(pid, 0);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static void lock_as(enum device_filter f, const char *driver, enum device_filter_sharing sharing)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || !device_filter_enter(f, driver, sharing, false))
        _exit(NOT_LOCKED);
}

static void lock(enum device_filter f)
{
    lock_as(f, "no such driver", FILTER_SHARES_NOTHING);
}

/* How a child ends that locks itself and then acts. */
static int ends(enum device_filter f, act_fn act)
{
    pid_t pid = fork();

    if (pid == 0) {
        lock(f);
        act();
        _exit(DONE);
    }
    return wait_for(pid);
}

static bool killed(int status)
{
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

static bool done(int status)
{
    return WIFEXITED(status) && WEXITSTATUS(status) == DONE;
}

/* For acts: on a wrong result the child exits with another code than DONE. */
static void need(bool true_)
{
    if (!true_)
        _exit(1);
}

/* A sanitizer's own signal handlers make calls that are not listed. */
static void need_no_sanitizer(void)
{
    if (DEVICE_JAIL_RELAXED)
        cr_skip_test("built with a sanitizer");
}

/* ---- must be forbidden ---- */

static void act_memory_file(void) { syscall(SYS_memfd_create, "x", 0); }
static void act_truncate(void) { syscall(SYS_ftruncate, WORKER_CONTROL_FD, 0); }
static void act_write(void) { (void)!write(STDOUT_FILENO, "x", 1); }
static void act_read(void) { char c; (void)!read(STDIN_FILENO, &c, 1); }
static void act_socket(void) { socket(AF_INET, SOCK_STREAM, 0); }
static void act_execute(void) { execl("/bin/true", "true", (char *)NULL); }
static void act_fork(void) { syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL); }
static void act_trace(void) { ptrace(PTRACE_TRACEME, 0, NULL, NULL); }
static void act_kill_parent(void) { kill(getppid(), 0); }
static void act_kill_init(void) { syscall(SYS_tgkill, 1, 1, SIGTERM); }
static void act_peek(void) { struct iovec v = {&v, 1}; process_vm_readv(1, &v, 1, &v, 1, 0); }
static void act_ring(void) { syscall(SYS_io_uring_setup, 1, NULL); }
static void act_bpf(void) { syscall(SYS_bpf, 0, NULL, 0); }
static void act_unshare(void) { unshare(CLONE_NEWUSER); }
static void act_namespace(void) { syscall(SYS_clone, CLONE_NEWUSER | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, NULL, NULL, NULL, NULL); }
static void act_ioctl(void) { syscall(SYS_ioctl, STDERR_FILENO, 0, 0); }
static void act_attribute(void) { prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }
static void act_map_code(void) { mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void act_map_shared(void) { mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); }
static void act_map_stack(void) { mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0); }
static void act_map_huge(void) { mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0); }
static void act_raise(void) { struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY}; syscall(SYS_prlimit64, 0, RLIMIT_DATA, &most, NULL); }
static void act_map_file(void) { mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, WORKER_CONTROL_FD, 0); }
static void act_make_code(void) { static char page[8192]; mprotect((void *)((uintptr_t)(page + 4095) & ~4095ul), 4096, PROT_READ | PROT_EXEC); }
static void act_duplicate(void) { (void)!dup(STDERR_FILENO); }
#ifdef __x86_64__ /* calls that newer architectures do without */
static void act_open(void) { syscall(SYS_open, "/etc/passwd", O_RDONLY); }
static void act_old_fork(void) { syscall(SYS_fork); }
static void act_x32(void) { syscall(0x40000000 + SYS_getpid); }
#endif

static const struct {
    const char *what;
    act_fn      act;
} forbidden[] = {
    {"a memory file", act_memory_file},
    {"truncating", act_truncate},
    {"writing to another descriptor", act_write},
    {"reading from another descriptor", act_read},
    {"a socket", act_socket},
    {"execve", act_execute},
    {"clone as fork does", act_fork},
    {"ptrace", act_trace},
    {"kill", act_kill_parent},
    {"a signal to another process's thread", act_kill_init},
    {"another process's memory", act_peek},
    {"io_uring", act_ring},
    {"bpf", act_bpf},
    {"unshare", act_unshare},
    {"a thread in a namespace of its own", act_namespace},
    {"ioctl", act_ioctl},
    {"prctl", act_attribute},
    {"mapping code", act_map_code},
    {"mapping a file", act_map_file},
    {"shared memory, which no limit counts", act_map_shared},
    {"a stack that grows, which no limit counts", act_map_stack},
    {"huge pages", act_map_huge},
    {"raising a limit", act_raise},
    {"turning memory into code", act_make_code},
    {"dup", act_duplicate},
#ifdef __x86_64__
    {"open", act_open},
    {"fork", act_old_fork},
    {"an x32 call", act_x32},
#endif
};

Test(device_jail, what_a_worker_without_a_driver_must_not_do_kills_it)
{
    for (size_t i = 0; i < COUNT(forbidden); i++) {
        int status = ends(DEVICE_FILTER_PLAIN, forbidden[i].act);

        cr_expect(killed(status), "%s: wait status %#x", forbidden[i].what, (unsigned)status);
    }
}

static void act_open_refused(void)
{
    need(openat(AT_FDCWD, "/proc/self/maps", O_RDONLY) < 0 && errno == EACCES);
    need(syscall(SYS_mbind, 0, 0, 0, 0, 0, 0) < 0 && errno == EPERM); /* OpenBLAS tries it */
}

Test(device_jail, opening_a_file_is_refused_where_the_c_library_tries_it)
{
    cr_assert(done(ends(DEVICE_FILTER_PLAIN, act_open_refused)));
}

static atomic_bool go;

static void *wait_and_call(void *unused)
{
    while (!atomic_load(&go))
        sched_yield();
    act_socket();
    return unused;
}

Test(device_jail, the_list_holds_for_threads_that_were_there_before)
{
    pid_t pid = fork();

    if (pid == 0) {
        pthread_t thread;

        need(pthread_create(&thread, NULL, wait_and_call, NULL) == 0);
        lock(DEVICE_FILTER_PLAIN);
        atomic_store(&go, true);
        pthread_join(thread, NULL);
        _exit(DONE);
    }
    cr_assert(killed(wait_for(pid)));
}

/* ---- must be allowed ---- */

static void act_memory(void)
{
    char *p = malloc(LARGE_BYTES);

    need(p != NULL);
    memset(p, 1, LARGE_BYTES);
    p = realloc(p, 2 * LARGE_BYTES);
    need(p && p[LARGE_BYTES - 1] == 1);
    free(p);
    p = mmap(NULL, LARGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(p != MAP_FAILED && mprotect(p, 4096, PROT_READ | PROT_WRITE) == 0);
    p[0] = 1;
    need(madvise(p, 4096, MADV_DONTNEED) == 0 && p[0] == 0 && munmap(p, LARGE_BYTES) == 0);
}

static void *use_heap(void *unused)
{
    for (size_t bytes = 16; bytes < 1024 * 1024; bytes *= 2)
        free(malloc(bytes));
    return unused;
}

static void act_threads(void)
{
    pthread_t thread[THREADS];

    for (unsigned i = 0; i < THREADS; i++)
        need(pthread_create(&thread[i], NULL, use_heap, NULL) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        need(pthread_join(thread[i], NULL) == 0);
}

static void act_nap(void)
{
    struct timespec nap = {0, 1000}, now;

    need(nanosleep(&nap, NULL) == 0 && clock_gettime(CLOCK_MONOTONIC, &now) == 0 && sched_yield() == 0);
}

static void act_say(void)
{
    need(write(STDERR_FILENO, "", 0) == 0);
}

static const struct {
    const char *what;
    act_fn      act;
} allowed[] = {{"memory", act_memory}, {"threads", act_threads}, {"time", act_nap}, {"the log", act_say}};

Test(device_jail, memory_threads_time_and_the_log_work_under_every_list)
{
    for (size_t i = 0; i < COUNT(allowed); i++) {
        int plain = ends(DEVICE_FILTER_PLAIN, allowed[i].act), deny = ends(DEVICE_FILTER_DENY, allowed[i].act);

        cr_expect(done(plain), "%s: wait status %#x", allowed[i].what, (unsigned)plain);
        cr_expect(done(deny), "%s: wait status %#x", allowed[i].what, (unsigned)deny);
    }
}

static void act_abort(void)
{
    abort();
}

static void act_crash(void)
{
    raise(SIGSEGV);
}

/* Otherwise the log would report a forbidden call instead of the fault. */
Test(device_jail, a_worker_that_fails_dies_of_its_own_fault)
{
    int aborted;

    need_no_sanitizer();
    aborted = ends(DEVICE_FILTER_PLAIN, act_abort);

    cr_assert(WIFSIGNALED(aborted) && WTERMSIG(aborted) == SIGABRT, "wait status %#x", (unsigned)aborted);
    cr_assert_not(killed(ends(DEVICE_FILTER_PLAIN, act_crash)));
}

/* ---- the scan ---- */

#ifdef __x86_64__
static const int listed[] = {
#define CALL(name) SYS_##name,
#include "worker/jail/device_calls_plain.def"
#undef CALL
    SYS_mprotect, /* without rights: not code */
    SYS_openat,   /* refused */
    SYS_mbind,    /* refused */
    SYS_clone3,   /* likewise */
};

/* ---- a device that compiles ---- */

static void lock_with_code(void)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || !device_filter_enter(DEVICE_FILTER_PLAIN, "", FILTER_SHARES_NOTHING, true))
        _exit(NOT_LOCKED);
}

static int ends_with_code(act_fn act)
{
    pid_t pid = fork();

    if (pid == 0) {
        lock_with_code();
        act();
        _exit(DONE);
    }
    return wait_for(pid);
}

static char *written_page(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    need(page != MAP_FAILED);
    page[0] = (char)0xc3;
    return page;
}

static void act_finish_code(void)
{
    char *page = written_page();

    need(mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 && mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0 && munmap(page, 4096) == 0);
}

static void act_writable_code(void)
{
    mprotect(written_page(), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

static void act_map_writable_code(void)
{
    mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

Test(device_jail, code_is_never_writable_and_executable_at_once)
{
    need_no_sanitizer();
    cr_assert(done(ends_with_code(act_finish_code)));
    cr_assert(killed(ends_with_code(act_writable_code)));
    cr_assert(killed(ends_with_code(act_map_writable_code)));
    cr_assert(killed(ends_with_code(act_map_code)));
    cr_assert(killed(ends(DEVICE_FILTER_PLAIN, act_finish_code)), "without a device that compiles");
}

/* The kernel lets its own probes' calls pass every filter. */
static bool is_probe(int call)
{
    return call == 335 || call == 336;
}

static bool is_listed(int call)
{
    for (size_t i = 0; i < COUNT(listed); i++)
        if (listed[i] == call)
            return true;
    return false;
}

static bool survives(int call)
{
    pid_t pid = fork();

    if (pid == 0) {
        lock(DEVICE_FILTER_PLAIN);
        syscall(call, 0, 0, 0, 0, 0, 0);
        _exit(DONE);
    }
    return !killed(wait_for(pid));
}

Test(device_jail, of_all_system_calls_only_the_listed_ones_survive, .timeout = 120)
{
    size_t survivors = 0;

    need_no_sanitizer();
    for (int call = 0; call < CALLS_SCANNED; call++) {
        bool lives = survives(call);

        survivors += lives && !is_probe(call);
        cr_expect(is_probe(call) || lives == is_listed(call), "system call %d %s", call, lives ? "survives" : "kills");
    }
    cr_assert_eq(survivors, COUNT(listed));
}
#endif

/* ---- the deny-list ---- */

static void act_denied(void)
{
    char *arguments[] = {NULL};

    need(execve("/bin/true", arguments, arguments) < 0 && errno == EPERM);
    need(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
    need(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 && errno == EPERM);
    need(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) < 0 && errno == EPERM);
    need(kill(getppid(), 0) < 0 && errno == EPERM);
    need(syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == EPERM);
    need(unshare(CLONE_NEWNS) < 0 && errno == EPERM);
    need(openat(AT_FDCWD, "/dev/null", O_RDWR) >= 0); /* a driver may */
}

Test(device_jail, the_deny_list_refuses_what_leads_out_and_nothing_else)
{
    cr_assert(done(ends(DEVICE_FILTER_DENY, act_denied)));
}

static void act_unlisted(void)
{
    need(syscall(SYS_getuid) < 0 && errno == EPERM);
    need(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY) < 0 && errno == EPERM);
}

Test(device_jail, a_drivers_list_refuses_what_was_not_learnt_and_kills_for_what_leads_out)
{
    need_no_sanitizer();
    cr_assert(done(ends(DEVICE_FILTER_DRIVER, act_unlisted)));
    cr_assert(killed(ends(DEVICE_FILTER_DRIVER, act_socket)));
    cr_assert(killed(ends(DEVICE_FILTER_DRIVER, act_execute)));
    cr_assert_not(device_filter_knows(""));
    cr_assert_not(device_filter_knows("no such driver"));
}

/* ---- the whole jail ---- */

/* A worker's descriptors of its memory and its parent. */
static void descriptors(int control)
{
    int null = open("/dev/null", O_RDWR);

    need(null >= 0 && dup2(control, 60) >= 0 && dup2(null, WORKER_SHM_FD) >= 0 && dup2(60, WORKER_CONTROL_FD) >= 0);
}

static void lock_and_wait(int control)
{
    struct device_jail  j = {.driver_build = ""};
    enum worker_sandbox level = WORKER_SANDBOX_NONE;
    char                byte;

    descriptors(control);
    device_jail_prepare(&j);
    need(device_jail_enter(&j, &level, NULL) == STATUS_OK);
    need(level == (DEVICE_JAIL_RELAXED ? WORKER_SANDBOX_DENY_LIST : WORKER_SANDBOX_ALLOW_LIST));
    need(read(WORKER_CONTROL_FD, &byte, 1) == 1); /* by now it has been observed from outside */
    _exit(DONE);
}

static void read_proc(pid_t pid, const char *name, char *out, size_t room)
{
    char   path[64];
    size_t n;
    FILE  *f;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    f = fopen(path, "r");
    n = f ? fread(out, 1, room - 1, f) : 0;
    out[n] = '\0';
    if (f)
        fclose(f);
}

/* As root, a user that no other process has; else nobody, as in a user namespace without such a number. */
static bool has_own_user(pid_t pid, const char *status)
{
    char own[96];

    snprintf(own, sizeof own, "\nUid:\t%u\t%u\t%u\t%u\n", WORKER_UID_FIRST + (unsigned)pid, WORKER_UID_FIRST + (unsigned)pid,
             WORKER_UID_FIRST + (unsigned)pid, WORKER_UID_FIRST + (unsigned)pid);
    return geteuid() != 0 || strstr(status, own) || strstr(status, "\nUid:\t65534\t65534\t65534\t65534\n");
}

static bool is_locked(pid_t pid)
{
    char status[8192], limits[4096];

    read_proc(pid, "status", status, sizeof status);
    read_proc(pid, "limits", limits, sizeof limits);
    return strstr(status, "\nSeccomp:\t2\n") && strstr(status, "\nNoNewPrivs:\t1\n") &&
           has_own_user(pid, status) &&
           strstr(limits, "Max core file size        0                    0 ") &&
           (DEVICE_JAIL_RELAXED || strstr(limits, "Max open files            0                    0 "));
}

Test(device_jail, all_of_it_is_in_force_as_seen_from_outside, .timeout = 180)
{
    int   ends_[2];
    pid_t pid;
    bool  seen = false;

    cr_assert_eq(pipe(ends_), 0);
    pid = fork();
    if (pid == 0)
        lock_and_wait(ends_[0]);
    while (!seen && waitpid(pid, NULL, WNOHANG) == 0) {
        seen = is_locked(pid);
        sched_yield();
    }
    cr_assert(seen, "it ended, or was never locked");
    cr_assert_eq(write(ends_[1], "x", 1), 1);
    cr_assert(done(wait_for(pid)));
}

/* ---- what a hijacked worker can get of the machine ---- */

/* How a child ends that is completely locked, for a device with so much memory, and then acts. */
static int ends_jailed(uint64_t memory, void (*act)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        struct device_jail  j = {.driver_build = "", .memory = memory};
        enum worker_sandbox level = WORKER_SANDBOX_NONE;

        descriptors(STDIN_FILENO);
        device_jail_prepare(&j);
        need(device_jail_enter(&j, &level, NULL) == STATUS_OK);
        act();
        _exit(DONE);
    }
    return wait_for(pid);
}

enum { PIECE_BYTES = 256 * 1024 * 1024 };

static const uint64_t jailed_memory = 1ull << 30;

static uint64_t most_bytes(void)
{
    return jailed_memory + WORKER_OWN_BYTES + (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) * WORKER_OWN_BYTES_PER_CPU;
}

/* Touches none of it: the machine has not that much. */
static void act_map_all(void)
{
    const uint64_t terabyte = 1ull << 40;
    uint64_t       got = 0;
    char          *at;

    need(mmap(NULL, terabyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED && errno == ENOMEM);
    at = mmap(NULL, terabyte, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    need(at != MAP_FAILED); /* addresses are not memory */
    for (; got < terabyte && mprotect(at + got, PIECE_BYTES, PROT_READ | PROT_WRITE) == 0; got += PIECE_BYTES)
        at[got] = 1;
    need(got >= jailed_memory && got <= most_bytes() + PIECE_BYTES);
    need(mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED);
    need(mmap(NULL, 4 * terabyte, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED); /* page tables */
}

Test(device_jail, memory_has_a_bound_whatever_way_it_is_taken)
{
    int status;

    need_no_sanitizer();
    status = ends_jailed(jailed_memory, act_map_all);
    cr_assert(done(status), "wait status %#x", (unsigned)status);
}

static void *sleep_on(void *unused)
{
    struct timespec long_time = {3600, 0};

    nanosleep(&long_time, NULL);
    return unused;
}

static void act_start_threads(void)
{
    pthread_attr_t small;
    pthread_t      thread;
    unsigned       n = 0;

    need(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64 * 1024) == 0);
    while (n <= WORKER_TASKS_MAX && pthread_create(&thread, &small, sleep_on, NULL) == 0)
        n++;
    need(n >= CPU_POOL_THREADS_MAX && n < WORKER_TASKS_MAX);
}

Test(device_jail, threads_have_a_bound_where_the_worker_is_a_user_of_its_own)
{
    int status;

    need_no_sanitizer();
    if (geteuid() != 0)
        cr_skip_test("only root makes workers users of their own");
    status = ends_jailed(jailed_memory, act_start_threads);
    cr_assert(done(status), "wait status %#x", (unsigned)status);
}

/* As in a container whose own filter forbids seccomp. */
static void lose_seccomp(void)
{
    scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);

    need(c && seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(seccomp), 0) == 0 &&
         seccomp_rule_add(c, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_SECCOMP)) == 0 && seccomp_load(c) == 0);
    seccomp_release(c);
}

static int jailed_without_seccomp(bool optional)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct device_jail  j = {.driver_build = "", .optional = optional};
        enum worker_sandbox level = WORKER_SANDBOX_ALLOW_LIST;
        struct problem      why = {0};

        descriptors(STDIN_FILENO);
        lose_seccomp();
        need(privileges_check(&why) == STATUS_NOT_IMPLEMENTED && strstr(why.detail, "--allow-no-sandbox"));
        if (device_jail_enter(&j, &level, &why) != STATUS_OK)
            _exit(strstr(why.detail, "list of system calls") ? 3 : 1);
        need(level == WORKER_SANDBOX_NONE);
        _exit(DONE);
    }
    return wait_for(pid);
}

Test(device_jail, a_machine_without_seccomp_is_refused_unless_that_is_allowed)
{
    int strict = jailed_without_seccomp(false);

    cr_assert(WIFEXITED(strict) && WEXITSTATUS(strict) == 3, "wait status %#x", (unsigned)strict);
    cr_assert(done(jailed_without_seccomp(true)));
}
