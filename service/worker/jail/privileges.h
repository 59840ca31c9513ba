/* What a process gives up besides files and system calls, and whether this machine can hold it to that. */
#ifndef GPUREST_WORKER_PRIVILEGES_H
#define GPUREST_WORKER_PRIVILEGES_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/problem.h"

/* As root: becomes a user that no other process is, with all its threads (*own), or nobody where there is none. Else nothing: a service
 * without root has nothing to drop. False with errno when it cannot. */
bool privileges_drop_user(bool *own);
/* No new privileges, no look from outside, death with `parent`, whose end is also seen here. After privileges_drop_user(): a change of user
 * clears the signal. False with errno. */
bool privileges_bind(pid_t parent);
/* Lowers a limit; what is lower already stays. False with errno. */
bool privileges_limit(int which, rlim_t soft, rlim_t hard);
/* Raises a limit to what this process may have of it. False with errno. */
bool privileges_limit_raise(int which);
/* Whether the kernel kills for a forbidden system call. Without it there is no sandbox worth the name: NOT_IMPLEMENTED. */
enum status privileges_check(struct problem *why);

#endif
