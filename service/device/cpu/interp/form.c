/* Runs operations on said values (device/cpu/interp/form.h): the algebra of forms, and filling arrays where it ends. */
#include "device/cpu/interp/form.h"

#include "device/cpu/interp/ops/aim.h"

static bool uniform(const struct form *f)
{
    return f->step_x == 0 && f->step_y == 0;
}

static uint64_t cut(uint64_t v, unsigned width)
{
    return width == 8 ? v : v & ((1ull << (8 * width)) - 1);
}

#define FILL_ALIKE(T)                                                                            \
    do {                                                                                         \
        T *restrict    to = LANE(T, place);                                                      \
        const T        value = (T)f->base;                                                       \
        const uint32_t count = l->count;                                                         \
        for (uint32_t i = 0; i < count; i++)                                                     \
            to[i] = value;                                                                       \
    } while (0)
/* Row by row of the block; the bounds are read once, since what is written could be them for all the compiler knows. */
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

static void fill_alike(struct lanes *l, const struct form *f, uint32_t place, unsigned width)
{
    switch (width) {
    case 1:  memset(LANE(uint8_t, place), (int)(uint8_t)f->base, l->count); break;
    case 2:  FILL_ALIKE(uint16_t); break;
    case 4:  FILL_ALIKE(uint32_t); break;
    default: FILL_ALIKE(uint64_t); break;
    }
}

void form_fill(struct lanes *l, struct form *f, uint32_t place, unsigned width)
{
    if (f->state & FORM_FILLED)
        return;
    f->state |= FORM_FILLED;
    if (uniform(f))
        fill_alike(l, f, place, width);
    else if (width == 4)
        FILL(uint32_t);
    else
        FILL(uint64_t);
}

bool form_special(const struct lanes *l, int special, uint64_t value, struct form *out)
{
    bool one_plane = l->count == l->width * l->height;

    *out = (struct form){.state = FORM_SAID};
    switch (special) {
    case PTX_SPECIAL_TID_X: out->step_x = l->width > 1; return true;
    case PTX_SPECIAL_TID_Y: out->step_y = l->height > 1; return true;
    case PTX_SPECIAL_TID_Z: return one_plane;
    case PTX_SPECIAL_LANEID: case PTX_SPECIAL_WARPID: return false;
    case PTX_SPECIAL_LANEMASK_EQ: case PTX_SPECIAL_LANEMASK_LT: case PTX_SPECIAL_LANEMASK_LE:
    case PTX_SPECIAL_LANEMASK_GE: case PTX_SPECIAL_LANEMASK_GT: return false;
    default: out->base = value; return true;
    }
}

struct form *form_of_address(struct lanes *l, const struct op *o)
{
    struct form *f;

    if (!o->forms || !o->addresses || o->forms->source[0].form == NO_FORM)
        return NULL;
    f = &activation_now(l->run)->forms[o->forms->source[0].form];
    return f->state & FORM_SAID ? f : NULL;
}

/* Adds `steps` times a step to one end of a range. */
static bool widen_range(uint64_t step, uint32_t steps, int64_t *low, int64_t *high)
{
    int64_t  by;
    int64_t *end = (int64_t)step < 0 ? low : high;

    return !__builtin_mul_overflow((int64_t)step, (int64_t)steps, &by) && !__builtin_add_overflow(*end, by, end);
}

/* A form whose numbers are exact: no thread's value wraps around. Steps are signed. */
struct exact {
    struct form f;
    int64_t     low, high; /* of all threads' values */
};

/* Adds to the ends of the range what the steps add to the base. */
static bool spread_out(const struct lanes *l, struct exact *e)
{
    return widen_range(e->f.step_x, l->width - 1, &e->low, &e->high) && widen_range(e->f.step_y, l->height - 1, &e->low, &e->high);
}

/* False when some thread's value may wrap, or, of 64 unsigned bits, is not below 2^63. */
static bool exactly(const struct lanes *l, const struct form *f, unsigned width, bool is_signed, struct exact *e)
{
    e->f = *f;
    if (width == 4) {
        e->f.base = is_signed ? (uint64_t)(int64_t)(int32_t)(uint32_t)f->base : (uint32_t)f->base;
        e->f.step_x = (uint64_t)(int64_t)(int32_t)(uint32_t)f->step_x;
        e->f.step_y = (uint64_t)(int64_t)(int32_t)(uint32_t)f->step_y;
    }
    e->low = e->high = (int64_t)e->f.base;
    if (!uniform(f) && !spread_out(l, e))
        return false;
    if (width == 4)
        return is_signed ? e->low >= INT32_MIN && e->high <= INT32_MAX : e->low >= 0 && e->high <= UINT32_MAX;
    return is_signed || ((int64_t)e->f.base >= 0 && e->low >= 0);
}

