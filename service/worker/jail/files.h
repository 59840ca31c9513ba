/* Whether this process may open as many files as its work takes. */
#ifndef GPUREST_WORKER_FILES_H
#define GPUREST_WORKER_FILES_H

#include "base/problem.h"
#include "worker/bounds.h"

/* Allows as many as the machine allows it; a failure is found by files_suffice(). */
void files_raise(void);
/* Whether it may have `limit` files open and can open WORKER_FILES_RESERVE more now. When not, *why is an OVERLOADED. */
bool files_suffice(unsigned limit, struct problem *why);

#endif
