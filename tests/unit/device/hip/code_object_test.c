/* Reading code objects for AMD GPUs: the contents of a real one, and no reads past the end of damaged ones. */
#include "device/hip/code_object.h"
#include "support/code_object.h"
#include "unit/device/cuda/fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static void assert_params(const struct code_kernel *k, const uint32_t expected[][2], unsigned count)
{
    cr_assert_eq(k->params_count, count);
    for (unsigned i = 0; i < count; i++) {
        cr_expect_eq(k->params[i].offset, expected[i][0], "%u", i);
        cr_expect_eq(k->params[i].bytes, expected[i][1], "%u", i);
    }
}

/* sample.cu, compiled by hiprtc 5.2 for gfx90a. */
Test(code_object, lists_kernels_their_parameters_and_variables)
{
    static const uint32_t vadd[][2] = {{0, 8}, {8, 8}, {16, 8}, {24, 4}};
    static const uint32_t mixed[][2] = {{0, 1}, {8, 8}, {16, 24}, {40, 2}, {48, 8}};
    struct span           image = fixture_file(FIXTURES "/sample_gfx90a.code");
    struct code_object    c;
    struct code_kernel    k;
    struct code_global    g;
    unsigned              count = 0;
    bool                  damaged;

    cr_assert_eq(code_object_open(image, &c), STATUS_OK);
    cr_expect(span_is(c.target, "gfx90a"));
    for (; code_object_next(&c, &k, &damaged); count++) {
        cr_expect(k.max_threads == 1024 && !k.prints && !k.shared_bytes);
        if (span_is(k.name, "vadd"))
            assert_params(&k, vadd, 4);
        else if (span_is(k.name, "empty"))
            assert_params(&k, NULL, 0);
        else
            assert_params(&k, mixed, 5);
    }
    cr_expect_eq(count, 3);
    cr_expect_not(damaged);
    cr_assert(code_object_next_global(&c, &g));
    cr_expect(span_is(g.name, "gv") && g.bytes == 32);
    cr_assert(code_object_next_global(&c, &g));
    cr_expect(span_is(g.name, "ctab") && g.bytes == 64);
    cr_expect_not(code_object_next_global(&c, &g));
    free((void *)(uintptr_t)image.data);
}

Test(code_object, none_of_its_beginnings_is_one)
{
    struct span        image = fixture_file(FIXTURES "/sample_gfx90a.code");
    struct code_object c;

    for (size_t bytes = 0; bytes < image.bytes; bytes++) {
        char *part = malloc(bytes ? bytes : 1); /* exactly as large, so that reads past the end are detected */

        memcpy(part, image.data, bytes);
        cr_expect_eq(code_object_open((struct span){part, bytes}, &c), STATUS_MODULE_INVALID, "%zu bytes", bytes);
        free(part);
    }
    free((void *)(uintptr_t)image.data);
}

Test(code_object, kernels_that_call_the_host_are_known)
{
    static const struct code_object_kernel kernels[] = {{"one", {8}, "hidden_hostcall_buffer"}, {"two", {4}, "hidden_global_offset_x"}};
    char                                   image[CODE_OBJECT_BYTES_MAX];
    size_t                                 bytes = code_object_make("gfx1100", kernels, COUNT(kernels), image, sizeof image);
    struct code_object                     c;
    struct code_kernel                     k;
    bool                                   damaged;

    cr_assert_eq(code_object_open((struct span){image, bytes}, &c), STATUS_OK);
    cr_expect(span_is(c.target, "gfx1100"));
    cr_assert(code_object_next(&c, &k, &damaged));
    cr_expect(k.prints && k.params_count == 1 && k.params[0].bytes == 8);
    cr_assert(code_object_next(&c, &k, &damaged));
    cr_expect(!k.prints && k.params_count == 1 && k.params[0].bytes == 4);
    cr_expect(!code_object_next(&c, &k, &damaged) && !damaged);
}

/* A list of more kernels than there are: walking ends where the bytes do. */
Test(code_object, a_count_that_is_a_lie_is_damage)
{
    static const struct code_object_kernel one = {"one", {8}, NULL};
    char                                   image[CODE_OBJECT_BYTES_MAX];
    size_t                                 bytes = code_object_make("gfx1100", &one, 1, image, sizeof image);
    char                                  *list = memmem(image, bytes, "amdhsa.kernels", 14);
    struct code_object                     c;
    struct code_kernel                     k;
    bool                                   damaged;

    cr_assert_not_null(list);
    memset(list + 14 + 1, 0xff, 4); /* behind the head of the list */
    cr_assert_eq(code_object_open((struct span){image, bytes}, &c), STATUS_OK);
    cr_assert(code_object_next(&c, &k, &damaged));
    cr_expect(!code_object_next(&c, &k, &damaged) && damaged);
}