/* -1: it depends on the thread. */
static int compared(enum compare how, const struct exact *x, const struct exact *y)
{
    bool below = x->high < y->low, above = x->low > y->high, not_above = x->high <= y->low, not_below = x->low >= y->high;

    switch (how) {
    case CMP_LT: return below ? 1 : not_below ? 0 : -1;
    case CMP_LE: return not_above ? 1 : above ? 0 : -1;
    case CMP_GT: return above ? 1 : not_above ? 0 : -1;
    case CMP_GE: return not_below ? 1 : below ? 0 : -1;
    case CMP_EQ: return below || above ? 0 : not_above && not_below ? 1 : -1;
    case CMP_NE: return below || above ? 1 : not_above && not_below ? 0 : -1;
    /* Of numbers that may be none. */
    case CMP_EQU: case CMP_NEU: case CMP_LTU: case CMP_LEU: case CMP_GTU: case CMP_GEU: case CMP_NUM: case CMP_NAN: case COMPARES: break;
    }
    return -1;
}

static bool say_comparison(const struct lanes *l, const struct op_forms *p, const struct form *x, const struct form *y, struct form *to)
{
    struct exact a, b;
    int          holds;

    if (!exactly(l, x, p->source[0].width, p->is_signed, &a) || !exactly(l, y, p->source[1].width, p->is_signed, &b))
        return false;
    holds = compared(p->how, &a, &b);
    to->base = holds == 1;
    return holds >= 0;
}

static struct form scaled(const struct form *f, uint64_t by)
{
    return (struct form){f->base * by, f->step_x * by, f->step_y * by, 0};
}

/* At most one factor may grow with the thread. */
static bool say_product(const struct form *x, const struct form *y, struct form *to)
{
    if (!uniform(x) && !uniform(y))
        return false;
    *to = uniform(y) ? scaled(x, y->base) : scaled(y, x->base);
    return true;
}

static bool say_wide_product(const struct lanes *l, const struct op_forms *p, const struct form *x, const struct form *y, struct form *to)
{
    struct exact a, b;

    return p->source[0].width == 4 && exactly(l, x, 4, p->is_signed, &a) && exactly(l, y, 4, p->is_signed, &b)
           && say_product(&a.f, &b.f, to);
}

static bool say_wide(const struct lanes *l, const struct op_forms *p, const struct form *x, struct form *to)
{
    struct exact a;

    if (!exactly(l, x, 4, p->is_signed, &a))
        return false;
    *to = a.f;
    return true;
}

static struct form sum(const struct form *x, const struct form *y)
{
    return (struct form){x->base + y->base, x->step_x + y->step_x, x->step_y + y->step_y, 0};
}

static bool say_bits(const struct op_forms *p, const struct form *x, const struct form *y, struct form *to)
{
    if (!uniform(x) || !uniform(y))
        return false;
    to->base = p->rule == RULE_AND ? x->base & y->base : p->rule == RULE_OR ? x->base | y->base
               : (uint32_t)y->base < 8u * p->width ? x->base >> (uint32_t)y->base : 0;
    return true;
}

/* Sources are said. */
static bool say_by_rule(const struct lanes *l, const struct op *o, const struct form *const s[FORM_SOURCES_MAX], struct form *to)
{
    const struct op_forms *p = o->forms;
    struct form            t;

    switch (p->rule) {
    case RULE_NARROW:
    case RULE_MOVE:   *to = *s[0]; return true;
    case RULE_ADD:    *to = sum(s[0], s[1]); return true;
    case RULE_SUB:    t = scaled(s[1], UINT64_MAX); *to = sum(s[0], &t); return true;
    case RULE_OFFSET: *to = *s[0]; to->base += (uint64_t)o->immediate; return true;
    case RULE_MUL:    return say_product(s[0], s[1], to);
    case RULE_MAD:
        if (!say_product(s[0], s[1], &t))
            return false;
        *to = sum(&t, s[2]);
        return true;
    case RULE_SHL:
        if (!uniform(s[1]))
            return false;
        *to = scaled(s[0], (uint32_t)s[1]->base < 8u * p->width ? 1ull << (uint32_t)s[1]->base : 0);
        return true;
    case RULE_MUL_WIDE: return say_wide_product(l, p, s[0], s[1], to);
    case RULE_MAD_WIDE:
        if (!say_wide_product(l, p, s[0], s[1], &t))
            return false;
        *to = sum(&t, s[2]);
        return true;
    case RULE_WIDEN:    return say_wide(l, p, s[0], to);
    case RULE_AND: case RULE_OR: case RULE_SHR: return say_bits(p, s[0], s[1], to);
    case RULE_COMPARE:  return say_comparison(l, p, s[0], s[1], to);
    case RULE_ALIKE:
    case RULE_LOAD:
    case RULE_STORE: break;
    }
    return false;
}

