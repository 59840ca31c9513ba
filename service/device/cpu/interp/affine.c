/* Runs operations on affine values (device/cpu/interp/affine.h), and fills arrays where an operation needs them. */
#include "device/cpu/interp/affine.h"

#include "device/cpu/interp/ops/access.h"

static bool is_uniform(const struct affine_value *f)
{
    return f->step_x == 0 && f->step_y == 0;
}

static uint64_t truncate_to(uint64_t v, unsigned width)
{
    return width == 8 ? v : v & ((1ull << (8 * width)) - 1);
}

/* The bounds are read once: the compiler must assume that the stores may change them. */
#define FILL_UNIFORM(T)                                                           \
    do {                                                                  \
        T *restrict    to = LANE(T, place);                               \
        const T        value = (T)v;                                      \
        const uint32_t count = l->count;                                  \
        for (uint32_t i = 0; i < count; i++)                              \
            to[i] = value;                                                \
    } while (0)

void lanes_fill(struct lanes *l, uint32_t place, unsigned width, uint64_t v)
{
    switch (width) {
    case 1:  memset(LANE(uint8_t, place), (int)(uint8_t)v, l->count); break;
    case 2:  FILL_UNIFORM(uint16_t); break;
    case 4:  FILL_UNIFORM(uint32_t); break;
    default: FILL_UNIFORM(uint64_t); break;
    }
}

/* Row by row of the block. The bounds are read once, as in lanes_fill(). */
#define FILL(T)                                                                                  \
    do {                                                                                         \
        T *restrict    to = LANE(T, place);                                                      \
        const T        step = (T)f->step_x;                                                      \
        const uint32_t count = l->count, row_lanes = l->width, height = l->height;               \
        for (uint32_t row = 0, y = 0; row < count; row += row_lanes, y = y + 1 == height ? 0 : y + 1) { \
            const T first = (T)(f->base + f->step_y * y);                                        \
            for (uint32_t x = 0; x < row_lanes; x++)                                             \
                to[row + x] = (T)(first + (T)x * step);                                          \
        }                                                                                        \
    } while (0)

void affine_fill(struct lanes *l, struct affine_value *f, uint32_t place, unsigned width)
{
    if (f->state & AFFINE_FILLED)
        return;
    f->state |= AFFINE_FILLED;
    if (is_uniform(f))
        lanes_fill(l, place, width, f->base);
    else if (width == 4)
        FILL(uint32_t);
    else
        FILL(uint64_t);
}

bool affine_special(const struct lanes *l, int special, uint64_t value, struct affine_value *out)
{
    bool one_plane = l->count == l->width * l->height;

    *out = (struct affine_value){.state = AFFINE_KNOWN};
    switch (special) {
    case PTX_SPECIAL_TID_X: out->step_x = l->width > 1; return true;
    case PTX_SPECIAL_TID_Y: out->step_y = l->height > 1; return true;
    case PTX_SPECIAL_TID_Z: return one_plane;
    default: out->base = value; return ptx_special_kinds[special] != PTX_OF_LANE;
    }
}

struct affine_value *affine_address(struct lanes *l, const struct op *o)
{
    struct affine_value *f;

    if (!o->affine || !o->addresses || o->affine->source[0].affine == NO_AFFINE)
        return NULL;
    f = &activation_now(l->run)->affine[o->affine->source[0].affine];
    return f->state & AFFINE_KNOWN ? f : NULL;
}

/* Adds `steps` times a step to one end of a range. */
static bool widen_range(uint64_t step, uint32_t steps, int64_t *low, int64_t *high)
{
    int64_t  by;
    int64_t *end = (int64_t)step < 0 ? low : high;

    return !__builtin_mul_overflow((int64_t)step, (int64_t)steps, &by) && !__builtin_add_overflow(*end, by, end);
}

/* An affine value whose numbers are exact: no thread's value wraps around. Steps are signed. */
struct exact {
    struct affine_value f;
    int64_t             low, high; /* of all threads' values */
};

/* Adds to the ends of the range what the steps add to the base. */
static bool spread_out(const struct lanes *l, struct exact *e)
{
    return widen_range(e->f.step_x, l->width - 1, &e->low, &e->high) && widen_range(e->f.step_y, l->height - 1, &e->low, &e->high);
}

