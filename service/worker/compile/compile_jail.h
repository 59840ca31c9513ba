/* The lock-down of a compile worker. NVRTC reads any file that its process can read and prints it in the log, so the process
 * must not be able to: for it, the folder of CUDA headers is the whole file system, read-only. */
#ifndef GPUREST_WORKER_COMPILE_JAIL_H
#define GPUREST_WORKER_COMPILE_JAIL_H

#include "base/problem.h"

struct compile_jail {
    const char *include_folder; /* NULL = no file at all. Borrowed */
    bool        report;         /* name in the log what this machine does not offer */
    bool        optional;       /* go on without any barrier */
};

/* One way, once, before any input is looked at and before any thread exists.
 * Everything the compile needs must be loaded already. Steps that this machine does not offer are left out; but without a list of system calls,
 * or without a single barrier between the compiler and the machine's files, it refuses, unless `optional`: COMPILER_UNAVAILABLE or
 * NOT_IMPLEMENTED. Afterwards the include folder is "/", standard input, output and error are /dev/null, and only COMPILE_JOB_FD and
 * COMPILE_OUTPUT_FD are open besides. */
enum status compile_jail_enter(const struct compile_jail *wanted, struct problem *why);

#endif
