/* Landlock for kernels of any ABI, without headers newer than Debian 12's. A rule set applies to the calling thread and those that it
 * starts. */
#pragma once

#include <linux/landlock.h>
#include <stdbool.h>
#include <stdint.h>

enum landlock_reach {
    LANDLOCK_FILES,     /* every right over files, and TCP */
    LANDLOCK_AND_PEERS, /* also abstract sockets of others and signals to them */
};

/* A rule set that denies all of it, or -1 where the kernel does not offer it. */
int landlock_create(enum landlock_reach reach);
/* `rights`: LANDLOCK_ACCESS_FS_*; for a file only those that files have. False: the path cannot be opened. */
bool landlock_allow(int ruleset, const char *path, uint64_t rights);
/* For the folder that `fd` names. */
bool landlock_allow_at(int ruleset, int fd, uint64_t rights);
/* Needs NO_NEW_PRIVS. Closes the rule set, also on failure. */
bool landlock_enter(int ruleset);
