/* Files that the service writes at a configured path, possibly in a folder that other users can write: /tmp, or a folder of a group. */
#pragma once

#include "base/problem.h"

/* Opens or creates (O_CREAT among the flags) a regular file that this user owns and that has one hard link. Does not follow a symbolic link in the
 * last path component. Close-on-exec. -1: *why has the reason. */
int own_file_open(const char *path, int flags, unsigned mode, struct problem *why);
/* Atomically replaces the file by a new one with this text. INTERNAL or OUT_OF_MEMORY: nothing has changed. */
enum status own_file_replace(const char *path, struct span text, struct problem *why);