/* False: some thread's value may wrap, or is of 64 unsigned bits and not below 2^63. */
static bool exact_range_of(const struct lanes *l, const struct affine_value *f, unsigned width, bool is_signed, struct exact *e)
{
    e->f = *f;
    if (width == 4) {
        e->f.base = is_signed ? (uint64_t)(int64_t)(int32_t)(uint32_t)f->base : (uint32_t)f->base;
        e->f.step_x = (uint64_t)(int64_t)(int32_t)(uint32_t)f->step_x;
        e->f.step_y = (uint64_t)(int64_t)(int32_t)(uint32_t)f->step_y;
    }
    e->low = e->high = (int64_t)e->f.base;
    if (!is_uniform(f) && !spread_out(l, e))
        return false;
    if (width == 4)
        return is_signed ? e->low >= INT32_MIN && e->high <= INT32_MAX : e->low >= 0 && e->high <= UINT32_MAX;
    return is_signed || ((int64_t)e->f.base >= 0 && e->low >= 0);
}

/* 1 or 0: for all threads; -1: it depends on the thread. */
static int compare_ranges(enum compare how, const struct exact *x, const struct exact *y)
{
    bool below = x->high < y->low, above = x->low > y->high, not_above = x->high <= y->low, not_below = x->low >= y->high;

    switch (how) {
    case CMP_LT: return below ? 1 : not_below ? 0 : -1;
    case CMP_LE: return not_above ? 1 : above ? 0 : -1;
    case CMP_GT: return above ? 1 : not_above ? 0 : -1;
    case CMP_GE: return not_below ? 1 : below ? 0 : -1;
    case CMP_EQ: return below || above ? 0 : not_above && not_below ? 1 : -1;
    case CMP_NE: return below || above ? 1 : not_above && not_below ? 0 : -1;
    /* Floats only. */
    case CMP_EQU: case CMP_NEU: case CMP_LTU: case CMP_LEU: case CMP_GTU: case CMP_GEU: case CMP_NUM: case CMP_NAN: case COMPARES: break;
    }
    return -1;
}

static bool affine_comparison(const struct lanes *l, const struct op_affine *p, const struct affine_value *x,
                              const struct affine_value *y, struct affine_value *to)
{
    struct exact a, b;
    int          holds;

    if (!exact_range_of(l, x, p->source[0].width, p->is_signed, &a) || !exact_range_of(l, y, p->source[1].width, p->is_signed, &b))
        return false;
    holds = compare_ranges(p->how, &a, &b);
    to->base = holds == 1;
    return holds >= 0;
}

static struct affine_value affine_scaled(const struct affine_value *f, uint64_t by)
{
    return (struct affine_value){f->base * by, f->step_x * by, f->step_y * by, 0};
}

/* At most one factor may grow with the thread. */
static bool affine_product(const struct affine_value *x, const struct affine_value *y, struct affine_value *to)
{
    if (!is_uniform(x) && !is_uniform(y))
        return false;
    *to = is_uniform(y) ? affine_scaled(x, y->base) : affine_scaled(y, x->base);
    return true;
}

static bool affine_wide_product(const struct lanes *l, const struct op_affine *p, const struct affine_value *x,
                                const struct affine_value *y, struct affine_value *to)
{
    struct exact a, b;

    return p->source[0].width == 4 && exact_range_of(l, x, 4, p->is_signed, &a) && exact_range_of(l, y, 4, p->is_signed, &b)
           && affine_product(&a.f, &b.f, to);
}

static bool affine_widened(const struct lanes *l, const struct op_affine *p, const struct affine_value *x, struct affine_value *to)
{
    struct exact a;

    if (!exact_range_of(l, x, 4, p->is_signed, &a))
        return false;
    *to = a.f;
    return true;
}

static struct affine_value affine_sum(const struct affine_value *x, const struct affine_value *y)
{
    return (struct affine_value){x->base + y->base, x->step_x + y->step_x, x->step_y + y->step_y, 0};
}

static bool affine_bits(const struct op_affine *p, const struct affine_value *x, const struct affine_value *y, struct affine_value *to)
{
    if (!is_uniform(x) || !is_uniform(y))
        return false;
    to->base = p->rule == RULE_AND ? x->base & y->base : p->rule == RULE_OR ? x->base | y->base
               : (uint32_t)y->base < 8u * p->width ? x->base >> (uint32_t)y->base : 0;
    return true;
}

/* All sources are affine. */
static bool affine_by_rule(const struct lanes *l, const struct op *o, const struct affine_value *const s[AFFINE_SOURCES_MAX],
                           struct affine_value *to)
{
    const struct op_affine *p = o->affine;
    struct affine_value     t;

