/* Assembles callers' PTX to a cubin with nvJitLink, away from any GPU driver, as compiling is. Runs in a compile worker, as compiler.h. */
#pragma once

#include "ipc/compile_job.h"

/* Loads the library before the process is locked down: from the folder of `nvrtc_path` (NULL: skipped), else from the usual places.
 * COMPILER_UNAVAILABLE when not found: CUDA toolkits contain it, NVRTC alone does not. */
enum status assembler_load(const char *nvrtc_path, struct problem *why);
/* Assembles job->source for job->arch ("sm_90") into out->cubin. *out must be initialised. Returns out->status: COMPILE_FAILED with the
 * assembler's messages in the log, NOT_IMPLEMENTED for an architecture that the library does not know. */
enum status assembler_run(const struct compile_job *job, struct compile_output *out);
