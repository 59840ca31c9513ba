/* Plain names of mangled kernels; damaged ones stay as they are. */
#include <criterion/criterion.h>

#include "api/decode/kernel_name.h"

static void expect(const char *mangled, const char *plain)
{
    struct arena a;
    struct span  got;

    arena_init(&a, 65536);
    got = kernel_plain_name(span_of(mangled), &a);
    cr_assert(span_is(got, plain), "%s -> %.*s", mangled, SPAN_ARG(got));
    arena_finish(&a);
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
