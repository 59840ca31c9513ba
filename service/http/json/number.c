/* Reads numbers by their digits, without rounding. */
#include "http/json/number.h"

#include <assert.h>

#include "http/json/scan.h"
#include "limits.h"

enum { EXPONENT_MAX = 1000 };

static_assert(EXPONENT_MAX > 2 * JSON_NUMBER_CHARS_MAX, "no digits make up for an exponent that is cut there");

/* `text` starts after the 'e'. */
static int exponent_of(struct span text)
{
    bool negative = span_starts(text, "-");
    int  value = 0;

    for (size_t i = negative || span_starts(text, "+"); i < text.bytes; i++)
        value = value < EXPONENT_MAX ? value * 10 + (text.data[i] - '0') : EXPONENT_MAX;
    return negative ? -value : value;
}

static bool shift_in(uint64_t *magnitude, unsigned digit)
{
    *magnitude = *magnitude * 10 + digit;
    return *magnitude <= JSON_INTEGER_MAX;
}

static_assert(UINT64_MAX / 10 > (1ull << 53) + 1, "a magnitude within the bound takes another digit");

/* The digits are those of `whole`, then of `fraction`; the exponent has moved the decimal point behind the first `point` of them. */
static bool digits_are_integer(struct span whole, struct span fraction, int point)
{
    const size_t count = whole.bytes + fraction.bytes;
    uint64_t     magnitude = 0;

    for (size_t i = 0; i < count; i++) {
        unsigned digit = (unsigned)((i < whole.bytes ? whole.data[i] : fraction.data[i - whole.bytes]) - '0');

        if ((int)i >= point ? digit != 0 : !shift_in(&magnitude, digit))
            return false;
    }
    for (int i = (int)count; magnitude && i < point; i++)
        if (!shift_in(&magnitude, 0))
            return false;
    return true;
}

bool json_number_is_integer(struct span number)
{
    struct span rest = span_from(number, span_starts(number, "-"));
    struct span whole, fraction, exponent;
    size_t      mantissa = 0;

    assert(number.bytes <= JSON_NUMBER_CHARS_MAX);
    while (mantissa < rest.bytes && rest.data[mantissa] != 'e' && rest.data[mantissa] != 'E')
        mantissa++;
    exponent = span_from(rest, mantissa + 1);
    fraction = span_first(rest, mantissa);
    whole = span_cut(&fraction, '.');
    return digits_are_integer(whole, fraction, (int)whole.bytes + exponent_of(exponent));
}
