/* Integer and bit operations as in the PTX manual, in 128 bits. */
#include "reference.h"

#include <stdlib.h>
#include <string.h>

uint64_t ref_cut(unsigned bits, wide_t v)
{
    return bits >= 64 ? (uint64_t)v : (uint64_t)v & ((1ull << bits) - 1);
}

wide_t ref_integer(const struct ref_type *t, uint64_t bits)
{
    uint64_t kept = ref_cut(t->bits, (wide_t)bits);

    return t->kind == 's' && kept >> (t->bits - 1) ? (wide_t)kept - ((wide_t)1 << t->bits) : (wide_t)kept;
}

wide_t ref_clamp(const struct ref_type *t, wide_t v)
{
    wide_t top = ((wide_t)1 << (t->kind == 's' ? t->bits - 1 : t->bits)) - 1, bottom = t->kind == 's' ? -top - 1 : 0;

    return v > top ? top : v < bottom ? bottom : v;
}

uint64_t ref_halves(const struct ref_call *c, ref_fn fn)
{
    struct ref_form half = *c->form;
    uint64_t        in[2][REF_INPUTS], result[2];

    half.type = ref_type_find(c->form->type->element, strlen(c->form->type->element));
    for (unsigned h = 0; h < 2; h++) {
        for (unsigned k = 0; k < REF_INPUTS; k++)
            in[h][k] = c->in[k] >> (16 * h) & 0xffff;
        result[h] = fn(&(struct ref_call){.form = &half, .in = in[h], .warp = c->warp, .lane = c->lane, .cell = c->cell}) & 0xffff;
    }
    return result[1] << 16 | result[0];
}

#define TYPE      c->form->type
#define IN(k)     ref_integer(c->form->type, c->in[k])
#define OUT(v)    ref_cut(c->form->type->bits, v)
#define HAS(word) ref_has(c->form, word)

REF_OPERATION(ref_first, TYPE ? OUT((wide_t)c->in[0]) : c->in[0])
REF_PAIR_OPERATION(ref_add, OUT(HAS("sat") ? ref_clamp(TYPE, IN(0) + IN(1)) : IN(0) + IN(1)))
REF_OPERATION(ref_sub, OUT(HAS("sat") ? ref_clamp(TYPE, IN(0) - IN(1)) : IN(0) - IN(1)))

/* The upper half of a product, with its sign, or the whole. */
static wide_t product(const struct ref_call *c, unsigned a, unsigned b, bool high)
{
    wide_t x = IN(a), y = IN(b);

    if (TYPE->kind == 's')
        return high ? (x * y) >> TYPE->bits : x * y;
    return (wide_t)(high ? ((uwide_t)x * (uwide_t)y) >> TYPE->bits : (uwide_t)x * (uwide_t)y);
}

REF_OPERATION(ref_mul, ref_cut(HAS("wide") ? 2 * TYPE->bits : TYPE->bits, product(c, 0, 1, HAS("hi"))))

uint64_t ref_mad(const struct ref_call *c)
{
    wide_t p = product(c, 0, 1, HAS("hi"));

    if (HAS("wide"))
        return ref_cut(2 * TYPE->bits, (wide_t)((uwide_t)p + c->in[2]));
    return OUT(HAS("sat") ? ref_clamp(TYPE, p + IN(2)) : (wide_t)((uwide_t)p + (uwide_t)IN(2)));
}

uint64_t ref_mad24(const struct ref_call *c)
{
    struct ref_type t = {"", 24, TYPE->kind, NULL};
    wide_t          p = ref_integer(&t, c->in[0]) * ref_integer(&t, c->in[1]), z = strncmp(c->form->opcode, "mad", 3) == 0 ? IN(2) : 0;

    p = HAS("hi") ? p >> 16 : p;
    return OUT(HAS("sat") ? ref_clamp(TYPE, p + z) : p + z);
}

REF_OPERATION(ref_div, OUT(IN(1) == 0 ? -1 : IN(0) / IN(1)))
REF_OPERATION(ref_rem, OUT(IN(1) == 0 ? -1 : IN(0) % IN(1)))

