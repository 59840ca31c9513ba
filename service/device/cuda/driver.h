/* The CUDA driver as a table of functions, loaded at run time. Not thread-safe: one thread of a worker uses it. */
#pragma once

#include "base/problem.h"
#include "device/cuda/abi.h"

struct cuda_driver {
#define DRIVER(name, need, arguments) cuda_result(*name) arguments;
#include "device/cuda/driver.def"
#undef DRIVER
};

/* At the first call, loads the chosen library, else the first of the usual ones; borrowed for the life of the process. NULL, with
 * DEVICE_NOT_FOUND in *why: it is not there or lacks a required function; a later call tries again. */
const struct cuda_driver *cuda_driver_load(struct problem *why);

/* The build of the loaded library from its file name, "580.95.05"; "" before it is loaded, or unknown. Static. */
const char *cuda_driver_build(void);
/* The path of the library, before it is loaded; NULL or "": the usual places. Borrowed. */
void cuda_driver_choose(const char *path);

/* Our status for a driver's result. Total. */
enum status cuda_status(cuda_result r);
/* "CUDA_ERROR_ILLEGAL_ADDRESS"; static. */
const char *cuda_result_name(const struct cuda_driver *cu, cuda_result r);
/* Records `r` in *why (NULL allowed) and returns its status; `doing` names the attempt, e.g. "loading the module". */
enum status cuda_problem(const struct cuda_driver *cu, cuda_result r, struct problem *why, const char *doing);

/* For other libraries of the driver: opens `path` (a plain name also beside the driver) and fills slots[i] with names[i], NULL where
 * missing. Never closed. False: the library is not there. */
bool library_symbols(const char *path, const char *const names[], void *slots[], size_t count);
