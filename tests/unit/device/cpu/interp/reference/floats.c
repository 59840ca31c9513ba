/* Floating-point operations in binary128, exactly or with the sign of the missing rest, rounded once to the type. */
#include "reference.h"

#include <math.h>
#include <string.h>

struct shape { int precision, least, most; };

static struct shape shape_of(const struct ref_type *t)
{
    return t->kind == 'g' ? (struct shape){8, -126, 127} : t->bits == 16 ? (struct shape){11, -14, 15}
           : t->bits == 32 ? (struct shape){24, -126, 127} : (struct shape){53, -1022, 1023};
}

bool ref_is_float(const struct ref_type *t)
{
    return t && (t->kind == 'f' || t->kind == 'g');
}

static uint64_t sign_bit(const struct ref_type *t)
{
    return 1ull << (t->bits - 1);
}

static uint64_t infinity_bits(const struct ref_type *t)
{
    struct shape s = shape_of(t);

    return (uint64_t)(2 * s.most + 1) << (s.precision - 1);
}

static uint64_t nan_bits(const struct ref_type *t)
{
    return sign_bit(t) - 1;
}

bool ref_is_nan(const struct ref_type *t, uint64_t bits)
{
    return ref_is_float(t) && (bits & (sign_bit(t) - 1)) > infinity_bits(t);
}

/* Of 2; it is no subnormal one. By its bits: products are functions here, and a double's greatest power would take a thousand. */
static binary128 power(int e)
{
    uwide_t   u = (uwide_t)(e + 16383) << 112;
    binary128 v;

    memcpy(&v, &u, sizeof v);
    return v;
}

binary128 ref_float(const struct ref_type *t, uint64_t bits)
{
    struct shape s = shape_of(t);
    uint64_t     magnitude = bits & (sign_bit(t) - 1), fraction = magnitude & ((1ull << (s.precision - 1)) - 1);
    int          exponent = (int)(magnitude >> (s.precision - 1));
    binary128       v;

    if (magnitude > infinity_bits(t))
        return (binary128)NAN;
    if (magnitude == infinity_bits(t))
        v = (binary128)INFINITY;
    else if (exponent == 0)
        v = (binary128)fraction * power(s.least - s.precision + 1);
    else
        v = (binary128)(fraction | 1ull << (s.precision - 1)) * power(exponent - 1 + s.least - s.precision + 1);
    return bits & sign_bit(t) ? -v : v;
}

static bool is_finite(binary128 v)
{
    return v - v == 0;
}

struct ref_exact ref_sum(binary128 a, binary128 b)
{
    binary128 s = a + b, other, error;

    if (!is_finite(s))
        return (struct ref_exact){s, 0};
    other = s - a;
    error = (a - (s - other)) + (b - other);
    return (struct ref_exact){s, (error > 0) - (error < 0)};
}

static bool negative(binary128 v)
{
    uwide_t u;

    memcpy(&u, &v, sizeof u);
    return u >> 127;
}

static uint64_t overflow(const struct ref_type *t, char mode, bool minus)
{
    bool stays = mode == 'z' || mode == (minus ? 'p' : 'm');

    return (infinity_bits(t) - stays) | (minus ? sign_bit(t) : 0);
}

/* Class of the bits cut off: 0 nothing, 1 less than half a step, 2 half, 3 more. */
static int remainder_class(uwide_t low, uwide_t half, int rest)
{
    if (low == half)
        return 2 + rest;
    if (low == 0)
        return rest > 0;
    return low > half ? 3 : 1;
}

