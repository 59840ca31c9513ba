/* Files by Landlock, limits, a user of its own and a list of system calls for all threads. In this order each step is still allowed when
 * its turn comes. */
#include "worker/jail/device_jail.h"
#include "worker/bounds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log/log.h"
#include "ipc/worker_fds.h"
#include "limits.h"
#include "worker/jail/device_filter.h"
#include "worker/jail/landlock.h"
#include "worker/jail/privileges.h"

/* True: go on without it. */
static bool may_miss(const struct device_jail *j, const char *what, struct problem *why)
{
    int error = errno;

    if (j->optional) {
        log_warn("worker", "the worker runs without %s: %s", what, strerror(error));
        return true;
    }
    problem_set(why, STATUS_DEVICE_ERROR, "cannot sandbox the worker: no %s (%s); --allow-no-sandbox starts it anyway", what,
                strerror(error));
    return false;
}

/* ---- files ---- */

/* Read while a cpu device opens, to describe the host. */
static const char *const plain_reads[] = {"/proc/cpuinfo",  "/proc/meminfo",   "/sys/devices/system/cpu",
                                          "/sys/fs/cgroup", "/etc/machine-id", "/etc/localtime"};

/* The process's own, open since before files are guarded, for mapped_bytes(): a kernel that is short of memory forgets the path's inode and makes
 * another one, which a rule does not know. */
static int statm = -1;

/* Where libraries of drivers lie, and what describes devices. Nothing of a caller's or the operator's lies there. */
static const char *const driven_reads[] = {"/usr", "/lib",           "/lib64",    "/opt",      "/nix/store",  "/etc/ld.so.cache",
                                           "/sys", "/etc/localtime", "/dev/null", "/dev/zero", "/dev/urandom"};

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t using_device = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | 1ull << 15; /* device ioctl */

static void allow_reading(int ruleset, const char *const paths[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        landlock_allow(ruleset, paths[i], reading); /* most machines lack some of them */
}

static void allow_device_files(int ruleset, const char *beginning)
{
    DIR           *folder = opendir("/dev");
    struct dirent *e;
    char           path[sizeof "/dev/" + sizeof e->d_name];

    while (folder && (e = readdir(folder))) {
        if (strncmp(e->d_name, beginning, strlen(beginning)) != 0)
            continue;
        snprintf(path, sizeof path, "/dev/%s", e->d_name);
        landlock_allow(ruleset, path, using_device | reading);
    }
    if (folder)
        closedir(folder);
}

/* A driver names its threads by writing to files of its own process. */
static void allow_own_process(int ruleset)
{
    landlock_allow(ruleset, "/proc/self", reading);
    landlock_allow(ruleset, "/proc/self/task", reading | LANDLOCK_ACCESS_FS_WRITE_FILE);
}

/* Without Landlock the list of system calls is the only barrier, with it the second: so its absence is only logged. */
static bool enter_landlock(int ruleset)
{
    bool entered = ruleset >= 0 && landlock_enter(ruleset);

    if (!entered)
        log_info("worker", "this machine has no Landlock: only the seccomp filter guards files");
    return entered;
}

void device_jail_prepare(const struct device_jail *j)
{
    int ruleset;

    if (j->driver || DEVICE_JAIL_RELAXED)
        return;
    statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ruleset = landlock_create(LANDLOCK_AND_PEERS);
    if (ruleset >= 0)
        allow_reading(ruleset, plain_reads, COUNT(plain_reads));
    enter_landlock(ruleset);
}

/* Of the command thread only: the driver's threads existed before. */
static bool guard_files(const struct device_jail *j)
{
    int    ruleset = landlock_create(LANDLOCK_FILES);
    size_t own = 0;

    if (ruleset >= 0) {
        while (j->driver->reads[own])
            own++;
        allow_reading(ruleset, driven_reads, COUNT(driven_reads));
        allow_reading(ruleset, j->driver->reads, own);
        for (const char *const *beginning = j->driver->device_files; *beginning; beginning++)
            allow_device_files(ruleset, *beginning);
        allow_own_process(ruleset);
        if (j->server)
            landlock_allow(ruleset, j->server, using_device | reading);
    }
    return enter_landlock(ruleset);
}

/* ---- limits ---- */

static bool logs_to_a_file(void)
{
    struct stat st;

    return fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode);
}

/* A driver maps and registers at will, and its printf writes to a memory file: it keeps its limits. */
static bool lower_limits(const struct device_jail *j)
{
    /* One number will be free below the socket: that of the shared memory. */
    rlim_t descriptors = j->sharing ? WORKER_SHARE_FD + 1 : 0;
    bool   ok = privileges_limit(RLIMIT_CORE, 0, 0);

    if (j->driver || DEVICE_JAIL_RELAXED)
        return ok;
    if (!logs_to_a_file())
        ok = privileges_limit(RLIMIT_FSIZE, 0, 0) && ok;
    return privileges_limit(RLIMIT_NOFILE, descriptors, descriptors) && privileges_limit(RLIMIT_MEMLOCK, 0, 0) && ok;
}

