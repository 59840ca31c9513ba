/* A function's constants: found by value and width, however many there are, without a linear search. */
#include <criterion/criterion.h>

#include "device/cpu/ptx/constant_index.h"

enum { MANY = 200 * 1000, LOOKS_PER_CALL_MAX = 8 };

static uint64_t number_of(unsigned kind, uint32_t i)
{
    switch (kind) {
    case 0:
        return i;
    case 1:
        return (uint64_t)i << 32; /* doubles differ in their high bits */
    case 2:
        return (uint64_t)i * 4096;
    default:
        return ~(uint64_t)i;
    }
}

Test(constant_index, many_constants_take_few_looks_each, .timeout = 120)
{
    for (unsigned kind = 0; kind < 4; kind++) {
        struct constant_index x = {0};
        uint32_t              place;

        for (uint32_t i = 0; i < MANY; i++) {
            cr_assert(!constant_index_find(&x, number_of(kind, i), 8, &place));
            cr_assert(constant_index_add(&x, number_of(kind, i), 8, i));
        }
        for (uint32_t i = 0; i < MANY; i++) {
            cr_assert(constant_index_find(&x, number_of(kind, i), 8, &place));
            cr_assert_eq(place, i);
        }
        cr_assert_leq(x.looks, (uint64_t)3 * MANY * LOOKS_PER_CALL_MAX);
        constant_index_finish(&x);
    }
}

Test(constant_index, the_width_is_part_of_a_constant)
{
    struct constant_index x = {0};
    uint32_t              place;

    cr_assert(!constant_index_find(&x, 7, 4, &place));
    for (uint32_t width = 1; width <= 8; width *= 2)
        cr_assert(constant_index_add(&x, 7, width, 100 + width));
    for (uint32_t width = 1; width <= 8; width *= 2) {
        cr_assert(constant_index_find(&x, 7, width, &place));
        cr_assert_eq(place, 100 + width);
    }
    cr_assert(!constant_index_find(&x, 7, 3, &place));
    constant_index_finish(&x);
}
