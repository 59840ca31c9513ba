/* Rounds doubles to smaller formats and reads decimal texts. */
#include "api/decode/floats.h"

#include <math.h>
#include <stdlib.h>

enum { FLOAT_TEXT_CHARS_MAX = 127 };

/* magnitude is scaled to below 2^53, so the conversion is exact and rint() rounds to nearest, ties to even. */
static uint64_t mantissa_of(double magnitude, int least_exponent)
{
    return (uint64_t)rint(ldexp(magnitude, -least_exponent));
}

bool float_bits(double value, struct float_format f, uint64_t *out)
{
    const int      bias = (1 << (f.exponent_bits - 1)) - 1;
    const uint64_t infinity = (((uint64_t)1 << f.exponent_bits) - 1) << f.mantissa_bits;
    const uint64_t sign = (uint64_t)(signbit(value) != 0) << (f.exponent_bits + f.mantissa_bits);
    double         magnitude = fabs(value);
    int            exponent;
    uint64_t       bits;

    if (isnan(value) || isinf(value) || magnitude == 0) {
        *out = sign | (isnan(value) ? infinity | (uint64_t)1 << (f.mantissa_bits - 1) : isinf(value) ? infinity : 0);
        return true;
    }
    frexp(magnitude, &exponent);
    exponent -= 1; /* magnitude = 1.x * 2^exponent */
    if (exponent < 1 - bias)
        exponent = 1 - bias; /* subnormal: the unit in the last place is fixed */
    if (exponent > bias)
        return false;
    bits = mantissa_of(magnitude, exponent - (int)f.mantissa_bits);
    /* The implicit bit adds one to the exponent field; so does a carry out of the rounding. */
    bits += ((uint64_t)(exponent + bias - 1)) << f.mantissa_bits;
    if (bits >= infinity)
        return false;
    *out = sign | bits;
    return true;
}

static bool is_word(const char *text)
{
    static const char *const words[] = {"nan", "inf", "infinity"};

    for (size_t i = 0; i < COUNT(words); i++)
        if (span_equal_nocase(span_of(text), span_of(words[i])))
            return true;
    return false;
}

bool float_text(struct span text, double *out)
{
    char        copy[FLOAT_TEXT_CHARS_MAX + 1];
    const char *unsigned_part = copy;
    char       *end;

    if (!span_copy(text, copy, sizeof copy) || strlen(copy) != text.bytes)
        return false;
    if (*unsigned_part == '-' || *unsigned_part == '+')
        unsigned_part++;
    if (!is_word(unsigned_part) && (*unsigned_part == '\0' || strspn(unsigned_part, "0123456789.eE+-") != strlen(unsigned_part)))
        return false;
    *out = strtod(copy, &end);
    return *end == '\0' && end != copy && (!isinf(*out) || is_word(unsigned_part));
}
