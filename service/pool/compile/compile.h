/* The front-end's side of compile workers: one process per compile, bounded in number, time, memory and output. Thread-safe. */
#ifndef GPUREST_POOL_COMPILE_H
#define GPUREST_POOL_COMPILE_H

#include "ipc/compile_job.h"
#include "pool/bounds.h"
#include "pool/compile/turns.h"

struct compile_service;

struct compile_config {
    const char *executable;    /* our own, for re-exec */
    const char *nvrtc_path;    /* NULL: the usual places */
    const char *include_path;  /* the toolkit's headers; NULL: the usual places */
    unsigned    jobs_max;      /* in parallel; more wait their turn */
    bool        callers_share; /* there are several callers: one of the turns is never given to one who has all others */
    uint64_t    deadline_ms;
    bool        allow_no_sandbox; /* compile where the machine offers no sandbox, too */
    bool        keep_ready;       /* a worker waits for the next job, loaded and locked down */
};

enum status compile_service_create(struct compile_service **out, const struct compile_config *config);
/* From now on nothing is compiled: what waits for a turn, and what is under way, is DRAINING at once. */
void compile_service_stop(struct compile_service *s);
void compile_service_destroy(struct compile_service *s);
/* "nvrtc 13.0", or "" when there is none; asked once from a worker at create. For people. */
const char *compile_service_version(const struct compile_service *s);
/* Tells this compiler, its helpers and its headers from all others that may make other code of the same source: part of keys of code. Asked
 * with the version; "" when there is none. */
const char *compile_service_identity(const struct compile_service *s);
/* Blocks up to COMPILE_TURN_WAIT_MS for a turn, then up to the deadline. A job to assemble where there is no nvJitLink is COMPILER_UNAVAILABLE,
 * for an architecture it does not know NOT_IMPLEMENTED. *out must be initialised; returns out->status. A crash is COMPILER_CRASHED, a kill at
 * the deadline COMPILE_TIMEOUT, no turn TOO_MANY_IN_FLIGHT, OVERLOADED or DRAINING (pool/compile/turns.h); the service lives on. */
enum status compile_service_run(struct compile_service *s, struct compile_for whom, const struct compile_job *job,
                                struct compile_output *out);
/* Compilations of that caller's sources that wait for a turn. */
unsigned compile_service_waiting(struct compile_service *s, const char *caller);

#endif
