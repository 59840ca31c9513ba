/* AMD's compiler of HIP C++, whose functions are those of NVRTC under other names; compiler.c calls it through the same table. */
#pragma once

#include "base/arena.h"
#include "base/problem.h"
#include "compile/nvrtc_abi.h"

struct nvrtc;

/* `path` names a library that has it; NULL, or one that has it not: the usual places. Loads all that it opens later by itself. Members that
 * hiprtc does not have stay NULL. COMPILER_UNAVAILABLE leaves *out untouched. Never unloaded. */
enum status hiprtc_load(struct nvrtc *out, const char *path, struct problem *why);
/* The option as hiprtc has it; a text in the arena. NULL: no memory, or none that the front-end lets pass (ipc/hip_options.def). */
const char *hiprtc_option(struct arena *a, struct span option);
/* Names of temporary files become those that the caller gave: of the source `name`, and of headers. Changes the text. */
void hiprtc_name_sources(char *log, const char *name);