static uint64_t relu(const struct ref_call *c, wide_t v)
{
    return OUT(HAS("relu") && v < 0 ? 0 : v);
}

REF_PAIR_OPERATION(ref_min, relu(c, IN(0) < IN(1) ? IN(0) : IN(1)))
REF_PAIR_OPERATION(ref_max, relu(c, IN(0) > IN(1) ? IN(0) : IN(1)))
REF_OPERATION(ref_abs, OUT(IN(0) < 0 ? -IN(0) : IN(0)))
REF_OPERATION(ref_neg, OUT(-IN(0)))
REF_OPERATION(ref_sad, OUT(IN(2) + (IN(0) > IN(1) ? IN(0) - IN(1) : IN(1) - IN(0))))
REF_OPERATION(ref_and, OUT(IN(0) & IN(1)))
REF_OPERATION(ref_or, OUT(IN(0) | IN(1)))
REF_OPERATION(ref_xor, OUT(IN(0) ^ IN(1)))
REF_OPERATION(ref_not, OUT(~IN(0)))
REF_OPERATION(ref_cnot, IN(0) == 0)

static unsigned amount(const struct ref_call *c, unsigned k, unsigned most)
{
    uint32_t v = (uint32_t)c->in[k];

    return v > most ? most : v;
}

uint64_t ref_shift(const struct ref_call *c)
{
    unsigned by = amount(c, 1, TYPE->bits);

    return OUT(strcmp(c->form->opcode, "shl") == 0 ? (wide_t)((uwide_t)IN(0) << by) : IN(0) >> by);
}

uint64_t ref_funnel(const struct ref_call *c)
{
    uwide_t  both = (uwide_t)(uint32_t)c->in[1] << 32 | (uint32_t)c->in[0];
    unsigned by = HAS("wrap") ? (unsigned)c->in[2] & 31 : amount(c, 2, 32);

    return (uint32_t)(HAS("l") ? (both << by) >> 32 : both >> by);
}

/* Field operands of 32 bits are their low 8 bits; those of 64 are all bits, as measured on an H200. */
static unsigned field(const struct ref_call *c, unsigned k)
{
    return TYPE->bits == 32 ? (unsigned)c->in[k] & 255 : amount(c, k, 1000);
}

uint64_t ref_bfe(const struct ref_call *c)
{
    unsigned at = field(c, 1), length = field(c, 2), top = TYPE->bits - 1, last = at + length ? at + length - 1 : 0;
    bool     sign = TYPE->kind == 's' && length && c->in[0] >> (last < top ? last : top) & 1;
    uint64_t d = 0;

    for (unsigned i = 0; i <= top; i++)
        d |= (uint64_t)(i < length && at + i <= top ? c->in[0] >> (at + i) & 1 : sign) << i;
    return d;
}

uint64_t ref_bfi(const struct ref_call *c)
{
    unsigned at = field(c, 2), length = field(c, 3);
    uint64_t d = OUT((wide_t)c->in[1]);

    for (unsigned i = 0; i < length && at + i < TYPE->bits; i++)
        d = (d & ~(1ull << (at + i))) | (c->in[0] >> i & 1) << (at + i);
    return d;
}

uint64_t ref_bfind(const struct ref_call *c)
{
    uint64_t v = OUT(IN(0) < 0 ? ~IN(0) : IN(0));

    for (unsigned i = TYPE->bits; i-- > 0;) {
        if (v >> i & 1)
            return HAS("shiftamt") ? TYPE->bits - 1 - i : i;
    }
    return UINT32_MAX;
}

uint64_t ref_bmsk(const struct ref_call *c)
{
    unsigned at = HAS("wrap") ? (unsigned)c->in[0] & 31 : amount(c, 0, 32), n = HAS("wrap") ? (unsigned)c->in[1] & 31 : amount(c, 1, 32);
    uint64_t d = 0;

    for (unsigned i = at; i < at + n && i < 32; i++)
        d |= 1ull << i;
    return d;
}

