/* A file-system root without privileges: the kernel hands every path call of this process to a handler (seccomp TRAP), which resolves it
 * as if one folder were "/". */
#pragma once

#include <stdbool.h>

/* The numbers of the calls to trap; each ends with -1. */
extern const int compile_paths_calls[];
extern const int compile_paths_scratch_calls[]; /* besides, where there is a scratch folder */

/* Installs the handler. root_fd stays open and in use for the life of the process; -1: no path exists. False: this machine cannot do it. */
bool compile_paths_install(int root_fd);
/* From now on the scratch folder (scratch.h) is the whole file system. */
void compile_paths_use_scratch(void);