struct mapped {
    rlim_t addresses, data; /* bytes; data: private and writable */
};

/* False with errno. */
static bool mapped_bytes(struct mapped *out)
{
    const rlim_t       page = (rlim_t)sysconf(_SC_PAGESIZE);
    char               text[160];
    unsigned long long all = 0, data = 0;
    ssize_t            n = pread(statm, text, sizeof text - 1, 0);
    bool               ok;

    text[n > 0 ? n : 0] = '\0';
    ok = sscanf(text, "%llu %*u %*u %*u %*u %llu", &all, &data) == 2;
    *out = (struct mapped){(rlim_t)all * page, (rlim_t)data * page};
    return ok;
}

/* Bounds the host memory of a compromised worker. Private writable memory counts, and the list of system calls allows no other mapping
 * (device_filter.c). The device's addresses, reserved by the terabyte, and memcheck's states do not count: they have a bound of their
 * own, for the page tables. A sanitizer's shadow is terabytes of such memory: there is no limit then. */
static bool limit_memory(const struct device_jail *j)
{
    rlim_t        own = (rlim_t)WORKER_OWN_BYTES + (rlim_t)sysconf(_SC_NPROCESSORS_ONLN) * (rlim_t)WORKER_OWN_BYTES_PER_CPU;
    rlim_t        addresses = 2 * (rlim_t)CPU_ARENA_BYTES_MAX;
    struct mapped now;

    if (DEVICE_JAIL_RELAXED || !j->memory)
        return true;
    if (!mapped_bytes(&now))
        return false;
    own += now.data;
    addresses += now.addresses;
    return privileges_limit(RLIMIT_DATA, own + j->memory, own + j->memory) && privileges_limit(RLIMIT_AS, addresses, addresses);
}

/* As a user that no other process has: the kernel counts processes by user, so without it every process of the service's user would
 * count. */
static bool limit_tasks(const struct device_jail *j, bool own_user)
{
    return j->driver || DEVICE_JAIL_RELAXED || !own_user || privileges_limit(RLIMIT_NPROC, WORKER_TASKS_MAX, WORKER_TASKS_MAX);
}

/* The cpu device needs no descriptors; a driver does. */
static void close_others(const struct device_jail *j)
{
    close(WORKER_SHM_FD); /* mapped by now */
    if (!j->driver)
        syscall(SYS_close_range, (j->sharing ? WORKER_SHARE_FD : WORKER_CONTROL_FD) + 1, ~0u, 0);
}

/* ---- all of it ---- */

static enum device_filter choose_filter(const struct device_jail *j)
{
    if (!j->driver)
        return DEVICE_JAIL_RELAXED ? DEVICE_FILTER_DENY : DEVICE_FILTER_PLAIN;
    if (j->server)
        return DEVICE_FILTER_CLIENT;
    return !j->device_monitor && device_filter_knows(j->driver_build) ? DEVICE_FILTER_DRIVER : DEVICE_FILTER_DENY;
}

static enum worker_sandbox level_of(enum device_filter f)
{
    return f == DEVICE_FILTER_DENY || f == DEVICE_FILTER_CLIENT ? WORKER_SANDBOX_DENY_LIST : WORKER_SANDBOX_ALLOW_LIST;
}

/* Once per device, not for each of its workers. */
static void report_unknown_driver(const struct device_jail *j)
{
    if (j->device_monitor && j->driver && !device_filter_knows(j->driver_build))
        log_warn("worker", "the system calls of driver %s are unknown: workers run with the deny-list",
                 j->driver_build[0] ? j->driver_build : "(unknown)");
}

enum status device_jail_enter(const struct device_jail *j, enum worker_sandbox *level, struct problem *why)
{
    enum device_filter         filter = choose_filter(j);
    enum device_filter_sharing sharing = j->sharing ? FILTER_SHARES_GIVEN : FILTER_SHARES_NOTHING;
    pid_t                      parent = getppid();
    bool                       own_user = false;

    *level = WORKER_SANDBOX_NONE;
    tzset(); /* for the log's time stamps: reads the zone's file now or never */
    report_unknown_driver(j);
    if (!(limit_memory(j) && lower_limits(j)) && !may_miss(j, "resource limits", why))
        return STATUS_DEVICE_ERROR;
    close_others(j);
    if (!j->driver && !privileges_drop_user(&own_user) && !may_miss(j, "user of its own", why))
        return STATUS_DEVICE_ERROR;
    if (!limit_tasks(j, own_user) && !may_miss(j, "limit of threads", why))
        return STATUS_DEVICE_ERROR;
    if (!privileges_bind(parent) && !may_miss(j, "process attributes", why))
        return STATUS_DEVICE_ERROR;
    if (j->driver && !j->device_monitor && !DEVICE_JAIL_RELAXED && guard_files(j) && j->sharing)
        sharing = FILTER_SHARES_MADE;
    if (!device_filter_enter(filter, j->driver_build, sharing, j->makes_code))
        return may_miss(j, "list of system calls", why) ? STATUS_OK : STATUS_DEVICE_ERROR;
    *level = level_of(filter);
    return STATUS_OK;
}
