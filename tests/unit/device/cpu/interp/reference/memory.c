/* Loads, stores, atomic operations and copies on the four words of a thread, and among the threads of a warp. */
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPE      c->form->type
#define HAS(word) ref_has(c->form, word)

uint64_t ref_input(const struct ref_call *c, unsigned lane, unsigned k)
{
    return c->warp[lane * REF_INPUTS + k];
}

static uint64_t extended(const struct ref_type *t, uint64_t bits)
{
    return t->bits < 16 ? ref_cut(32, ref_integer(t, bits)) : ref_cut(t->bits, (wide_t)bits);
}

REF_OPERATION(ref_load, extended(TYPE, c->cell[0]))

/* The last element, extended to a 32-bit register if its type is smaller. */
uint64_t ref_load_vector(const struct ref_call *c)
{
    unsigned at = (HAS("v4") ? 3 : 1) * TYPE->bits;
    uint64_t bits = c->cell[at / 64] >> (at % 64);

    return TYPE->bits < 32 ? ref_cut(32, ref_integer(TYPE, bits)) : ref_cut(TYPE->bits, (wide_t)bits);
}

static void put(const struct ref_call *c, unsigned bits, unsigned at, uint64_t v)
{
    uint64_t mask = bits == 64 ? UINT64_MAX : (1ull << bits) - 1, *word = &c->cell[at / 64];

    *word = (*word & ~(mask << at % 64)) | (v & mask) << at % 64;
}

uint64_t ref_store(const struct ref_call *c)
{
    put(c, TYPE->bits, 0, c->in[1]);
    return UINT64_MAX;
}

uint64_t ref_store_vector(const struct ref_call *c)
{
    put(c, TYPE->bits, 0, c->in[2]);
    put(c, TYPE->bits, TYPE->bits, c->in[1]);
    return ref_cut(32, (wide_t)c->in[0]);
}

static uint64_t wrapped(const struct ref_call *c, uint64_t old, uint64_t bound)
{
    if (HAS("inc"))
        return old >= bound ? 0 : old + 1;
    return old == 0 || old > bound ? bound : old - 1;
}

static uint64_t float_sum(const struct ref_call *c)
{
    struct ref_form plain = *c->form;
    struct ref_call one = *c;

    snprintf(plain.words, sizeof plain.words, "add");
    one.form = &plain;
    return ref_float_add(&one);
}

/* The cell's new value; input 0 was the old one. */
static uint64_t updated(const struct ref_call *c)
{
    wide_t a = ref_integer(TYPE, c->in[0]), b = ref_integer(TYPE, c->in[1]);

    if (HAS("add") && (ref_is_float(TYPE) || TYPE->element))
        return float_sum(c);
    if (HAS("cas"))
        return a == b ? c->in[2] : c->in[0];
    if (HAS("inc") || HAS("dec"))
        return wrapped(c, (uint64_t)a, (uint64_t)b);
    return (uint64_t)(HAS("add")   ? a + b
                      : HAS("min") ? (a < b ? a : b)
                      : HAS("max") ? (a > b ? a : b)
                      : HAS("and") ? (a & b)
                      : HAS("or")  ? (a | b)
                      : HAS("xor") ? (a ^ b)
                                   : b);
}

uint64_t ref_atom(const struct ref_call *c)
{
    uint64_t old = ref_cut(TYPE->bits, (wide_t)c->in[0]);

    put(c, TYPE->bits, 0, updated(c));
    return old;
}

uint64_t ref_red(const struct ref_call *c)
{
    put(c, TYPE->bits, 0, updated(c));
    return UINT64_MAX;
}

/* Adds inputs 0 and 1 to the two halves of word 0. */
uint64_t ref_atom_vector(const struct ref_call *c)
{
    uint64_t        old = c->cell[0], in[REF_INPUTS] = {old & UINT32_MAX, c->in[0]}, low, high;
    struct ref_call one = *c;

    one.in = in;
    low = float_sum(&one);
    in[0] = old >> 32;
    in[1] = c->in[1];
    high = float_sum(&one);
    c->cell[0] = high << 32 | low;
    return strcmp(c->form->opcode, "atom") == 0 ? old & UINT32_MAX : ref_cut(32, (wide_t)c->in[0]);
}

REF_OPERATION(ref_copy, c->in[3])

/* 8 bytes: the first ones, up to 7 as input 0 says, are from the source; the others are 0. */
REF_OPERATION(ref_copy_part, ref_cut(8 * (c->in[0] & 7), (wide_t)c->in[2]))

/* The text names the space, first in the address computation. */
uint64_t ref_in_space(const struct ref_call *c)
{
    const char *t = c->form->text;
    const char *made = strncmp(t, "cvta.shared", 11) == 0 ? "shared" : strncmp(t, "cvta.local", 10) == 0 ? "local" : "global";

    return HAS(made) || (strcmp(made, "shared") == 0 && HAS("shared::cta"));
}

/* Thread t has two neighbours of row t / 4, or of column t / 4 after transposition. */
uint64_t ref_load_matrix(const struct ref_call *c)
{
    unsigned line = c->lane / 4, first = c->lane % 4 * 2;
    uint64_t d = 0;

    for (unsigned k = 0; k < 2; k++) {
        unsigned row = HAS("trans") ? first + k : line, column = HAS("trans") ? line : first + k;
        d |= (ref_input(c, row, column / 4) >> (column % 4 * 16) & 0xffff) << (16 * k);
    }
    return d;
}

