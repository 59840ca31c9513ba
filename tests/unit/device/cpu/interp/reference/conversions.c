/* cvt, and comparisons. */
#include "reference.h"

#include <string.h>

#define HAS(word) ref_has(c->form, word)

static binary128 floor_of(binary128 v)
{
    binary128 whole;

    if (!(v > -(binary128)1e25 && v < (binary128)1e25))
        return v;
    whole = (binary128)(wide_t)v;
    return whole > v ? whole - 1 : whole;
}

static binary128 integral(binary128 v, char mode)
{
    binary128 down = floor_of(v), rest = v - down;
    bool      up = mode == 'p'   ? rest > 0
                   : mode == 'z' ? v < 0 && rest > 0
                   : mode == 'm' ? false
                                 : rest > (binary128)0.5 || (rest == (binary128)0.5 && down - 2 * floor_of(down / 2) != 0);
    binary128 r = up ? down + 1 : down;

    return r == 0 && (v < 0 || (v == 0 && 1 / v < 0)) ? -(binary128)0 : r;
}

/* NaN becomes 0, or only the highest bit where 64 bits are involved. */
static uint64_t to_integer(const struct ref_call *c, binary128 v)
{
    const struct ref_type *t = c->form->type;
    binary128              most = (binary128)ref_clamp(t, (wide_t)1 << 100), least = (binary128)ref_clamp(t, -((wide_t)1 << 100));

    if (v != v)
        return t->bits == 64 || c->form->stype->bits == 64 ? 1ull << (t->bits - 1) : 0;
    v = integral(v, ref_mode(c->form));
    return ref_cut(t->bits, (wide_t)(v > most ? most : v < least ? least : v));
}

static uint64_t to_float(const struct ref_call *c, binary128 v)
{
    const struct ref_type *t = c->form->type;
    bool                   whole = HAS("rni") || HAS("rzi") || HAS("rmi") || HAS("rpi"), ftz = HAS("ftz");
    uint64_t               bits = ref_round(t, (struct ref_exact){whole ? integral(v, ref_mode(c->form)) : v, 0}, ref_mode(c->form), false);
    uint64_t               sign = 1ull << (t->bits - 1);

    if (HAS("sat"))
        bits = ref_saturated(t, bits);
    if (HAS("relu") && !ref_is_nan(t, bits) && bits & sign)
        bits = 0;
    if (HAS("satfinite") && !ref_is_nan(t, bits) && ref_float(t, bits) - ref_float(t, bits) != 0)
        bits--;
    return ftz && t->bits == 32 ? ref_flushed(t, bits) : bits;
}

/* An 8-bit result is extended in its register, as if to 32 bits. */
static uint64_t extended(const struct ref_type *t, uint64_t bits)
{
    return t->bits == 8 ? ref_cut(32, ref_integer(t, bits)) : bits;
}

uint64_t ref_convert(const struct ref_call *c)
{
    const struct ref_type *to = c->form->type, *from = c->form->stype;
    uint64_t               bits = ref_cut(from->bits, (wide_t)c->in[0]);
    binary128              v;

    if (!ref_is_float(to) && !ref_is_float(from))
        return extended(to, ref_cut(to->bits, HAS("sat") ? ref_clamp(to, ref_integer(from, bits)) : ref_integer(from, bits)));
    if (HAS("ftz") && from->bits == 32 && ref_is_float(from))
        bits = ref_flushed(from, bits);
    v = ref_is_float(from) ? ref_float(from, bits) : (binary128)ref_integer(from, bits);
    return ref_is_float(to) ? to_float(c, v) : extended(to, to_integer(c, v));
}

uint64_t ref_convert_pair(const struct ref_call *c)
{
    struct ref_form half = *c->form;
    struct ref_call one = *c;
    uint64_t        high, in[REF_INPUTS];

    half.type = ref_type_find(half.type->element, strlen(half.type->element));
    one.form = &half;
    high = ref_convert(&one);
    memcpy(in, c->in, sizeof in);
    in[0] = c->in[1];
    one.in = in;
    return high << 16 | ref_convert(&one);
}