uint64_t ref_brev(const struct ref_call *c)
{
    uint64_t d = 0;

    for (unsigned i = 0; i < TYPE->bits; i++)
        d |= (c->in[0] >> i & 1) << (TYPE->bits - 1 - i);
    return d;
}

uint64_t ref_clz(const struct ref_call *c)
{
    unsigned n = 0;

    while (n < TYPE->bits && !(c->in[0] >> (TYPE->bits - 1 - n) & 1))
        n++;
    return n;
}

uint64_t ref_popc(const struct ref_call *c)
{
    unsigned n = 0;

    for (unsigned i = 0; i < TYPE->bits; i++)
        n += c->in[0] >> i & 1;
    return n;
}

uint64_t ref_fns(const struct ref_call *c)
{
    const char *comma = strchr(c->form->text, ',');
    int         base = (int)strtol(strchr(comma + 1, ',') + 1, NULL, 0), offset = (int)(long long)ref_last_number(c->form);
    int         left = offset < 0 ? -offset : offset;

    for (int i = base; i >= 0 && i < 32; i += offset < 0 ? -1 : 1) {
        bool set = c->in[0] >> i & 1;
        if (offset == 0)
            return set ? (uint64_t)i : UINT32_MAX;
        left -= set;
        if (left == 0)
            return (uint64_t)i;
    }
    return UINT32_MAX;
}

/* The second result, if any: whether any bit was set, combined with the third predicate. */
uint64_t ref_logic(const struct ref_call *c)
{
    const char *table = strstr(c->form->text, "0x");
    unsigned    lut = (unsigned)strtoul(table, NULL, 16);
    bool        p = (c->in[0] & 1) ^ (strchr(c->form->text, '!') != NULL);
    uint64_t    d = 0, second = 0;

    for (unsigned i = 0; i < 32; i++)
        d |= (uint64_t)(lut >> ((c->in[0] >> i & 1) << 2 | (c->in[1] >> i & 1) << 1 | (c->in[2] >> i & 1)) & 1) << i;
    if (c->form->text[0] == '|')
        second = HAS("or") ? d || p : d && p;
    return d | second << 32;
}