uint64_t ref_activemask(const struct ref_call *c)
{
    (void)c;
    return UINT32_MAX;
}

REF_OPERATION(ref_elect, c->lane == 0 ? 1ull << 32 : 0)

static uint64_t masked(const struct ref_call *c, unsigned lane)
{
    const char *mask = strchr(strchr(c->form->text, ',') + 1, ',') + 1; /* of the `and` before it */

    return ref_input(c, lane, 0) & strtoull(mask, NULL, 0);
}

uint64_t ref_match(const struct ref_call *c)
{
    uint64_t same = 0;

    for (unsigned i = 0; i < REF_WARP; i++)
        same |= (uint64_t)(masked(c, i) == masked(c, c->lane)) << i;
    if (HAS("any"))
        return same;
    return same == UINT32_MAX ? UINT32_MAX | 1ull << 32 : 0;
}

uint64_t ref_redux(const struct ref_call *c)
{
    wide_t v = ref_integer(TYPE, ref_input(c, 0, 0));

    for (unsigned i = 1; i < REF_WARP; i++) {
        wide_t x = ref_integer(TYPE, ref_input(c, i, 0));
        v = HAS("add")   ? v + x
            : HAS("min") ? (x < v ? x : v)
            : HAS("max") ? (x > v ? x : v)
            : HAS("and") ? (v & x)
            : HAS("or")  ? (v | x)
                         : (v ^ x);
    }
    return ref_cut(32, v);
}

static bool predicate(const struct ref_call *c, unsigned lane)
{
    return (ref_input(c, lane, 0) & 1) ^ (strchr(c->form->text, '!') != NULL);
}

uint64_t ref_vote(const struct ref_call *c)
{
    uint64_t ballot = 0;

    for (unsigned i = 0; i < REF_WARP; i++)
        ballot |= (uint64_t)predicate(c, i) << i;
    return HAS("ballot") ? ballot : HAS("all") ? ballot == UINT32_MAX : HAS("any") ? ballot != 0 : ballot == 0 || ballot == UINT32_MAX;
}

/* Over all threads of the block, whose inputs start with those of the first thread. */
uint64_t ref_bar_red(const struct ref_call *c)
{
    struct ref_call block = *c;
    unsigned        holds = 0;

    block.warp = c->block;
    for (unsigned i = 0; i < REF_THREADS; i++)
        holds += predicate(&block, i);
    return HAS("popc") ? holds : HAS("and") ? holds == REF_THREADS : holds != 0;
}

/* The second result: whether the source is in the segment. */
uint64_t ref_shuffle(const struct ref_call *c)
{
    const char *at = strchr(strchr(c->form->text, ',') + 1, ',') + 1;
    unsigned    b = strncmp(at, " %r2", 4) == 0 ? (unsigned)c->in[1] & 31 : (unsigned)strtoul(at, NULL, 0);
    unsigned    k = (unsigned)strtoul(strchr(at, ',') + 1, NULL, 0), clamp = k & 31, segment = k >> 8 & 31, lane = c->lane;
    unsigned    most = (lane & segment) | (clamp & ~segment), least = lane & segment, from;
    bool        in;

    if (HAS("up")) {
        from = lane - b;
        in = (int)from >= (int)most;
    } else {
        from = HAS("down") ? lane + b : HAS("bfly") ? lane ^ b : (least | (b & ~segment));
        in = from <= most;
    }
    return ref_cut(32, (wide_t)ref_input(c, in ? from : lane, 0)) | (uint64_t)in << 32;
}

REF_OPERATION(ref_branch, c->in[predicate(c, c->lane) ? 0 : 1])

uint64_t ref_branch_table(const struct ref_call *c)
{
    static const unsigned target[] = {0, 1, 2, 1};

    return c->in[target[c->in[0] & 3]];
}

REF_OPERATION(ref_call_twice, 2 * c->in[0])

/* A thread that has left writes nothing. */
REF_OPERATION(ref_left, predicate(c, c->lane) ? REF_LEFT : c->in[0])

/* Block 0 of a cluster of one. */
uint64_t ref_zero(const struct ref_call *c)
{
    (void)c;
    return 0;
}

REF_OPERATION(ref_second_word, c->cell[1])

/* Of two expected arrivals, the first does not end the phase, the second does. */
uint64_t ref_mbarrier_phase(const struct ref_call *c)
{
    (void)c;
    return 2;
}

/* Before the first phase ends, the previous one, of odd parity, counts as ended; afterwards the first, of even parity. */
REF_OPERATION(ref_mbarrier_parity, c->in[0] & 1 ? 1 : 2)

/* The state after the first arrival: one less than expected. */
REF_OPERATION(ref_mbarrier_count, (c->in[0] & 255) + 1)

/* A thread that drops out is missing from the next phase's count. */
REF_OPERATION(ref_mbarrier_drop, (c->in[0] & 255) + 1)

/* An arrival of copies counts as an expected one only with .noinc. */
REF_OPERATION(ref_mbarrier_copies, strstr(c->form->text, "noinc") ? 2 : 3)
