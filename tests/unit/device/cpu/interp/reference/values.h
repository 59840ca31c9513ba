/* Values to try an operand with: the edges of its type, and some at random, always the same. */
#ifndef GPUREST_TESTS_REFERENCE_VALUES_H
#define GPUREST_TESTS_REFERENCE_VALUES_H

#include "reference.h"

/* How many there are for a type; NULL: amounts of bits. */
unsigned values_count(const struct ref_type *t);
uint64_t values_at(const struct ref_type *t, unsigned i);

#endif
