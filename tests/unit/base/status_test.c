/* The status table: every code is a stable unique word, HTTP numbers are plausible, and foreign values are safe. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/status.h"

Test(status, codes_are_unique_snake_case_words)
{
    for (unsigned a = 0; a < STATUS_COUNT; a++) {
        const char *code = status_code(a);
        cr_assert_eq(strspn(code, "abcdefghijklmnopqrstuvwxyz_"), strlen(code), "%s", code);
        cr_assert_gt(strlen(status_title(a)), 1);
        for (unsigned b = a + 1; b < STATUS_COUNT; b++)
            cr_assert_str_neq(code, status_code(b));
    }
}

Test(status, failures_map_to_client_or_server_errors)
{
    for (unsigned a = STATUS_PENDING + 1; a < STATUS_COUNT; a++) {
        cr_assert_geq(status_http(a), 400u);
        cr_assert_lt(status_http(a), 600u);
    }
    cr_assert_eq(status_http(STATUS_OK), 200u);
}

Test(status, values_out_of_range_read_as_internal)
{
    cr_assert_eq(status_http((enum status)9999), 500u);
    cr_assert_str_eq(status_code((enum status) - 1), "internal");
    cr_assert_not(status_retryable(STATUS_COUNT));
}