/* As in the manual's program, bit by bit. */
uint64_t ref_convert_packed(const struct ref_call *c)
{
    const struct ref_type *t = c->form->type, *s32 = c->form->stype;
    uint64_t               ta = ref_cut(t->bits, ref_clamp(t, ref_integer(s32, c->in[0]))),
             d = ref_cut(t->bits, ref_clamp(t, ref_integer(s32, c->in[1])));

    for (unsigned i = t->bits; i < 2 * t->bits; i++)
        d |= (ta >> (i - t->bits) & 1) << i;
    for (unsigned i = 2 * t->bits; i < 32; i++)
        d |= (c->in[2] >> (i - 2 * t->bits) & 1) << i;
    return d;
}

/* 10 bits after the point; halves away from zero (.rna) or to even. */
uint64_t ref_convert_tf32(const struct ref_call *c)
{
    const struct ref_type *f32 = c->form->stype;
    uint32_t               u = (uint32_t)c->in[0], kept = u & ~0x1fffu, rest = u & 0x1fff;
    bool                   away = rest > 0x1000 || (rest == 0x1000 && (HAS("rna") || kept & 0x2000));

    if (ref_is_nan(f32, u))
        return HAS("rn") ? 0x7fffe000u : kept;
    return away ? kept + 0x2000 : kept;
}

/* The value of 8 bits by the format's tables: 4 exponent bits and 3 after the point, or 5 and 2. */
static binary128 fp8_value(bool e5m2, unsigned b)
{
    unsigned  bits = e5m2 ? 2 : 3, exponent = (b & 0x7f) >> bits, rest = b & ((1u << bits) - 1);
    int       power = (int)(exponent ? exponent : 1) - (e5m2 ? 15 : 7) - (int)bits;
    binary128 v = (binary128)(exponent ? rest + (1u << bits) : rest);

    for (; power > 0; power--)
        v *= 2;
    for (; power < 0; power++)
        v /= 2;
    return b & 0x80 ? -v : v;
}

/* The nearest finite number; of two equally near ones the even one. */
static unsigned fp8_nearest(bool e5m2, binary128 v, bool relu)
{
    unsigned  most = e5m2 ? 0x7b : 0x7e, best = 0;
    binary128 a = v < 0 ? -v : v, least = a;
    bool      negative = v < 0 || (v == 0 && 1 / v < 0);

    if (v != v)
        return 0x7f;
    for (unsigned b = 1; b <= most; b++) {
        binary128 x = fp8_value(e5m2, b), off = x > a ? x - a : a - x;
        if (off < least || (off == least && b % 2 == 0)) {
            least = off;
            best = b;
        }
    }
    if (a > fp8_value(e5m2, most))
        best = most;
    return negative ? relu ? 0 : best | 0x80 : best;
}

uint64_t ref_convert_to_fp8(const struct ref_call *c)
{
    const struct ref_type *f16 = ref_type_find("f16", 3), *from = c->form->stype;
    bool                   e5m2 = HAS("e5m2x2"), pair = from->element != NULL;
    binary128              high = pair ? ref_float(f16, c->in[0] >> 16 & 0xffff) : ref_float(from, c->in[0] & UINT32_MAX);
    binary128              low = pair ? ref_float(f16, c->in[0] & 0xffff) : ref_float(from, c->in[1] & UINT32_MAX);

    return (uint64_t)fp8_nearest(e5m2, high, HAS("relu")) << 8 | fp8_nearest(e5m2, low, HAS("relu"));
}

