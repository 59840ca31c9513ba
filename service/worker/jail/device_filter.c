/* Builds the filters with libseccomp and loads them into every thread at once. */
#include "worker/jail/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/span.h"
#include "ipc/worker_fds.h"

enum row_kind { ROW_CALL, ROW_IOCTL, ROW_SHARING /* an ioctl */ };

static const struct driver_row {
    const char   *driver;
    enum row_kind kind;
    int64_t       number; /* of a call or an ioctl */
} driver_rows[] = {
#define DRIVER_CALL(driver, name)      {driver, ROW_CALL, SCMP_SYS(name)},
#define DRIVER_IOCTL(driver, number)   {driver, ROW_IOCTL, number},
#define DRIVER_SHARING(driver, number) {driver, ROW_SHARING, number},
#include "worker/jail/device_calls_driver.def"
#undef DRIVER_CALL
#undef DRIVER_IOCTL
#undef DRIVER_SHARING
};

static bool is_row_of(const struct driver_row *r, const char *driver, enum row_kind kind)
{
    return r->kind == kind && strcmp(r->driver, driver) == 0;
}

static const int plain_calls[] = {
#define CALL(name) SCMP_SYS(name),
#include "worker/jail/device_calls_plain.def"
#undef CALL
};

static const int denied_calls[] = {
#define DENIED(name) SCMP_SYS(name),
#include "worker/jail/device_calls_denied.def"
#undef DENIED
};

/* The flags of pthread_create(); CLONE_DETACHED, old and unused, is not checked. */
enum {
    THREAD_FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS | CLONE_PARENT_SETTID |
                   CLONE_CHILD_CLEARTID,
};

/* Allowed mappings: private, of no file, and counted against RLIMIT_DATA. Shared memory, growing stacks and huge pages are not counted. */
enum { MAP_LOOKED_AT = MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_HUGETLB };

static const uint64_t thread_mask = ~(uint64_t)CLONE_DETACHED;

static const uint64_t namespaces[] = {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET};

bool device_filter_knows(const char *driver)
{
    for (size_t i = 0; i < COUNT(driver_rows); i++)
        if (is_row_of(&driver_rows[i], driver, ROW_CALL))
            return true;
    return false;
}

static int allow_calls(scmp_filter_ctx c, const int calls[], size_t count)
{
    int bad = 0;

    for (size_t i = 0; i < count; i++)
        bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, calls[i], 0);
    return bad;
}

static int allow_ioctls(scmp_filter_ctx c, const char *driver, enum row_kind kind)
{
    int bad = 0;

    for (size_t i = 0; i < COUNT(driver_rows); i++)
        if (is_row_of(&driver_rows[i], driver, kind))
            bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)driver_rows[i].number));
    return bad;
}

/* Calls that both allow-lists pass only with the right arguments. */
static int allow_abort(scmp_filter_ctx c)
{
    return seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));
}

static int allow_threads(scmp_filter_ctx c)
{
    /* clone3 keeps its flags in memory, which a filter cannot read: refused, the C library uses clone. */
    int bad = seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    return bad | seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, thread_mask, THREAD_FLAGS));
}

/* The socket brings memory that the front-end, or its client, wants mapped. */
static int allow_given(scmp_filter_ctx c)
{
    int bad = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(recvmsg), 1, SCMP_A0(SCMP_CMP_EQ, WORKER_SHARE_FD));

    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(close), 0);
    return bad | seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
                                  SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, 0));
}

/* A driver opens its device again for each descriptor that it makes. */
static int allow_made(scmp_filter_ctx c, const char *driver)
{
    int bad = seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_EQ, O_RDWR | O_CLOEXEC));

    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_GETFD));
    return bad | allow_ioctls(c, driver, ROW_SHARING);
}

static int build_plain(scmp_filter_ctx c, enum device_filter_sharing sharing, bool makes_code)
{
    int bad = allow_abort(c) | allow_threads(c) | allow_calls(c, plain_calls, COUNT(plain_calls));

    if (sharing != FILTER_SHARES_NOTHING)
        bad |= allow_given(c);
    /* malloc reads a setting before it shrinks an arena; the zone's file */
    bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(openat), 0);
    /* OpenBLAS asks for memory near its threads, and does without. */
    bad |= seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(mbind), 0);
    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(read), 1, SCMP_A0(SCMP_CMP_EQ, WORKER_CONTROL_FD));
    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, SCMP_A0(SCMP_CMP_EQ, STDERR_FILENO)); /* the log */
    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
                            SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_LOOKED_AT, MAP_ANONYMOUS));
    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    if (makes_code)
        bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_EQ, PROT_READ | PROT_EXEC));
    return bad;
}

static bool sends(int call)
{
    return call == SCMP_SYS(sendmsg) || call == SCMP_SYS(sendto);
}

/* `action` for calls that lead out of the process. The socket for descriptors leads to the front-end, whatever address a message has. So do
 * a client's sockets to its server: they are connected, and no other socket can be made. */
