/* One compile worker, from start to end. It serves one job: what a source does to its compiler ends with it. Used by one thread at a
 * time. */
#pragma once

#include "base/buf.h"
#include "pool/workers/spawn.h"

/* How our executable is started in the role; owned texts. */
struct compile_command {
    char *executable;
    char *nvrtc_argument;   /* NULL: none */
    char *include_argument; /* NULL: none */
    char *hip_argument;     /* makes the worker one for HIP C++ */
    bool  allow_no_sandbox;
};

struct compile_child {
    struct spawned process;
    int            job_fd; /* the job is written here; -1 = all of it is */
    int            output_fd;
    int            stop_fd; /* borrowed: readable once nobody wants the output any more; -1: never */
};

/* `more` is one further argument or NULL. The worker dies with the thread that calls this. */
enum status compile_child_start(const struct compile_command *c, const char *more, struct compile_child *out);
/* The whole job. False: the worker took only part of it; it may have answered all the same. */
bool compile_child_send(struct compile_child *c, struct span job, uint64_t deadline);
/* OK at the end of the output; COMPILE_TIMEOUT; DRAINING on stop_fd; COMPILER_CRASHED when it exceeds the largest possible output;
 * INTERNAL. */
enum status compile_child_read(const struct compile_child *c, uint64_t deadline, struct buf *into);
/* Kills it, unless it ends by itself while `patient`; returns its wait status and closes everything. */
int compile_child_end(struct compile_child *c, bool patient, uint64_t deadline);
