/* Problems: long texts are truncated; earlier contents are cleared; NULL is allowed. */
#include <criterion/criterion.h>

#include "base/problem.h"

Test(problem, set_clears_what_was_there)
{
    struct problem p = {0};

    cr_assert_eq(problem_limit(&p, STATUS_QUOTA_EXCEEDED, "sessions", 8, 8, 1), STATUS_QUOTA_EXCEEDED);
    cr_assert_str_eq(p.limit_name, "sessions");
    cr_assert_eq(p.limit_max, 8);
    cr_assert_eq(problem_set(&p, STATUS_INTERNAL, "n=%d", 3), STATUS_INTERNAL);
    cr_assert_str_eq(p.detail, "n=3");
    cr_assert_str_eq(p.limit_name, "");
}

Test(problem, field_carries_the_pointer)
{
    struct problem p;

    problem_field(&p, STATUS_ARGUMENT_MISMATCH, "/args/3", "size", "expected %d, got %d", 4, 8);
    cr_assert(p.has_field);
    cr_assert_str_eq(p.field.pointer, "/args/3");
    cr_assert_str_eq(p.field.detail, "expected 4, got 8");
    cr_assert_str_eq(p.detail, "expected 4, got 8");
}

Test(problem, long_texts_are_cut)
{
    static char    big[2000];
    struct problem p;

    memset(big, 'x', sizeof big - 1);
    problem_field(&p, STATUS_INVALID_FIELD, big, big, "%s", big);
    cr_assert_eq(strlen(p.detail), PROBLEM_DETAIL_BYTES - 1);
    cr_assert_eq(strlen(p.field.pointer), PROBLEM_POINTER_BYTES - 1);
    cr_assert_eq(strlen(p.field.detail), sizeof p.field.detail - 1);
}

Test(problem, cuda_results_and_null)
{
    struct problem p;

    cr_assert_eq(problem_cuda(&p, STATUS_KERNEL_FAULT, 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "in %s", "k"), STATUS_KERNEL_FAULT);
    cr_assert_eq(p.cuda_result, 700);
    cr_assert_str_eq(p.cuda_name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    cr_assert_eq(problem_set(NULL, STATUS_INTERNAL, "x"), STATUS_INTERNAL);
    cr_assert_eq(problem_limit(NULL, STATUS_INTERNAL, "x", 1, 1, 1), STATUS_INTERNAL);
}

Test(problem, pointers_to_elements)
{
    static char big[2000];
    char        out[PROBLEM_POINTER_BYTES];

    problem_pointer(out, "/args", 0);
    cr_assert_str_eq(out, "/args/0");
    problem_pointer(out, "/ops/3/args", 4294967295u);
    cr_assert_str_eq(out, "/ops/3/args/4294967295");
    memset(big, 'x', sizeof big - 1);
    problem_pointer(out, big, 1234567890);
    cr_assert_eq(strlen(out), PROBLEM_POINTER_BYTES - 1);
    cr_assert_str_eq(out + strlen(out) - 11, "/1234567890");
}

/* A worker may send anything. */
Test(problem, facts_of_an_access_are_checked)
{
    struct problem_access none = {0}, a = {.error = ACCESS_MISALIGNED, .kernel = "k"};

    cr_assert(problem_access_valid(&none));
    cr_assert(problem_access_valid(&a));
    a.error = ACCESS_ERRORS;
    cr_assert_not(problem_access_valid(&a));
    a = (struct problem_access){.kind = ACCESS_KINDS};
    cr_assert_not(problem_access_valid(&a));
    a = (struct problem_access){.space = ACCESS_SPACES};
    cr_assert_not(problem_access_valid(&a));
    a = (struct problem_access){.nearest = NEAREST_STATES};
    cr_assert_not(problem_access_valid(&a));
    memset(none.kernel, 'k', sizeof none.kernel);
    cr_assert_not(problem_access_valid(&none), "a name without an end");
    none.kernel[0] = 0;
    memset(none.file, 'f', sizeof none.file);
    cr_assert_not(problem_access_valid(&none));
}
