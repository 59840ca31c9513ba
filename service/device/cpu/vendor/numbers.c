/* Loops over numbers of any type. */
#include "device/cpu/vendor/numbers.h"

#include <math.h>
#include <string.h>

enum { TILE = 16 }; /* its rows and columns fit into the first-level cache together */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Inlined where `bytes` is known. */
static inline __attribute__((always_inline)) void transpose(char *to, uint64_t to_step, const char *from, uint64_t from_step, uint64_t rows,
                                                            uint64_t columns, const uint64_t bytes)
{
    for (uint64_t i0 = 0; i0 < rows; i0 += TILE)
        for (uint64_t j0 = 0; j0 < columns; j0 += TILE)
            for (uint64_t i = i0; i < least(i0 + TILE, rows); i++)
                for (uint64_t j = j0; j < least(j0 + TILE, columns); j++)
                    memcpy(to + (j * to_step + i) * bytes, from + (i * from_step + j) * bytes, bytes);
}

void numbers_transpose(void *to, uint64_t to_step, const void *from, uint64_t from_step, uint64_t rows, uint64_t columns, uint64_t bytes)
{
    if (bytes == 4)
        transpose(to, to_step, from, from_step, rows, columns, 4);
    else if (bytes == 8)
        transpose(to, to_step, from, from_step, rows, columns, 8);
    else
        transpose(to, to_step, from, from_step, rows, columns, 16);
}

bool numbers_are_finite(const void *x, uint64_t count, uint64_t part_bytes)
{
    const float  *single = x;
    const double *wide = x;

    for (uint64_t i = 0; i < count; i++)
        if (!(part_bytes == sizeof *single ? isfinite(single[i]) : isfinite(wide[i])))
            return false;
    return true;
}

void numbers_fill_nan(void *x, uint64_t count, uint64_t part_bytes)
{
    float  *single = x;
    double *wide = x;

    for (uint64_t i = 0; i < count; i++)
        if (part_bytes == sizeof *single)
            single[i] = NAN;
        else
            wide[i] = NAN;
}

void numbers_conjugate(void *x, uint64_t count, uint64_t part_bytes)
{
    float  *single = x;
    double *wide = x;

    for (uint64_t i = 1; i < 2 * count; i += 2)
        if (part_bytes == sizeof *single)
            single[i] = -single[i];
        else
            wide[i] = -wide[i];
}
