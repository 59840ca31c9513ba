/* Users, limits and process attributes of workers. */
#include "worker/jail/privileges.h"
#include "worker/bounds.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static bool become_user(uid_t id)
{
    return setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0;
}

/* A user namespace of few numbers has none for each process: EINVAL. */
bool privileges_drop_user(bool *own)
{
    *own = false;
    if (geteuid() != 0)
        return true;
    if (setgroups(0, NULL))
        return false;
    *own = become_user((uid_t)WORKER_UID_FIRST + (uid_t)getpid());
    return *own || (errno == EINVAL && become_user(NOBODY));
}

bool privileges_bind(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
        return false;
    if (getppid() != parent)
        _exit(1); /* it died before we could hear of it */
    return true;
}

bool privileges_limit(int which, rlim_t soft, rlim_t hard)
{
    struct rlimit now = {0, 0};

    if (getrlimit((__rlimit_resource_t)which, &now))
        return false;
    now.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max;
    now.rlim_max = hard < now.rlim_max ? hard : now.rlim_max;
    return setrlimit((__rlimit_resource_t)which, &now) == 0;
}

bool privileges_limit_raise(int which)
{
    struct rlimit limit = {0, 0};

    if (getrlimit((__rlimit_resource_t)which, &limit))
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)which, &limit) == 0;
}

enum status privileges_check(struct problem *why)
{
    uint32_t action = 0x80000000u; /* SECCOMP_RET_KILL_PROCESS */

    if (syscall(SYS_seccomp, 2 /* SECCOMP_GET_ACTION_AVAIL */, 0, &action) == 0)
        return STATUS_OK;
    return problem_set(why, STATUS_NOT_IMPLEMENTED, "this machine has no seccomp to sandbox workers; --allow-no-sandbox starts anyway");
}
