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

Test(kernel_name, what_is_no_plain_name_stays)
{
    static const char *const same[] = {"_Z4vaddIfEvPT_i", "_ZN2ns4vaddIfEEvPT_", "_Z",   "_Z9vadd", "_Zrm1a", "_ZN",
                                       "_ZN2ns",          "_ZN99999999999x",     "_Z0v", ""};

    for (size_t i = 0; i < COUNT(same); i++)
        expect(same[i], same[i]);
}