uint64_t ref_permute(const struct ref_call *c)
{
    static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
    /* As in the manual's table: byte 3 first, for the selectors 0 to 3. */
    static const unsigned rows[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
                                        {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
                                        {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
    uint64_t              both = c->in[1] << 32 | (uint32_t)c->in[0], d = 0;
    unsigned              selectors = (unsigned)c->in[2];
    bool                  plain = true;

    for (unsigned m = 0; m < 6; m++) {
        if (HAS(modes[m])) {
            selectors = rows[m][c->in[2] & 3];
            plain = false;
        }
    }
    for (unsigned k = 0; k < 4; k++) {
        unsigned s = selectors >> (4 * k) & 15, byte = both >> (8 * (s & 7)) & 255;
        d |= (uint64_t)(plain && s & 8 ? (byte & 0x80 ? 255u : 0u) : byte) << (8 * k);
    }
    return d;
}

uint64_t ref_extend(const struct ref_call *c)
{
    unsigned n = HAS("wrap") ? (unsigned)c->in[1] & 31 : amount(c, 1, 32);

    return n == 0 ? 0 : ref_cut(32, ref_integer(&(struct ref_type){"", n, TYPE->kind, NULL}, c->in[0]));
}

uint64_t ref_dot(const struct ref_call *c)
{
    bool            two = strcmp(c->form->opcode, "dp2a") == 0;
    struct ref_type a = {"", two ? 16 : 8, TYPE->kind, NULL}, b = {"", 8, c->form->stype->kind, NULL};
    wide_t          sum = (wide_t)c->in[2];

    for (unsigned k = 0; k < (two ? 2 : 4); k++)
        sum += ref_integer(&a, c->in[0] >> (a.bits * k)) * ref_integer(&b, c->in[1] >> (8 * (k + (two && HAS("hi") ? 2 : 0))));
    return ref_cut(32, sum);
}

uint64_t ref_differences(const struct ref_call *c)
{
    unsigned        parts = c->form->opcode[8] == '2' ? 2 : 4, bits = 32 / parts;
    const char     *last = strrchr(c->form->words, '.');
    struct ref_type a = {"", bits, c->form->stype->kind, NULL}, b = {"", bits, last[1], NULL};
    wide_t          sum = 0;
    uint64_t        d = 0;

    for (unsigned k = 0; k < parts; k++) {
        wide_t x = ref_integer(&a, c->in[0] >> (bits * k)), y = ref_integer(&b, c->in[1] >> (bits * k)), apart = x > y ? x - y : y - x;
        sum += apart;
        d |= ref_cut(bits, apart) << (bits * k);
    }
    return HAS("add") ? ref_cut(32, sum + (wide_t)c->in[2]) : d;
}

uint64_t ref_choose(const struct ref_call *c)
{
    uint64_t x = HAS("ftz") ? ref_flushed(c->form->stype, c->in[2]) : c->in[2];
    bool     first =
        c->form->stype->kind == 's' ? (int32_t)(uint32_t)x >= 0 : !ref_is_nan(c->form->stype, x) && ref_float(c->form->stype, x) >= 0;

    return OUT((wide_t)c->in[first ? 0 : 1]);
}

REF_OPERATION(ref_select, OUT((wide_t)c->in[(c->in[2] & 1) ^ (strchr(c->form->text, '!') != NULL) ? 0 : 1]))

uint64_t ref_pack(const struct ref_call *c)
{
    unsigned half = TYPE->bits / 2;

    return ref_cut(half, (wide_t)c->in[1]) << half | ref_cut(half, (wide_t)c->in[0]);
}

REF_OPERATION(ref_unpack, OUT((wide_t)c->in[0]) >> (TYPE->bits / 2))

/* Whether the first step of the chain, always on inputs 0 and 1, carries out. */
static bool carry_in(const struct ref_call *c)
{
    bool sub = strncmp(c->form->text, "sub", 3) == 0;

    return sub ? OUT((wide_t)c->in[0]) < OUT((wide_t)c->in[1]) : ((uwide_t)OUT((wide_t)c->in[0]) + OUT((wide_t)c->in[1])) >> TYPE->bits & 1;
}

/* The tested step: its sum or difference in more bits than its type has. */
static wide_t chained(const struct ref_call *c)
{
    const char *op = c->form->opcode;
    wide_t      in = op[strlen(op) - 1] == 'c' ? carry_in(c) : 0, x = (wide_t)OUT((wide_t)c->in[0]), y = (wide_t)OUT((wide_t)c->in[1]);

    if (op[0] == 'm' && op[3] == '\0')
        return (wide_t)OUT(product(c, 0, 1, HAS("hi"))) + (wide_t)OUT((wide_t)c->in[2]);
    if (op[0] == 'm')
        return (wide_t)OUT(product(c, 1, 2, HAS("hi"))) + x + in;
    if (op[3] == 'c') {
        x = y;
        y = (wide_t)OUT((wide_t)c->in[2]);
    }
    return op[0] == 's' ? x - y - in : x + y + in;
}

/* After a step without carry in, the next step adds or subtracts its carry. */
uint64_t ref_carry(const struct ref_call *c)
{
    const char *op = c->form->opcode;
    wide_t      v = chained(c);

    if (op[strlen(op) - 1] == 'c')
        return OUT(v);
    return OUT(op[0] == 's' ? (v < 0 ? v - 1 : v) : v + (v >> TYPE->bits & 1));
}

uint64_t ref_carry_out(const struct ref_call *c)
{
    wide_t v = chained(c);

    return c->form->opcode[0] == 's' ? v >= 0 : v >> TYPE->bits & 1;
}

/* sub.cc, then addc: the code is 1 where nothing was borrowed. */
uint64_t ref_no_borrow(const struct ref_call *c)
{
    wide_t v = chained(c);

    return OUT((wide_t)c->in[2] + (v >= 0));
}

/* add.cc, then subc: without a carry 1 more is subtracted. */
uint64_t ref_borrow_of_sum(const struct ref_call *c)
{
    return OUT((wide_t)c->in[2] - 1 + (chained(c) >> TYPE->bits & 1));
}
