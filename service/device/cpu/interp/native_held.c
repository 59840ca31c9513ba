/* Registers that compiled code holds from barrier to barrier: of a chunk that left as one, only the first lane's number of what is the same in all lanes,
 * or a line, is in the arrays. Compiled code wants no more of it behind the barrier; anybody else wants all lanes. */
#include "device/cpu/interp/native_internal.h"

static bool is_in(const uint64_t *sets, size_t words, uint32_t block, uint32_t reg)
{
    return sets[block * words + reg / 64] >> (reg % 64) & 1;
}

#define FILL(name, type)                                                                                                                   \
    static void name(uint8_t *at, unsigned lanes, uint64_t stride)                                                                         \
    {                                                                                                                                      \
        type *v = (type *)(void *)at;                                                                                                      \
                                                                                                                                           \
        for (unsigned i = 1; i < lanes; i++)                                                                                               \
            v[i] = (type)(v[0] + i * (type)stride);                                                                                        \
    }
FILL(fill_8, uint8_t)
FILL(fill_16, uint16_t)
FILL(fill_32, uint32_t)
FILL(fill_64, uint64_t)
#undef FILL

static void fill_line(uint8_t *at, unsigned lanes, const struct native_line *line)
{
    uint64_t stride = (uint64_t)line->stride;

    switch (line->bytes) {
    case 1:
        fill_8(at, lanes, stride);
        break;
    case 2:
        fill_16(at, lanes, stride);
        break;
    case 4:
        fill_32(at, lanes, stride);
        break;
    default:
        fill_64(at, lanes, stride);
        break;
    }
}

/* Registers that are read from `block` on, or those of them that are in the set of `block_left`. */
static void fill_lines(struct native_call *c, uint32_t lane, uint32_t block, const uint64_t *only, uint32_t block_left)
{
    const struct code_native *n = c->run->grid->code->native;

    for (const struct native_line *l = n->lines; l < n->lines + n->lines_count; l++) {
        if (is_in(n->sets.live, n->sets.words, block, l->reg) && (!only || is_in(only, n->sets.words, block_left, l->reg)))
            fill_line(c->frame + c->stride * l->place + (size_t)lane * l->bytes, n->lanes, l);
    }
    c->held[lane] = 0;
}

void native_settle(struct native_call *c)
{
    fill_lines(c, c->lane, c->entered, NULL, 0);
}

void native_fill(struct native_call *c, uint32_t lane, uint32_t block, bool trusted)
{
    const struct native_sets *s = &c->run->grid->code->native->sets;

    if (!c->held[lane])
        return;
    if (trusted)
        fill_lines(c, lane, block, NULL, 0);
    else
        fill_lines(c, lane, block, s->changed, c->held[lane] - 1u);
}
