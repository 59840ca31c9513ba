/* Stands in for Criterion under ThreadSanitizer, in whose address space Criterion's own process maker does not work: the same test files,
 * each test in a forked child, one after the other. Covers what the threaded tests use. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plain_test {
    const char        *suite, *name;
    void             (*run)(void);
    double             timeout; /* not used: the caller of the program bounds its time */
    struct plain_test *next;
};

void plain_test_add(struct plain_test *t);

/* What surrounds each test of that name. */
struct plain_suite {
    const char         *name;
    void              (*init)(void);
    void              (*fini)(void);
    double              timeout; /* as above */
    struct plain_suite *next;
};

void plain_suite_add(struct plain_suite *s);

#define TestSuite(suite_, ...)                                                                                          \
    __attribute__((constructor)) static void suite_##_suite_add(void)                                                   \
    {                                                                                                                   \
        static struct plain_suite suite_added = {.name = #suite_, __VA_ARGS__};                                         \
        plain_suite_add(&suite_added);                                                                                  \
    }

#define Test(suite_, name_, ...)                                                                                        \
    static void suite_##_##name_##_run(void);                                                                           \
    __attribute__((constructor)) static void suite_##_##name_##_add(void)                                               \
    {                                                                                                                   \
        static struct plain_test test_added;                                                                            \
        test_added = (struct plain_test){#suite_, #name_, suite_##_##name_##_run, .next = NULL};                        \
        plain_test_add(&test_added);                                                                                    \
    }                                                                                                                   \
    static void suite_##_##name_##_run(void)

void plain_skip(void);

#define cr_skip_test(...)                                                                                               \
    do {                                                                                                                \
        fprintf(stderr, __VA_ARGS__);                                                                                   \
        plain_skip();                                                                                                   \
    } while (0)
#define cr_assert(condition, ...)                                                                                       \
    do {                                                                                                                \
        if (!(condition)) {                                                                                             \
            fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__, __LINE__, #condition);                           \
            abort();                                                                                                    \
        }                                                                                                               \
    } while (0)
#define cr_assert_not(condition, ...) cr_assert(!(condition))
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b))
#define cr_expect_eq(a, b, ...) cr_assert((a) == (b))
#define cr_assert_neq(a, b, ...) cr_assert((a) != (b))
#define cr_assert_gt(a, b, ...) cr_assert((a) > (b))
#define cr_assert_lt(a, b, ...) cr_assert((a) < (b))
#define cr_assert_geq(a, b, ...) cr_assert((a) >= (b))
#define cr_assert_leq(a, b, ...) cr_assert((a) <= (b))
#define cr_assert_null(a, ...) cr_assert((a) == NULL)
#define cr_assert_not_null(a, ...) cr_assert((a) != NULL)
#define cr_assert_str_eq(a, b, ...) cr_assert(strcmp(a, b) == 0)
#define cr_assert_str_neq(a, b, ...) cr_assert(strcmp(a, b) != 0)
#define cr_assert_float_eq(a, b, epsilon, ...) cr_assert((a) - (b) <= (epsilon) && (b) - (a) <= (epsilon))
#define cr_assert_arr_eq(a, b, bytes, ...) cr_assert(memcmp(a, b, bytes) == 0)
