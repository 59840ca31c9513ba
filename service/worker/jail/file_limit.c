/* The limits of open files, tested from inside. */
#include "worker/jail/file_limit.h"
#include "worker/bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log/log.h"
#include "worker/jail/privileges.h"

void file_limit_raise(void)
{
    if (!privileges_limit_raise(RLIMIT_NOFILE))
        log_warn("worker", "cannot raise the limit of open files: %s", strerror(errno));
}

/* The machine may have run out of files, too: only opening some shows it. Returns 0, or the error. */
static int open_reserve(void)
{
    int      files[WORKER_FILES_RESERVE];
    unsigned n = 0;
    int      error = 0;

    while (n < WORKER_FILES_RESERVE && (files[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    if (n < WORKER_FILES_RESERVE)
        error = errno;
    while (n > 0)
        close(files[--n]);
    return error == EMFILE || error == ENFILE || error == ENOMEM ? error : 0;
}

bool file_limit_suffices(unsigned limit, struct problem *why)
{
    struct rlimit now = {0, 0};
    int           error = open_reserve();

    if (error)
        problem_set(why, STATUS_OVERLOADED, "a worker cannot open files: %s", strerror(error));
    else if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur < limit)
        problem_set(why, STATUS_OVERLOADED,
                    "a worker may open %llu files, which is not enough to open its device; raise the limit of open files",
                    (unsigned long long)now.rlim_cur);
    else
        return true;
    return false;
}
