/* Moving matrices between rows and columns, and looking at their numbers, for any type of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device/cpu/vendor/openblas_abi.h"

/* to[j * to_step + i] = from[i * from_step + j], for i < rows and j < columns; `bytes` of an element: 4, 8 or 16. */
void numbers_transpose(void *to, uint64_t to_step, const void *from, uint64_t from_step, uint64_t rows, uint64_t columns, uint64_t bytes);
/* Real parts and imaginary parts alike, `count` of them in all. */
bool numbers_are_finite(const void *x, uint64_t count, uint64_t part_bytes);
void numbers_fill_nan(void *x, uint64_t count, uint64_t part_bytes);
/* Turns `count` complex numbers into their conjugates. */
void numbers_conjugate(void *x, uint64_t count, uint64_t part_bytes);
