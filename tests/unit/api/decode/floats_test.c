/* Rounding to f16, bf16 and f32, against known bits and against the compiler's own conversion. */
#include <criterion/criterion.h>
#include <math.h>

#include "api/decode/floats.h"

static uint64_t bits(double v, struct float_format f)
{
    uint64_t out = 0xdead;

    cr_assert(float_bits(v, f, &out), "%g", v);
    return out;
}

Test(floats, f16_known_values)
{
    cr_assert_eq(bits(0, FLOAT_F16), 0x0000);
    cr_assert_eq(bits(-0.0, FLOAT_F16), 0x8000);
    cr_assert_eq(bits(1, FLOAT_F16), 0x3c00);
    cr_assert_eq(bits(-2, FLOAT_F16), 0xc000);
    cr_assert_eq(bits(65504, FLOAT_F16), 0x7bff);
    cr_assert_eq(bits(INFINITY, FLOAT_F16), 0x7c00);
    cr_assert_eq(bits(-INFINITY, FLOAT_F16), 0xfc00);
    cr_assert_eq(bits(ldexp(1, -14), FLOAT_F16), 0x0400);
    cr_assert_eq(bits(ldexp(1, -24), FLOAT_F16), 0x0001);
    cr_assert_eq(bits(ldexp(1, -25), FLOAT_F16), 0x0000, "a tie goes to even");
    cr_assert_eq(bits(ldexp(3, -25), FLOAT_F16), 0x0002);
    cr_assert_eq(bits(ldexp(1023.5, -24), FLOAT_F16), 0x0400, "the greatest subnormal carries into the normals");
    cr_assert_eq(bits(1 + ldexp(1, -11), FLOAT_F16), 0x3c00, "a tie goes to even");
    cr_assert_eq(bits(1 + ldexp(3, -11), FLOAT_F16), 0x3c02);
    cr_assert_eq(bits(1 + ldexp(1, -11) + ldexp(1, -40), FLOAT_F16), 0x3c01, "no double rounding");
    cr_assert_eq(bits(NAN, FLOAT_F16) & 0x7e00, 0x7e00);
}

Test(floats, bf16_known_values)
{
    cr_assert_eq(bits(1, FLOAT_BF16), 0x3f80);
    cr_assert_eq(bits(3.140625, FLOAT_BF16), 0x4049);
    cr_assert_eq(bits(1 + ldexp(1, -8), FLOAT_BF16), 0x3f80);
    cr_assert_eq(bits(1 + ldexp(3, -8), FLOAT_BF16), 0x3f82);
    cr_assert_eq(bits(ldexp(1, -133), FLOAT_BF16), 0x0001);
    cr_assert_eq(bits(1e-300, FLOAT_BF16), 0x0000);
}

Test(floats, what_would_become_infinite_is_refused)
{
    uint64_t out;

    cr_assert(float_bits(65519.99, FLOAT_F16, &out));
    cr_assert_not(float_bits(65520, FLOAT_F16, &out));
    cr_assert_not(float_bits(-1e300, FLOAT_F16, &out));
    cr_assert_not(float_bits(3.5e38, FLOAT_F32, &out));
    cr_assert_not(float_bits(3.4e38, FLOAT_BF16, &out));
}

Test(floats, f32_as_the_compiler_rounds)
{
    uint64_t state = 12345;

    for (int i = 0; i < 20000; i++) {
        double   v;
        float    f;
        uint32_t want;
        uint64_t got;

        state = state * 6364136223846793005u + 1442695040888963407u;
        v = ldexp((double)(int64_t)state, (int)(state >> 32) % 180 - 150);
        f = (float)v;
        memcpy(&want, &f, sizeof want);
        if (isinf(f))
            cr_assert_not(float_bits(v, FLOAT_F32, &got));
        else
            cr_assert(float_bits(v, FLOAT_F32, &got) && got == want, "%a", v);
    }
}

Test(floats, texts)
{
    static const char *const bad[] = {"", " 1", "1 ", "0x10", "nanx", "nan(1)", "1e999", "--1", "e", "+", "1,5", "infinit", "1.5.2"};
    double                   v;

    cr_assert(float_text(SPAN_LITERAL("1.5"), &v) && v == 1.5);
    cr_assert(float_text(SPAN_LITERAL("-2e-3"), &v) && v == -2e-3);
    cr_assert(float_text(SPAN_LITERAL("nan"), &v) && isnan(v));
    cr_assert(float_text(SPAN_LITERAL("-inf"), &v) && v == -INFINITY);
    cr_assert(float_text(SPAN_LITERAL("Infinity"), &v) && v == INFINITY);
    cr_assert_not(float_text((struct span){"1\0", 2}, &v));
    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_not(float_text(span_of(bad[i]), &v), "%s", bad[i]);
}
