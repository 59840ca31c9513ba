/* The table of backends. */
#include "device/device.h"

#include <criterion/criterion.h>

Test(device, finds_a_complete_backend_by_name)
{
    const struct device_ops *ops = device_ops_find(SPAN_LITERAL("cuda"));

    cr_assert_not_null(ops);
    cr_assert_str_eq(ops->name, "cuda");
    cr_assert_null(device_ops_missing(ops));
}

Test(device, refuses_a_backend_that_lacks_a_member)
{
    cr_assert_null(device_ops_find(SPAN_LITERAL("cpu")));
    cr_assert_str_eq(device_ops_missing(device_ops_at(1)), "open");
}

Test(device, answers_null_for_no_such_backend)
{
    cr_assert_null(device_ops_find(SPAN_LITERAL("cud")));
    cr_assert_null(device_ops_find(SPAN_LITERAL("")));
    cr_assert_null(device_ops_at(4));
}

Test(device, notices_every_required_member)
{
    static const size_t offsets[] = {
#define NEED(member) offsetof(struct device_ops, member),
#include "device/members.def"
#undef NEED
    };
    static const char *const names[] = {
#define NEED(member) #member,
#include "device/members.def"
#undef NEED
    };

    for (size_t i = 0; i < COUNT(offsets); i++) {
        struct device_ops ops = *device_ops_at(0);

        memset((char *)&ops + offsets[i], 0, sizeof(void *));
        cr_assert_str_eq(device_ops_missing(&ops), names[i]);
    }
}

Test(device, optional_members_may_be_missing)
{
    struct device_ops ops = *device_ops_at(0);

    ops.host_register = NULL;
    ops.wait_progress = NULL;
    ops.cancel = NULL;
    cr_assert_null(device_ops_missing(&ops));
}