uint64_t ref_round(const struct ref_type *t, struct ref_exact x, char mode, bool flush)
{
    struct shape s = shape_of(t);
    bool         minus = negative(x.v);
    uint64_t     sign = minus ? sign_bit(t) : 0;
    uwide_t      u, kept, low;
    int          exponent, unit, shift, rest = minus ? -x.rest : x.rest, class;

    if (x.v != x.v)
        return nan_bits(t);
    if (!is_finite(x.v))
        return infinity_bits(t) | sign;
    memcpy(&u, &x.v, sizeof u);
    exponent = (int)(u >> 112 & 0x7fff) - 16383;
    u &= ((uwide_t)1 << 112) - 1;
    if (x.v == 0)
        return sign;
    u |= (uwide_t)1 << 112;
    if (rest < 0) { /* two more bits hold the missing part: one unit less, and some */
        u = (u << 2) - 1;
    } else {
        u = (u << 2) + (unsigned)rest;
    }
    if (flush && (exponent < s.least || (exponent == s.least && u < (uwide_t)1 << 114)))
        return sign;
    if (u < (uwide_t)1 << 114)
        exponent--;
    unit = exponent - s.precision + 1 > s.least - s.precision + 1 ? exponent - s.precision + 1 : s.least - s.precision + 1;
    shift = unit - (exponent - (u < (uwide_t)1 << 114 ? 113 : 114));
    shift = shift > 126 ? 126 : shift;
    kept = u >> shift;
    low = u & (((uwide_t)1 << shift) - 1);
    class = remainder_class(low, (uwide_t)1 << (shift - 1), 0);
    kept += mode == 'n' ? class == 3 || (class == 2 && (kept & 1)) : mode == 'm' ? minus && class : mode == 'p' ? !minus && class : 0;
    if (kept >> s.precision) {
        kept >>= 1;
        unit++;
    }
    if (unit + s.precision - 1 > s.most)
        return overflow(t, mode, minus);
    if (kept >> (s.precision - 1))
        kept += (uwide_t)(unit + s.precision - 1 - s.least) << (s.precision - 1);
    return (uint64_t)kept | sign;
}

char ref_mode(const struct ref_form *f)
{
    return ref_has(f, "rz") || ref_has(f, "rzi") ? 'z' : ref_has(f, "rm") || ref_has(f, "rmi") ? 'm' : ref_has(f, "rp") || ref_has(f, "rpi") ? 'p' : 'n';
}

uint64_t ref_flushed(const struct ref_type *t, uint64_t bits)
{
    uint64_t least = 1ull << (shape_of(t).precision - 1);

    return (bits & (sign_bit(t) - 1)) < least ? bits & sign_bit(t) : bits;
}

uint64_t ref_saturated(const struct ref_type *t, uint64_t bits)
{
    binary128 v = ref_float(t, bits);

    return !(v > 0) ? 0 : v > 1 ? ref_round(t, (struct ref_exact){1, 0}, 'n', false) : bits;
}

double ref_distance(const struct ref_type *t, uint64_t a, uint64_t b)
{
    int64_t x = (int64_t)(a & (sign_bit(t) - 1)), y = (int64_t)(b & (sign_bit(t) - 1));

    if (ref_is_nan(t, a) || ref_is_nan(t, b))
        return ref_is_nan(t, a) == ref_is_nan(t, b) ? 0 : HUGE_VAL;
    return fabs((double)((a & sign_bit(t) ? -x : x) - (b & sign_bit(t) ? -y : y)));
}

#define TYPE c->form->type
#define HAS(word) ref_has(c->form, word)

static uint64_t raw(const struct ref_call *c, unsigned k)
{
    uint64_t bits = ref_cut(TYPE->bits, (wide_t)c->in[k]);

    return HAS("ftz") && TYPE->kind == 'f' ? ref_flushed(TYPE, bits) : bits;
}

static binary128 number(const struct ref_call *c, unsigned k)
{
    return ref_float(TYPE, raw(c, k));
}

static uint64_t finish(const struct ref_call *c, struct ref_exact x)
{
    uint64_t bits = ref_round(TYPE, x, ref_mode(c->form), HAS("ftz") && TYPE->kind == 'f');

    if (HAS("sat"))
        bits = ref_saturated(TYPE, bits);
    if (HAS("relu") && !ref_is_nan(TYPE, bits) && bits & sign_bit(TYPE))
        bits = 0;
    return bits;
}

/* Exact zeros of sums are negative when rounding down. */
static struct ref_exact zero_signed(const struct ref_call *c, struct ref_exact x, bool both_minus, bool both_plus)
{
    if (x.v == 0 && x.rest == 0)
        x.v = both_minus || (!both_plus && ref_mode(c->form) == 'm') ? -(binary128)0 : (binary128)0;
    return x;
}

static uint64_t sum(const struct ref_call *c, binary128 a, binary128 b)
{
    return finish(c, zero_signed(c, ref_sum(a, b), negative(a) && negative(b), !negative(a) && !negative(b)));
}

REF_PAIR_OPERATION(ref_float_add, sum(c, number(c, 0), number(c, 1)))
REF_PAIR_OPERATION(ref_float_sub, sum(c, number(c, 0), -number(c, 1)))
REF_PAIR_OPERATION(ref_float_mul, finish(c, (struct ref_exact){number(c, 0) * number(c, 1), 0}))
REF_PAIR_OPERATION(ref_float_fma, sum(c, number(c, 0) * number(c, 1), number(c, 2)))

