/* Whether this process may open as many files as its work takes. */
#ifndef GPUREST_WORKER_FILES_H
#define GPUREST_WORKER_FILES_H

#include "base/problem.h"
#include "worker/bounds.h"

/* Raises the limit as far as the machine allows; files_suffice() detects a failure. */
void files_raise(void);
/* Whether the limit is at least `limit` and WORKER_FILES_RESERVE more files can be opened now. When not, *why is OVERLOADED. */
bool files_suffice(unsigned limit, struct problem *why);

#endif
