/* Where the programs of NVIDIA's MPS are. */
#pragma once

#include "base/problem.h"

enum { MPS_PATH_BYTES = 4096 /* what realpath() needs */ };

/* `setting`: "auto": the first folder of PATH that holds both programs; "off": none; else a folder that must hold them. OK with the path of
 * nvidia-cuda-mps-control; FEATURE_DISABLED: off; NOT_FOUND: PATH has none; INVALID_FIELD: the folder lacks one, which the problem names. */
enum status mps_find(const char *setting, char control[MPS_PATH_BYTES], struct problem *why);