/* Quotients and roots are farther from any rounding boundary than binary128's error. */
REF_OPERATION(ref_float_div, finish(c, (struct ref_exact){number(c, 0) / number(c, 1), 0}))
REF_OPERATION(ref_float_rcp, finish(c, (struct ref_exact){1 / number(c, 0), 0}))

static binary128 root(binary128 x)
{
    binary128 s;

    if (!(x > 0) || !is_finite(x))
        return x == 0 || x > 0 ? x : (binary128)NAN;
    s = (binary128)sqrt((double)x);
    for (unsigned i = 0; i < 3; i++)
        s = (s + x / s) / 2;
    return s;
}

REF_OPERATION(ref_float_sqrt, finish(c, (struct ref_exact){root(number(c, 0)), 0}))
REF_PAIR_OPERATION(ref_float_neg, raw(c, 0) ^ sign_bit(TYPE))
REF_PAIR_OPERATION(ref_float_abs, raw(c, 0) & ~sign_bit(TYPE))

/* The lesser or greater of two numbers; -0 is less than +0. */
static uint64_t chosen(const struct ref_call *c, bool least)
{
    bool     by_magnitude = HAS("xorsign");
    uint64_t mask = by_magnitude ? sign_bit(TYPE) - 1 : UINT64_MAX, a = raw(c, 0) & mask, b = raw(c, 1) & mask, d;
    binary128   x = ref_float(TYPE, a), y = ref_float(TYPE, b);

    if (ref_is_nan(TYPE, a) || ref_is_nan(TYPE, b)) {
        if (HAS("NaN") || (ref_is_nan(TYPE, a) && ref_is_nan(TYPE, b)))
            return nan_bits(TYPE);
        d = ref_is_nan(TYPE, a) ? b : a;
    } else if (x == y) {
        d = (a & sign_bit(TYPE)) != 0 ? (least ? a : b) : (least ? b : a);
    } else {
        d = (x < y) == least ? a : b;
    }
    return by_magnitude ? d | ((raw(c, 0) ^ raw(c, 1)) & sign_bit(TYPE)) : d;
}

REF_PAIR_OPERATION(ref_float_min, chosen(c, true))
REF_PAIR_OPERATION(ref_float_max, chosen(c, false))
REF_OPERATION(ref_copysign, (raw(c, 0) & sign_bit(TYPE)) | (raw(c, 1) & ~sign_bit(TYPE)))

uint64_t ref_test(const struct ref_call *c)
{
    uint64_t magnitude = raw(c, 0) & ~sign_bit(TYPE), top = infinity_bits(TYPE), least = 1ull << (shape_of(TYPE).precision - 1);

    if (HAS("finite"))
        return magnitude < top;
    if (HAS("infinite"))
        return magnitude == top;
    if (HAS("number"))
        return magnitude <= top;
    if (HAS("notanumber"))
        return magnitude > top;
    if (HAS("normal")) /* zeros count in */
        return magnitude == 0 || (magnitude >= least && magnitude < top);
    return magnitude > 0 && magnitude < least;
}

static long double function(const char *op, long double x)
{
    return strcmp(op, "ex2") == 0 ? exp2l(x) : strcmp(op, "lg2") == 0 ? log2l(x) : strcmp(op, "sin") == 0 ? sinl(x) : strcmp(op, "cos") == 0 ? cosl(x)
           : strcmp(op, "tanh") == 0 ? tanhl(x) : strcmp(op, "rcp") == 0 ? 1 / x : strcmp(op, "rsqrt") == 0 ? 1 / sqrtl(x) : sqrtl(x);
}

/* The seed forms of binary64 only use the upper half of their operand. */
uint64_t ref_approximate(const struct ref_call *c)
{
    uint64_t bits;

    if (TYPE->element)
        return ref_halves(c, ref_approximate);
    bits = raw(c, 0);
    if (TYPE->bits == 64 && HAS("ftz"))
        bits = ref_flushed(TYPE, bits & 0xffffffff00000000ull);
    bits = ref_round(TYPE, (struct ref_exact){(binary128)function(c->form->opcode, (long double)ref_float(TYPE, bits)), 0}, 'n', HAS("ftz") && TYPE->kind == 'f');
    return bits;
}
