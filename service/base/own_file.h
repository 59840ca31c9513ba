/* Files that the service writes by a name that somebody configured, where others may write, too: /tmp, or a folder of a group. */
#ifndef GPUREST_BASE_OWN_FILE_H
#define GPUREST_BASE_OWN_FILE_H

#include "base/problem.h"

/* Opens or makes (O_CREAT among the flags) a regular file of this user's that has no other name, and follows no symbolic link in its last
 * part. Close-on-exec. -1: *why says what is wrong with it. */
int own_file_open(const char *path, int flags, unsigned mode, struct problem *why);
/* A new file of the whole text under that name at once, in place of what had it. INTERNAL or OUT_OF_MEMORY: nothing has changed. */
enum status own_file_replace(const char *path, struct span text, struct problem *why);

#endif
