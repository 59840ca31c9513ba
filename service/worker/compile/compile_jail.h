/* The lock-down of a compile worker. NVRTC reads any file that its process can read and prints it in the log. So for this process the
 * folder of CUDA headers is the whole file system, read-only. A compiler that needs temporary files gets a folder in memory instead. */
#pragma once

#include "base/problem.h"

struct compile_jail {
    const char *include_folder; /* NULL = no file at all. Borrowed */
    bool        report;         /* log what this machine does not offer */
    bool        optional;       /* continue without any barrier */
    bool        scratch;        /* an empty folder in memory, "/tmp", is the whole file system (scratch.h); without include_folder */
};

/* Once, before any input is read and any thread exists; it cannot be undone. Everything that the compilation needs must be loaded
 * already. Steps that this machine does not offer are left out. Without a list of system calls, or without any barrier between the
 * compiler and the machine's files, it refuses, unless `optional`: COMPILER_UNAVAILABLE or NOT_IMPLEMENTED. Afterwards the include
 * folder is "/", standard input, output and error are /dev/null, and only COMPILE_JOB_FD and COMPILE_OUTPUT_FD are open besides. */
enum status compile_jail_enter(const struct compile_jail *wanted, struct problem *why);
