/* The arena: alignment, zeroing, the hard cap, checked products. */
#include <criterion/criterion.h>
#include <stdalign.h>

#include "base/arena.h"

Test(arena, gives_zeroed_aligned_memory_that_does_not_overlap)
{
    struct arena a;
    char        *last = NULL;

    arena_init(&a, 1 << 20);
    for (size_t n = 1; n < 200; n++) {
        char *p = arena_alloc(&a, n);
        cr_assert_not_null(p);
        cr_assert_eq((uintptr_t)p % alignof(max_align_t), 0);
        for (size_t i = 0; i < n; i++)
            cr_assert_eq(p[i], 0);
        memset(p, 0xff, n);
        cr_assert_neq(p, last);
        last = p;
    }
    arena_finish(&a);
}

Test(arena, keeps_its_cap_and_recovers_after_finish)
{
    struct arena a;

    arena_init(&a, 64 * 1024);
    cr_assert_null(arena_alloc(&a, 64 * 1024));
    cr_assert_not_null(arena_alloc(&a, 32 * 1024));
    cr_assert_null(arena_alloc(&a, 32 * 1024));
    cr_assert_leq(a.used, a.cap);
    arena_finish(&a);
    cr_assert_not_null(arena_alloc(&a, 32 * 1024));
    arena_finish(&a);
}

Test(arena, gives_zeroed_memory_and_keeps_its_cap_after_a_reset)
{
    struct arena a;

    arena_init(&a, 64 * 1024);
    for (unsigned round = 0; round < 20; round++) {
        char *few = arena_alloc(&a, 100), *many = arena_alloc(&a, 20 * 1024), *more = arena_alloc(&a, 100);

        cr_assert(few && many && more);
        for (size_t i = 0; i < 100; i++)
            cr_assert(!few[i] && !more[i]);
        memset(few, 0xff, 100);
        memset(more, 0xff, 100);
        cr_assert_null(arena_alloc(&a, 40 * 1024));
        cr_assert_leq(a.used, a.cap);
        arena_reset(&a);
        cr_assert_leq(a.used, 10 * 1024);
    }
    arena_finish(&a);
    arena_reset(&a);
    cr_assert_eq(a.used, 0);
}

Test(arena, refuses_products_and_sizes_that_overflow)
{
    struct arena a;

    arena_init(&a, SIZE_MAX);
    cr_assert_null(arena_array(&a, SIZE_MAX / 2, 3));
    cr_assert_null(arena_alloc(&a, SIZE_MAX));
    cr_assert_null(arena_alloc(&a, SIZE_MAX - 8));
    arena_finish(&a);
}

Test(arena, copies_with_a_closing_nul_and_prints)
{
    struct arena a;
    struct span  s;

    arena_init(&a, 1 << 16);
    s = arena_copy(&a, (struct span){"a\0b", 3});
    cr_assert_eq(s.bytes, 3);
    cr_assert_eq(memcmp(s.data, "a\0b", 4), 0);
    cr_assert_str_eq(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    cr_assert_not_null(arena_copy(&a, (struct span){NULL, 0}).data);
    arena_finish(&a);
}