    switch (p->rule) {
    case RULE_NARROW:
    case RULE_MOVE:   *to = *s[0]; return true;
    case RULE_ADD:    *to = affine_sum(s[0], s[1]); return true;
    case RULE_SUB:    t = affine_scaled(s[1], UINT64_MAX); *to = affine_sum(s[0], &t); return true;
    case RULE_OFFSET: *to = *s[0]; to->base += (uint64_t)o->immediate; return true;
    case RULE_MUL:    return affine_product(s[0], s[1], to);
    case RULE_MAD:
        if (!affine_product(s[0], s[1], &t))
            return false;
        *to = affine_sum(&t, s[2]);
        return true;
    case RULE_SHL:
        if (!is_uniform(s[1]))
            return false;
        *to = affine_scaled(s[0], (uint32_t)s[1]->base < 8u * p->width ? 1ull << (uint32_t)s[1]->base : 0);
        return true;
    case RULE_MUL_WIDE: return affine_wide_product(l, p, s[0], s[1], to);
    case RULE_MAD_WIDE:
        if (!affine_wide_product(l, p, s[0], s[1], &t))
            return false;
        *to = affine_sum(&t, s[2]);
        return true;
    case RULE_WIDEN:    return affine_widened(l, p, s[0], to);
    case RULE_AND: case RULE_OR: case RULE_SHR: return affine_bits(p, s[0], s[1], to);
    case RULE_COMPARE:  return affine_comparison(l, p, s[0], s[1], to);
    case RULE_UNIFORM:
    case RULE_LOAD:
    case RULE_STORE: break;
    }
    return false;
}

/* The first active lane does it for all. */
static void run_once(struct lanes *l, const struct affine_value *const s[AFFINE_SOURCES_MAX], const struct op *o, struct affine_value *to)
{
    const struct op_affine *p = o->affine;
    const uint32_t          high = l->high;
    const bool              dense = l->dense;

    for (unsigned i = 0; i < p->count; i++)
        lane_write(l, p->source[i].place, p->source[i].width, l->low, s[i]->base);
    l->high = l->low + 1;
    l->dense = true;
    o->run(l, o);
    l->high = high;
    l->dense = dense;
    to->base = lane_read(l, o->d, p->width, l->low);
}

/* In some spaces one address means memory of each lane's own. */
static bool memory_is_shared(const struct op *o, uint64_t address)
{
    return o->mode == OP_GENERIC ? space_of(&address) != OP_LOCAL : o->mode != OP_LOCAL && o->mode != OP_PARAM;
}

/* False: the operation must run lane by lane. */
static bool compute_affine(struct lanes *l, struct affine_value *affine, const struct op *o)
{
    const struct op_affine    *p = o->affine;
    const struct affine_value *s[AFFINE_SOURCES_MAX];
    struct affine_value        to = {0};
    bool                       same = true;

    for (unsigned i = 0; i < p->count; i++) {
        if (p->source[i].affine == NO_AFFINE || !(affine[p->source[i].affine].state & AFFINE_KNOWN))
            return false;
        s[i] = &affine[p->source[i].affine];
        same &= is_uniform(s[i]);
    }
    if (!affine_by_rule(l, o, s, &to)) {
        if (!same || (p->rule == RULE_LOAD && !memory_is_shared(o, s[0]->base + (uint64_t)o->immediate)))
            return false;
        run_once(l, s, o, &to);
    }
    to.base = truncate_to(to.base, p->width);
    to.step_x = truncate_to(to.step_x, p->width);
    to.step_y = truncate_to(to.step_y, p->width);
    to.state = AFFINE_KNOWN;
    affine[p->result] = to;
    if (p->wanted)
        affine_fill(l, &affine[p->result], o->d, p->width);
    return true;
}

void affine_run(struct lanes *l, struct affine_value *affine, const struct op *o, bool all)
{
    const struct op_affine *p = o->affine;

    if (l->low >= l->high)
        return; /* all have exited in a call */
    if (p->result != NO_AFFINE && (all || p->local) && compute_affine(l, affine, o))
        return;
    for (unsigned i = p->rule == RULE_LOAD || p->rule == RULE_STORE; i < p->count; i++) {
        if (p->source[i].affine != NO_AFFINE)
            affine_fill(l, &affine[p->source[i].affine], p->source[i].place, p->source[i].width);
    }
    if (p->result != NO_AFFINE) {
        if (!all && !p->local)
            affine_fill(l, &affine[p->result], o->d, p->width);
        affine[p->result].state = AFFINE_FILLED;
    }
    o->run(l, o);
}
