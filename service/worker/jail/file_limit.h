/* How many files this process may open: raised, and whether it is enough. */
#pragma once

#include "base/problem.h"
#include "worker/bounds.h"

/* Raises the limit as far as the machine allows; file_limit_suffices() detects a failure. */
void file_limit_raise(void);
/* Whether the limit is at least `limit` and WORKER_FILES_RESERVE more files can be opened now. When not, *why is OVERLOADED. */
bool file_limit_suffices(unsigned limit, struct problem *why);
