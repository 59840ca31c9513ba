/* Floating-point formats smaller than double, as bits. Pure. */
#pragma once

#include "base/span.h"

/* One binary interchange format: sign, exponent, mantissa. */
struct float_format {
    unsigned exponent_bits;
    unsigned mantissa_bits;
};
#define FLOAT_F16  ((struct float_format){5, 10})
#define FLOAT_BF16 ((struct float_format){8, 7})
#define FLOAT_F32  ((struct float_format){8, 23})

/* Rounds to nearest, ties to even, in one step. False: a finite value would become infinite. */
bool float_bits(double value, struct float_format f, uint64_t *out);
/* A decimal number, or nan, inf, infinity with an optional sign, in any case. No hexadecimal, no blanks. */
bool float_text(struct span text, double *out);
