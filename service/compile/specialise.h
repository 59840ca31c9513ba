/* Sets specialisation constants: what a module says of them by default becomes what the caller wants. */
#pragma once

#include "base/problem.h"
#include "base/span.h"

/* `setting` is "NUMBER=VALUE": the constant with that SpecId gets a whole number, a number with a fraction, true or false, as its type
 * wants. The words are valid SPIR-V. COMPILE_FAILED says what does not fit. */
enum status specialise(uint32_t *words, size_t count, struct span setting, struct problem *why);
