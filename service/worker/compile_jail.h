/* The lock-down of a compile worker. NVRTC reads any file that its process can read and prints it in the log, so the process
 * must not be able to: for it, the folder of CUDA headers is the whole file system, read-only. */
#ifndef GPUREST_WORKER_COMPILE_JAIL_H
#define GPUREST_WORKER_COMPILE_JAIL_H

#include "base/problem.h"

/* One way, once, before any input is looked at and before any thread exists. `include_folder`: NULL = no file at all.
 * Everything the compile needs must be loaded already. Steps that this machine does not offer are left out, and named in the log
 * when `report`; without a single working barrier between the compiler and the machine's files it refuses: COMPILER_UNAVAILABLE.
 * Afterwards the include folder is "/", standard input, output and error are /dev/null, and only COMPILE_JOB_FD and
 * COMPILE_OUTPUT_FD are open besides. */
enum status compile_jail_enter(const char *include_folder, bool report, struct problem *why);

#endif
