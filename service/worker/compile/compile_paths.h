/* A file-system root without privileges: the kernel hands every path call of this process to a handler (seccomp TRAP), which resolves it
 * as if one folder were "/". */
#pragma once

#include <stdbool.h>

/* The numbers of the calls to trap; ends with -1. */
extern const int compile_paths_calls[];

/* Installs the handler. root_fd stays open and in use for the life of the process; -1: no path exists. False: this machine cannot do it. */
bool compile_paths_install(int root_fd);
