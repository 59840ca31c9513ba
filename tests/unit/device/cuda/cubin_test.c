/* Reading cubins: the contents of a real one, and no reads past the end of damaged ones. */
#include "device/cuda/cubin.h"
#include "unit/device/cuda/fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

static struct span read_sample(void)
{
    return fixture_file(FIXTURES "/sample.cubin");
}

static void assert_params(const struct cubin *c, const char *kernel, const uint32_t expected[][2], unsigned count)
{
    struct cubin_param params[KERNEL_PARAMS_MAX];
    unsigned           found = 99;

    cr_assert_eq(cubin_params(c, span_of(kernel), params, &found), STATUS_OK);
    cr_assert_eq(found, count);
    for (unsigned i = 0; i < count; i++) {
        cr_expect_eq(params[i].ordinal, i);
        cr_expect_eq(params[i].offset, expected[i][0], "%s %u", kernel, i);
        cr_expect_eq(params[i].size, expected[i][1], "%s %u", kernel, i);
    }
}

Test(cubin, reads_sizes_beyond_14_bits)
{
    static const uint32_t large[][2] = {{0, 28000}, {28000, 8}, {28008, 1}};
    struct span           image = fixture_file(FIXTURES "/large_params.cubin");
    struct cubin          c;

    cr_assert_eq(cubin_open(image, &c), STATUS_OK);
    assert_params(&c, "large", large, 3);
    free((void *)(uintptr_t)image.data);
}

Test(cubin, lists_kernels_and_their_parameters)
{
    static const uint32_t vadd[][2] = {{0, 8}, {8, 8}, {16, 8}, {24, 4}};
    static const uint32_t mixed[][2] = {{0, 1}, {8, 8}, {16, 24}, {40, 2}, {48, 8}};
    struct span           image = read_sample();
    struct cubin          c;
    struct span           name;
    size_t                cursor = 0;
    unsigned              count = 0;

    cr_assert_eq(cubin_open(image, &c), STATUS_OK);
    while (cubin_next_kernel(&c, &cursor, &name)) {
        count++;
        cr_expect_eq(name.data[name.bytes], '\0');
        if (span_is(name, "vadd"))
            assert_params(&c, "vadd", vadd, 4);
        else if (span_is(name, "empty"))
            assert_params(&c, "empty", NULL, 0);
        else
            assert_params(&c, name.data, mixed, 5);
    }
    cr_assert_eq(count, 3);
    free((char *)image.data);
}

Test(cubin, lists_globals)
{
    struct span         image = read_sample();
    struct cubin        c;
    struct cubin_global g;
    size_t              cursor = 0;
    unsigned            seen = 0;

    cr_assert_eq(cubin_open(image, &c), STATUS_OK);
    while (cubin_next_global(&c, &cursor, &g)) {
        if (span_is(g.name, "ctab"))
            seen |= g.constant && g.bytes == 64 ? 1u : 0;
        else if (span_is(g.name, "gv"))
            seen |= !g.constant && g.bytes == 32 ? 2u : 0;
        else
            cr_assert_fail("unexpected global %s", g.name.data);
    }
    cr_assert_eq(seen, 3);
    free((char *)image.data);
}

/* Calls every accessor once; only staying inside the image matters. */
static void walk(const struct cubin *c)
{
    struct cubin_param  params[KERNEL_PARAMS_MAX];
    struct cubin_global g;
    struct span         name;
    unsigned            count;

    for (size_t cursor = 0; cubin_next_kernel(c, &cursor, &name);)
        (void)cubin_params(c, name, params, &count);
    for (size_t cursor = 0; cubin_next_global(c, &cursor, &g);)
        ;
}

Test(cubin, refuses_every_truncation)
{
    struct span  image = read_sample();
    struct cubin c;

    for (size_t bytes = 0; bytes < image.bytes; bytes++) {
        char *cut = malloc(bytes ? bytes : 1);

        memcpy(cut, image.data, bytes);
        cr_assert_eq(cubin_open((struct span){cut, bytes}, &c), STATUS_MODULE_INVALID, "%zu bytes", bytes);
        free(cut);
    }
    free((char *)image.data);
}

Test(cubin, survives_every_damaged_byte)
{
    static const unsigned char values[] = {0x00, 0xff, 0x80, 0x01};
    struct span                image = read_sample();
    char                      *damaged = malloc(image.bytes);
    struct cubin               c;
    size_t                     refused = 0;

    for (size_t at = 0; at < image.bytes; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            memcpy(damaged, image.data, image.bytes);
            damaged[at] = (char)values[v];
            if (cubin_open((struct span){damaged, image.bytes}, &c))
                refused++;
            else
                walk(&c);
        }
    cr_assert_gt(refused, 0);
    free(damaged);
    free((char *)image.data);
}

Test(cubin, refuses_what_is_no_cubin)
{
    struct span  image = read_sample();
    struct cubin c;

    cr_assert_eq(cubin_open(SPAN_LITERAL(""), &c), STATUS_MODULE_INVALID);
    cr_assert_eq(cubin_open(SPAN_LITERAL(".version 7.0"), &c), STATUS_MODULE_INVALID);
    ((char *)image.data)[18] = 62; /* an x86-64 program */
    cr_assert_eq(cubin_open(image, &c), STATUS_MODULE_INVALID);
    free((char *)image.data);
}
