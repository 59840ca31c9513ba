/* Compiles CUDA C++, or HIP C++ for AMD GPUs, at run time. Runs in a compile worker: one process per compilation, with an empty environment. */
#pragma once

#include "ipc/compile_job.h"

/* Loads NVRTC (from `nvrtc_path`, or the usual places when NULL) before the process is locked down. */
enum status compiler_load(const char *nvrtc_path, struct problem *why);
/* ... or hiprtc, from `hip_path` if that has it: jobs are then in HIP C++, for architectures as "gfx90a". */
enum status compiler_load_hip(const char *hip_path, struct problem *why);
/* "nvrtc 13.0"; static. Only after compiler_load. */
const char *compiler_version(void);
/* The folder of CUDA headers that belongs to the loaded library; false when there is none. Only after compiler_load. */
bool compiler_include_folder(char *out, size_t room);
/* The folder in which the compiler looks for those headers, as this process will see the file system; borrowed. NULL (the default):
 * none. */
void compiler_use_include(const char *folder);
/* Compiles one job; *out must be initialised. Returns out->status. */
enum status compiler_run(const struct compile_job *job, struct compile_output *out);
