/* What a process gives up besides files and system calls, and whether this machine can enforce it. */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "base/problem.h"

/* As root: switches all threads to a user that no other process has (*own), or to nobody where there is none. Not as root: does nothing.
 * False with errno when it cannot. */
bool privileges_drop_user(bool *own);
/* No new privileges, no tracing from outside, death with `parent`, whose earlier end is detected, too. After privileges_drop_user(): a
 * change of user clears the signal. False with errno. */
bool privileges_bind(pid_t parent);
/* Lowers a limit; a lower one stays. False with errno. */
bool privileges_limit(int which, rlim_t soft, rlim_t hard);
/* Raises a limit up to this process's maximum. False with errno. */
bool privileges_limit_raise(int which);
/* Whether the kernel kills for a forbidden system call. Without that there is no sandbox: NOT_IMPLEMENTED. */
enum status privileges_check(struct problem *why);
