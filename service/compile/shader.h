/* Compiles GLSL with shaderc and validates SPIR-V with SPIRV-Tools, away from any driver. Runs in a compile worker, as compiler.h. */
#pragma once

#include "ipc/compile_job.h"

/* Loads the libraries before the process is locked down. COMPILER_UNAVAILABLE when they are not found: code that is not validated is not
 * given to a driver. */
enum status shader_load(struct problem *why);
/* Makes out->cubin, the SPIR-V that the device loads: of job->source as GLSL or SPIR-V, with the specialisation constants of the options
 * set. *out must be initialised. Returns out->status: COMPILE_FAILED with the messages in the log. */
enum status shader_run(const struct compile_job *job, struct compile_output *out);
