/* Plain names of mangled kernels; damaged ones stay as they are. */
#include <criterion/criterion.h>

#include "session/code/kernel_name.h"

static void expect(const char *mangled, const char *plain)
{
    char        text[256];
    struct span got = span_of(mangled);
    bool        is_template;

    if (!kernel_source_name(span_of(mangled), text, sizeof text, &got, &is_template) || is_template)
        got = span_of(mangled);
    cr_assert(span_is(got, plain), "%s -> %.*s", mangled, SPAN_ARG(got));
}

Test(kernel_name, plain)
{
    expect("vadd", "vadd");
    expect("_Z4vaddPKfS0_Pfi", "vadd");
    expect("_Z10saxpy_fp16v", "saxpy_fp16");
    expect("_ZN2ns5inner4vaddEPf", "ns::inner::vadd");
}

static void expect_names(const char *const *names, size_t count, const char *text)
{
    struct kernel_table table;
    char                got[64];

    kernel_table_init(&table);
    for (size_t i = 0; i < count; i++)
        cr_assert(kernel_table_add(&table, span_of(names[i]), 0));
    kernel_names(&table, got, sizeof got);
    cr_assert_str_eq(got, text);
    kernel_table_finish(&table);
}

Test(kernel_name, those_there_are_are_listed_as_far_as_they_fit)
{
    static const char *const few[] = {"vadd", "_ZN2ns5scaleEPf", "_Z4vaddIfEvPT_i"};
    static const char *const many[] = {"a23456789", "b23456789", "c23456789", "d23456789", "e"};
    static const char *const wide[] = {"a2345678901234567890123456789012345", "b"};

    expect_names(few, 0, "none");
    expect_names(few, 1, "vadd");
    expect_names(few, 2, "vadd, ns::scale");
    expect_names(few, 3, "vadd, ns::scale, vadd");
    expect_names(many, 2, "a23456789, b23456789");
    expect_names(many, 5, "a23456789, b23456789, c23456789 and 2 more");
    expect_names(wide, 2, "2 kernels");
}

Test(kernel_name, what_is_no_plain_name_stays)
{
    static const char *const same[] = {"_Z4vaddIfEvPT_i", "_ZN2ns4vaddIfEEvPT_", "_Z",   "_Z9vadd", "_Zrm1a", "_ZN",
                                       "_ZN2ns",          "_ZN99999999999x",     "_Z0v", ""};

    for (size_t i = 0; i < COUNT(same); i++)
        expect(same[i], same[i]);
}
