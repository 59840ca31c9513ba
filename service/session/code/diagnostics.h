/* The compiler's log as text -> its messages one by one. */
#pragma once

#include "base/arena.h"
#include "base/problem.h"
#include "session/bounds.h"

/* At most COMPILE_DIAGNOSTICS_MAX, in the order of the log; spans point into the log, the array is the arena's. Returns how many
 * (0 without room). Lines that are no message (source echoes, summaries, "detected during") are passed over. */
size_t diagnostics_parse(struct span log, struct arena *arena, const struct diagnostic **out);
/* The first that is an error of any kind, else NULL. */
const struct diagnostic *diagnostics_first_error(const struct diagnostic *list, size_t count);
