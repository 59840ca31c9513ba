/* Values to try for an operand: the edges of its type, and some random ones, always the same. */
#pragma once

#include "reference.h"

/* Number of values for a type; NULL: numbers of bits. */
unsigned values_count(const struct ref_type *t);
uint64_t values_at(const struct ref_type *t, unsigned i);