static void put(struct lanes *l, const struct form_source *s, uint32_t lane, uint64_t v)
{
    switch (s->width) {
    case 1:  LANE(uint8_t, s->place)[lane] = (uint8_t)v; break;
    case 2:  LANE(uint16_t, s->place)[lane] = (uint16_t)v; break;
    case 4:  LANE(uint32_t, s->place)[lane] = (uint32_t)v; break;
    default: LANE(uint64_t, s->place)[lane] = v; break;
    }
}

static uint64_t get(struct lanes *l, uint32_t place, unsigned width, uint32_t lane)
{
    switch (width) {
    case 1:  return LANE(uint8_t, place)[lane];
    case 2:  return LANE(uint16_t, place)[lane];
    case 4:  return LANE(uint32_t, place)[lane];
    default: return LANE(uint64_t, place)[lane];
    }
}

/* The first active lane does it for all. */
static void run_once(struct lanes *l, const struct form *const s[FORM_SOURCES_MAX], const struct op *o, struct form *to)
{
    const struct op_forms *p = o->forms;
    const uint32_t         high = l->high;
    const bool             dense = l->dense;

    for (unsigned i = 0; i < p->count; i++)
        put(l, &p->source[i], l->low, s[i]->base);
    l->high = l->low + 1;
    l->dense = true;
    o->run(l, o);
    l->high = high;
    l->dense = dense;
    to->base = get(l, o->d, p->width, l->low);
}

/* One address can mean memory of each lane's own. */
static bool memory_is_shared(const struct op *o, uint64_t address)
{
    return o->mode == OP_GENERIC ? space_of(&address) != OP_LOCAL : o->mode != OP_LOCAL && o->mode != OP_PARAM;
}

/* False: it has to be done lane by lane. */
static bool say(struct lanes *l, struct form *forms, const struct op *o)
{
    const struct op_forms *p = o->forms;
    const struct form     *s[FORM_SOURCES_MAX];
    struct form            to = {0};
    bool                   same = true;

    for (unsigned i = 0; i < p->count; i++) {
        if (p->source[i].form == NO_FORM || !(forms[p->source[i].form].state & FORM_SAID))
            return false;
        s[i] = &forms[p->source[i].form];
        same &= uniform(s[i]);
    }
    if (!say_by_rule(l, o, s, &to)) {
        if (!same || (p->rule == RULE_LOAD && !memory_is_shared(o, s[0]->base + (uint64_t)o->immediate)))
            return false;
        run_once(l, s, o, &to);
    }
    to.base = cut(to.base, p->width);
    to.step_x = cut(to.step_x, p->width);
    to.step_y = cut(to.step_y, p->width);
    to.state = FORM_SAID;
    forms[p->result] = to;
    if (p->wanted)
        form_fill(l, &forms[p->result], o->d, p->width);
    return true;
}

void form_run(struct lanes *l, struct form *forms, const struct op *o, bool all)
{
    const struct op_forms *p = o->forms;

    if (l->low >= l->high)
        return; /* all have exited in a call */
    if (p->result != NO_FORM && (all || p->local) && say(l, forms, o))
        return;
    for (unsigned i = p->rule == RULE_LOAD || p->rule == RULE_STORE; i < p->count; i++) {
        if (p->source[i].form != NO_FORM)
            form_fill(l, &forms[p->source[i].form], p->source[i].place, p->source[i].width);
    }
    if (p->result != NO_FORM) {
        if (!all && !p->local)
            form_fill(l, &forms[p->result], o->d, p->width);
        forms[p->result].state = FORM_FILLED;
    }
    o->run(l, o);
}
