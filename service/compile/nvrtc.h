/* Finds and loads the NVRTC library. One per process; not thread-safe: a compile worker has one thread. */
#pragma once

#include "base/problem.h"
#include "compile/nvrtc_abi.h"

/* The folder of libraries in a toolkit. */
#define TOOLKIT_LIBRARIES "/usr/local/cuda/lib64/"

struct nvrtc {
    struct nvrtc_functions call;
    int                    major, minor;
    char                   folder[4096]; /* where the library lies; "" when unknown */
};

/* `path` names the library; NULL or "": the usual places. COMPILER_UNAVAILABLE leaves *out untouched. Never unloaded. */
enum status nvrtc_load(struct nvrtc *out, const char *path, struct problem *why);
/* The folder of CUDA headers that belongs to the library, else the toolkit's; false when there is none. */
bool nvrtc_include_folder(const struct nvrtc *n, char *out, size_t room);
