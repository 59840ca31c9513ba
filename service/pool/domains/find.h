/* Where the programs of NVIDIA's MPS are. */
#ifndef GPUREST_POOL_FIND_H
#define GPUREST_POOL_FIND_H

#include "base/problem.h"

enum { MPS_PATH_BYTES = 4096 /* what realpath() needs */ };

/* `setting`: "auto": the first folder of PATH that holds both programs; "off": none; else a folder that must hold them. OK with the path of
 * nvidia-cuda-mps-control; FEATURE_DISABLED: off; NOT_FOUND: PATH has none; INVALID_FIELD: the folder lacks one, which the problem names. */
enum status mps_find(const char *setting, char control[MPS_PATH_BYTES], struct problem *why);

#endif
