/* Compiler options as callers send them -> the canonical ones that the compiler gets. An allow-list: options.def. */
#pragma once

#include "base/arena.h"
#include "base/problem.h"

/* Each accepted option becomes one "--name" or "--name=value", in the order given; the two-string form ("-D", "X") too.
 * OPTION_NOT_ALLOWED names the option with the pointer "/options/N"; INVALID_FIELD when there are too many. The list is the arena's. */
enum status options_canonical(const struct span *sent, size_t count, struct arena *arena, const struct span **out, size_t *out_count,
                              struct problem *why);

/* Whether a canonical option says for which architecture to compile, and for which. */
bool options_architecture(struct span option, struct span *out);
/* "compute_90" and similar: one that a caller may ask for. */
bool options_knows_architecture(struct span arch);