static int build_denied(scmp_filter_ctx c, uint32_t action, enum device_filter_sharing sharing, bool client)
{
    int bad = 0;

    for (size_t i = 0; i < COUNT(denied_calls); i++) {
        bool spared = client ? sends(denied_calls[i]) : sharing != FILTER_SHARES_NOTHING && denied_calls[i] == SCMP_SYS(sendmsg);

        if (!spared)
            bad |= seccomp_rule_add(c, action, denied_calls[i], 0);
    }
    if (sharing != FILTER_SHARES_NOTHING && !client)
        bad |= seccomp_rule_add(c, action, SCMP_SYS(sendmsg), 1, SCMP_A0(SCMP_CMP_NE, WORKER_SHARE_FD));
    bad |= seccomp_rule_add(c, action, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid()));
    return bad;
}

static int build_deny(scmp_filter_ctx c, enum device_filter_sharing sharing, bool client)
{
    const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
    int            bad = build_denied(c, refuse, sharing, client) | seccomp_rule_add(c, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    bad |= seccomp_rule_add(c, refuse, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    for (size_t i = 0; i < COUNT(namespaces); i++)
        bad |= seccomp_rule_add(c, refuse, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]));
    return bad;
}

static bool is_denied(int call)
{
    for (size_t i = 0; i < COUNT(denied_calls); i++)
        if (denied_calls[i] == call)
            return true;
    return false;
}

static bool is_checked(int call)
{
    return call == SCMP_SYS(clone) || call == SCMP_SYS(clone3) || call == SCMP_SYS(tgkill) || call == SCMP_SYS(ioctl);
}

/* How a worker ends must not depend on whether one ended while the rows were learnt. */
static const int ending_calls[] = {SCMP_SYS(exit),         SCMP_SYS(exit_group),      SCMP_SYS(rt_sigreturn),
                                   SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),  SCMP_SYS(gettid),
                                   SCMP_SYS(getpid),       SCMP_SYS(restart_syscall), SCMP_SYS(write)};

static int build_driver(scmp_filter_ctx c, const char *driver, enum device_filter_sharing sharing)
{
    int bad = build_denied(c, SCMP_ACT_KILL_PROCESS, sharing, false) | allow_abort(c) | allow_threads(c) |
              allow_calls(c, ending_calls, COUNT(ending_calls));

    for (size_t i = 0; i < COUNT(driver_rows); i++) {
        int call = (int)driver_rows[i].number;

        if (is_row_of(&driver_rows[i], driver, ROW_CALL) && !is_denied(call) && !is_checked(call))
            bad |= allow_calls(c, &call, 1);
    }
    if (sharing != FILTER_SHARES_NOTHING)
        bad |= allow_given(c) | seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(sendmsg), 1, SCMP_A0(SCMP_CMP_EQ, WORKER_SHARE_FD));
    if (sharing == FILTER_SHARES_MADE)
        bad |= allow_made(c, driver);
    /* How it waits, and where its own memory comes from, must not depend on the learnt rows either. */
    bad |= allow_calls(c, plain_calls, COUNT(plain_calls));
    bad |= seccomp_rule_add(c, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    return bad | allow_ioctls(c, driver, ROW_IOCTL);
}

static int build_filter(scmp_filter_ctx c, enum device_filter f, const char *driver, enum device_filter_sharing sharing, bool makes_code)
{
    switch (f) {
    case DEVICE_FILTER_PLAIN:
        return build_plain(c, sharing, makes_code);
    case DEVICE_FILTER_DRIVER:
        return build_driver(c, driver, sharing);
    case DEVICE_FILTER_DENY:
    case DEVICE_FILTER_CLIENT:
        return build_deny(c, sharing, f == DEVICE_FILTER_CLIENT);
    }
    return -1;
}

static uint32_t default_action(enum device_filter f)
{
    return f == DEVICE_FILTER_PLAIN ? SCMP_ACT_KILL_PROCESS : f == DEVICE_FILTER_DRIVER ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW;
}

/* Other architectures' calls (32 bits, x32) always kill. */
static int set_attributes(scmp_filter_ctx c)
{
    int bad = seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

    bad |= seccomp_attr_set(c, SCMP_FLTATR_CTL_TSYNC, 1);
    bad |= seccomp_attr_set(c, SCMP_FLTATR_CTL_LOG, 1);
    bad |= seccomp_attr_set(c, SCMP_FLTATR_API_SYSRAWRC, 1); /* the kernel's own errno */
    return bad | seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2);
}

bool device_filter_enter(enum device_filter f, const char *driver, enum device_filter_sharing sharing, bool makes_code)
{
    scmp_filter_ctx c = seccomp_init(default_action(f));
    int             bad;

    if (!c) {
        errno = ENOMEM;
        return false;
    }
    bad = set_attributes(c);
    bad = bad ? bad : build_filter(c, f, driver, sharing, makes_code);
    bad = bad ? bad : seccomp_load(c);
    seccomp_release(c);
    errno = bad < 0 ? -bad : bad;
    return !bad;
}
