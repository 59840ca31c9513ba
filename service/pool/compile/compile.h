/* The front-end's side of compile workers: one process per compilation, limited in number, time, memory and output. Thread-safe. */
#pragma once

#include "ipc/compile_job.h"
#include "pool/bounds.h"
#include "pool/compile/turns.h"

struct compile_service;

struct compile_config {
    const char *executable;    /* our own, for re-exec */
    const char *nvrtc_path;    /* NULL: the usual places */
    const char *include_path;  /* the toolkit's headers; NULL: the usual places */
    const char *hip_path;      /* AMD's library; NULL, or it has no compiler: the usual places */
    unsigned    jobs_max;      /* in parallel; others wait for their turn */
    bool        callers_share; /* there are several callers: one caller never gets all of the turns */
    uint64_t    deadline_ms;
    bool        allow_no_sandbox; /* compile even where the machine offers no sandbox */
    bool        keep_ready;       /* keep a worker ready for the next job, loaded and locked down */
};

enum status compile_service_create(struct compile_service **out, const struct compile_config *config);
/* Compiles nothing from now on: waiting and running jobs end at once with DRAINING. */
void compile_service_stop(struct compile_service *s);
void compile_service_destroy(struct compile_service *s);
/* "nvrtc 13.0", or "" when there is none, for people; read from a worker once, at create. */
const char *compile_service_version(const struct compile_service *s);
/* The identity of this compiler, its helpers and its headers: no other may make other code of the same source (compile/identity.h). Part
 * of the keys of code. Read with the version; "" when there is no compiler. */
const char *compile_service_identity(const struct compile_service *s);
/* Blocks up to COMPILE_TURN_WAIT_MS for a turn, then up to the deadline. A job to assemble is COMPILER_UNAVAILABLE without nvJitLink,
 * and NOT_IMPLEMENTED for an architecture that it does not know. *out must be initialised; returns out->status. A crash is
 * COMPILER_CRASHED, a kill at the deadline COMPILE_TIMEOUT, no turn TOO_MANY_IN_FLIGHT, OVERLOADED or DRAINING (pool/compile/turns.h);
 * the service lives on. */
enum status compile_service_run(struct compile_service *s, struct compile_for whom, const struct compile_job *job,
                                struct compile_output *out);
/* Compilations of that caller's sources that wait for a turn. */
unsigned compile_service_waiting(struct compile_service *s, const char *caller);