static uint64_t half_of_fp8(const struct ref_call *c, unsigned b)
{
    const struct ref_type *f16 = ref_type_find("f16", 3);
    bool                   e5m2 = HAS("e5m2x2");

    if ((b & 0x7f) > (e5m2 ? 0x7c : 0x7e))
        return 0x7fff;
    if (HAS("relu") && b & 0x80)
        return 0;
    if (e5m2 && (b & 0x7f) == 0x7c)
        return b << 8;
    return ref_round(f16, (struct ref_exact){fp8_value(e5m2, b), 0}, 'n', false);
}

REF_OPERATION(ref_convert_of_fp8, half_of_fp8(c, c->in[0] >> 8 & 0xff) << 16 | half_of_fp8(c, c->in[0] & 0xff))

/* Less, equal, greater: 1, 2, 4; unordered: 8. */
static unsigned order(const struct ref_type *t, uint64_t a, uint64_t b)
{
    if (!ref_is_float(t))
        return ref_integer(t, a) < ref_integer(t, b) ? 1 : ref_integer(t, a) == ref_integer(t, b) ? 2 : 4;
    if (ref_is_nan(t, a) || ref_is_nan(t, b))
        return 8;
    return ref_float(t, a) < ref_float(t, b) ? 1 : ref_float(t, a) == ref_float(t, b) ? 2 : 4;
}

static bool compare(const struct ref_call *c, const struct ref_type *t, uint64_t a, uint64_t b)
{
    static const struct {
        const char *word;
        unsigned    holds;
    } words[] = {
        {"eq", 2}, {"ne", 5},   {"lt", 1},   {"le", 3},  {"gt", 4},   {"ge", 6},   {"lo", 1},   {"ls", 3},  {"hi", 4},
        {"hs", 6}, {"equ", 10}, {"neu", 13}, {"ltu", 9}, {"leu", 11}, {"gtu", 12}, {"geu", 14}, {"num", 7}, {"nan", 8},
    };

    a = ref_cut(t->bits, (wide_t)a);
    b = ref_cut(t->bits, (wide_t)b);
    if (HAS("ftz")) {
        a = ref_flushed(t, a);
        b = ref_flushed(t, b);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (HAS(words[i].word))
            return words[i].holds & order(t, a, b);
    }
    return false;
}

static bool combined(const struct ref_call *c, bool test)
{
    bool p = (c->in[2] & 1) ^ (strchr(c->form->text, '!') != NULL);

    return HAS("and") ? test && p : HAS("or") ? test || p : HAS("xor") ? test ^ p : test;
}

/* The second result is that of the high half, or of the opposite test. */
uint64_t ref_setp(const struct ref_call *c)
{
    const struct ref_type *t = c->form->type, *e = t->element ? ref_type_find(t->element, strlen(t->element)) : t;
    bool low = compare(c, e, c->in[0], c->in[1]), high = t->element ? compare(c, e, c->in[0] >> 16, c->in[1] >> 16) : !low;

    return (uint64_t)combined(c, low) | (c->form->text[0] == '|' ? (uint64_t)combined(c, high) << 32 : 0);
}

static uint64_t value_of(const struct ref_type *to, bool holds)
{
    if (!holds)
        return 0;
    return ref_is_float(to) ? ref_round(to, (struct ref_exact){1, 0}, 'n', false) : ref_cut(to->bits, -1);
}

/* For a pair each half has its result: 16 ones in a 32-bit type. */
uint64_t ref_set(const struct ref_call *c)
{
    const struct ref_type *to = c->form->type, *from = c->form->stype, *e = from;
    const struct ref_type *half = to->element ? ref_type_find(to->element, strlen(to->element)) : ref_type_find("u16", 3);

    if (!from->element)
        return value_of(to, combined(c, compare(c, from, c->in[0], c->in[1])));
    e = ref_type_find(from->element, strlen(from->element));
    return value_of(half, compare(c, e, c->in[0], c->in[1])) | value_of(half, compare(c, e, c->in[0] >> 16, c->in[1] >> 16)) << 16;
}
