/* Matrix operations of a warp, mma and ldmatrix, element by element: each warp's fragments are gathered, multiplied and dealt again.
 * Sums are exact or nearly so in binary64 and rounded once, where a GPU's tensor cores cut off between the steps. */
#include "device/cpu/interp_decode.h"

enum { M_MAX = 16, N_MAX = 8, K_MAX = 32, MATRIX_ROWS = 8, MATRIX_ROW_BYTES = 16, GROUP_LANES = 4 };

struct mma_plan {
    unsigned                    m, k; /* n is always 8 */
    enum ptx_type               d_type, a_type, b_type;
    bool                        finite; /* `.satfinite` */
    const struct vector_places *d, *a, *b, *c;
};

struct fragments {
    double a[M_MAX][K_MAX], b[K_MAX][N_MAX], c[M_MAX][N_MAX];
};

/* Elements of 32 bits. */
static unsigned packed(enum ptx_type t)
{
    return t == PTX_TF32 || t == PTX_F32 || t == PTX_S32 ? 1 : t == PTX_U8 || t == PTX_S8 ? 4 : 2;
}

static double element_of(uint32_t bits, unsigned i, enum ptx_type t)
{
    switch ((int)t) {
    case PTX_F16:  return (double)f32_from_f16((uint16_t)(bits >> (16 * i)));
    case PTX_BF16: return (double)f32_from_bf16((uint16_t)(bits >> (16 * i)));
    case PTX_TF32: return (double)f32_of_bits(bits & ~0x1fffu);
    case PTX_F32:  return (double)f32_of_bits(bits);
    case PTX_S8:   return (int8_t)(bits >> (8 * i));
    case PTX_U8:   return (uint8_t)(bits >> (8 * i));
    default:       return (int32_t)bits;
    }
}

static uint32_t read_register(struct lanes *l, const struct vector_places *v, unsigned r, uint32_t lane)
{
    return lane < l->count && v->reg_bytes[r] ? LANE(uint32_t, v->place[r])[lane] : 0;
}

/* Where the elements of a lane lie: in group `lane / 4`, at `lane % 4`. */
static void gather_lane(struct lanes *l, const struct mma_plan *p, struct fragments *f, uint32_t warp, unsigned lane)
{
    unsigned g = lane / GROUP_LANES, t = lane % GROUP_LANES, e = packed(p->a_type), rows = p->m / 8, pairs = packed(p->d_type);

    for (unsigned r = 0; r < p->a->count; r++) {
        for (unsigned i = 0; i < e; i++)
            f->a[g + 8 * (r % rows)][t * e + i + r / rows * GROUP_LANES * e] = element_of(read_register(l, p->a, r, warp + lane), i, p->a_type);
    }
    for (unsigned r = 0; r < p->b->count; r++) {
        for (unsigned i = 0; i < e; i++)
            f->b[t * e + i + r * GROUP_LANES * e][g] = element_of(read_register(l, p->b, r, warp + lane), i, p->b_type);
    }
    for (unsigned j = 0; j < p->c->count * pairs; j++)
        f->c[g + 8 * (j / 2)][2 * t + j % 2] = element_of(read_register(l, p->c, j / pairs, warp + lane), j % pairs, p->d_type);
}

static double multiplied(const struct mma_plan *p, const struct fragments *f, unsigned row, unsigned column)
{
    double sum = f->c[row][column];

    for (unsigned k = 0; k < p->k; k++)
        sum += f->a[row][k] * f->b[k][column];
    return sum;
}

/* Integers are exact in binary64: 32 products of 8 bits and a sum of 32. */
static uint32_t integer_bits(const struct mma_plan *p, double sum)
{
    int64_t v = (int64_t)sum;

    if (p->finite)
        v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
    return (uint32_t)v;
}

static uint32_t result_bits(const struct mma_plan *p, const struct fragments *f, unsigned row, unsigned column)
{
    double sum = multiplied(p, f, row, column);

    switch ((int)p->d_type) {
    case PTX_F16: return (uint32_t)f16_from_f64(sum, ROUND_NEAREST) | (uint32_t)f16_from_f64(multiplied(p, f, row, column + 1), ROUND_NEAREST) << 16;
    case PTX_F32: return bits_of_f32((float)sum);
    default:      return integer_bits(p, sum);
    }
}

static void deal_lane(struct lanes *l, const struct mma_plan *p, const struct fragments *f, uint32_t warp, unsigned lane)
{
    unsigned g = lane / GROUP_LANES, t = lane % GROUP_LANES, pairs = packed(p->d_type);

    for (unsigned r = 0; r < p->d->count; r++) {
        unsigned j = r * pairs;
        if (p->d->reg_bytes[r])
            LANE(uint32_t, p->d->place[r])[warp + lane] = result_bits(p, f, g + 8 * (j / 2), 2 * t + j % 2);
    }
}

static void multiply_matrices(struct lanes *l, const struct op *o)
{
    const struct mma_plan *p = o->extra;

    for (uint32_t w = l->low / WARP_LANES * WARP_LANES; w < l->high; w += WARP_LANES) {
        struct fragments f = {0};

        for (unsigned lane = 0; lane < WARP_LANES; lane++)
            gather_lane(l, p, &f, w, lane);
        for (unsigned lane = 0; lane < WARP_LANES && w + lane < l->count; lane++) {
            if (l->m[w + lane])
                deal_lane(l, p, &f, w, lane);
        }
    }
}

/* Threads 8 j to 8 j + 7 name the rows of matrix j. mode: the space; width: transposed. */
static void load_matrices(struct lanes *l, const struct op *o)
{
    const struct vector_places *v = o->extra;
    const uint64_t             *address = LANE(uint64_t, o->a);

    for (uint32_t w = l->low / WARP_LANES * WARP_LANES; w < l->high; w += WARP_LANES) {
        uint16_t m[4][MATRIX_ROWS][MATRIX_ROWS] = {{{0}}};

        for (uint32_t k = 0; k < v->count * (uint32_t)MATRIX_ROWS && w + k < l->count; k++) {
            if (l->m[w + k])
                memcpy(m[k / MATRIX_ROWS][k % MATRIX_ROWS],
                       lane_pointer(l, (enum op_space)o->mode, address[w + k] + (uint64_t)o->immediate, MATRIX_ROW_BYTES, w + k),
                       MATRIX_ROW_BYTES);
        }
        for (uint32_t k = 0; k < WARP_LANES && w + k < l->count; k++) {
            unsigned g = k / GROUP_LANES, t = 2 * (k % GROUP_LANES);
            for (unsigned j = 0; l->m[w + k] && j < v->count; j++) {
                uint32_t low = o->width ? m[j][t][g] : m[j][g][t], high = o->width ? m[j][t + 1][g] : m[j][g][t + 1];
                if (v->reg_bytes[j])
                    LANE(uint32_t, v->place[j])[w + k] = high << 16 | low;
            }
        }
    }
}

static const struct mma_shape {
    uint8_t       shape; /* enum ptx_shape */
    uint8_t       m, k;
    enum ptx_type type;
} shapes[] = {
    {PTX_M16N8K8, 16, 8, PTX_F16},   {PTX_M16N8K16, 16, 16, PTX_F16}, {PTX_M16N8K8, 16, 8, PTX_BF16}, {PTX_M16N8K16, 16, 16, PTX_BF16},
    {PTX_M16N8K4, 16, 4, PTX_TF32},  {PTX_M16N8K8, 16, 8, PTX_TF32},  {PTX_M8N8K16, 8, 16, PTX_S8},   {PTX_M16N8K16, 16, 16, PTX_S8},
    {PTX_M16N8K32, 16, 32, PTX_S8},
};

static const struct mma_shape *shape_of(const struct ptx_insn *in)
{
    enum ptx_type a = in->types[1] == PTX_U8 ? PTX_S8 : (enum ptx_type)in->types[1];

    for (size_t i = 0; i < COUNT(shapes); i++) {
        if (shapes[i].shape == in->shape && shapes[i].type == a)
            return &shapes[i];
    }
    return NULL;
}

static bool types_fit(const struct ptx_insn *in)
{
    bool bytes_a = in->types[1] == PTX_S8 || in->types[1] == PTX_U8, bytes_b = in->types[2] == PTX_S8 || in->types[2] == PTX_U8;

    if (in->types[0] != in->types[3] || (in->sat && in->sat != PTX_SATFINITE) || (in->sat && !bytes_a))
        return false;
    if (bytes_a || bytes_b)
        return bytes_a && bytes_b && in->types[0] == PTX_S32;
    return in->types[1] == in->types[2] && (in->types[0] == PTX_F32 || (in->types[0] == PTX_F16 && in->types[1] == PTX_F16));
}

static const struct vector_places *fragment(struct decoder *d, unsigned i, unsigned elements, enum ptx_type t)
{
    const struct ptx_operand *p = operand(d, i);

    if (p->kind != PTX_VECTOR || p->count * packed(t) * WARP_LANES != elements)
        return NULL;
    return decode_vector(d, p, 4, false);
}

/* All threads of the warp take part. */
static void name_all_members(struct decoder *d)
{
    d->members = decode_constant(d, UINT32_MAX, 4);
}

bool translate_mma(struct decoder *d)
{
    const struct ptx_insn  *in = d->insn;
    const struct mma_shape *s = shape_of(in);
    struct mma_plan        *p = arena_alloc(&d->code->arena, sizeof *p);

    if (!p || !s || in->types_count != 4 || !types_fit(in) || !in->sync)
        return false;
    *p = (struct mma_plan){.m = s->m, .k = s->k, .d_type = (enum ptx_type)in->types[0], .a_type = (enum ptx_type)in->types[1],
                           .b_type = (enum ptx_type)in->types[2], .finite = in->sat == PTX_SATFINITE};
    p->d = fragment(d, 0, p->m * N_MAX, p->d_type);
    p->a = fragment(d, 1, p->m * p->k, p->a_type);
    p->b = fragment(d, 2, p->k * N_MAX, p->b_type);
    p->c = fragment(d, 3, p->m * N_MAX, p->d_type);
    if (!p->d || !p->a || !p->b || !p->c)
        return false;
    name_all_members(d);
    decode_op(d, multiply_matrices)->extra = p;
    return true;
}

bool translate_ldmatrix(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    struct decoded_address at;
    struct vector_places  *v;
    struct op             *o;

    if (in->shape != PTX_M8N8 || in->type != PTX_B16 || !in->sync || operand(d, 0)->kind != PTX_VECTOR
        || operand(d, 0)->count != in->vector || in->vector > 4)
        return false;
    v = decode_vector(d, operand(d, 0), 4, false);
    at = decode_address(d, operand(d, 1), PTX_SHARED);
    name_all_members(d);
    o = decode_op(d, load_matrices);
    o->extra = v;
    o->a = at.place;
    o->immediate = at.immediate;
    o->mode = (uint8_t)at.space;
    o->width = in->transposed;
    return true;
}

/* cp.async: done at once, so that waiting for it is nothing. */
struct copy_plan {
    int64_t to, from; /* offsets */
    bool    bounded;  /* c says how many bytes come from the source; the rest is zero */
};

static void copy_now(struct lanes *l, const struct op *o)
{
    const struct copy_plan *p = o->extra;
    const uint64_t         *to = LANE(uint64_t, o->a), *from = LANE(uint64_t, o->b);
    const uint32_t         *bytes = LANE(uint32_t, o->c);

    for (uint32_t i = l->low; i < l->high; i++) {
        uint32_t n = p->bounded && bytes[i] < o->width ? bytes[i] : o->width;
        uint8_t *at;

        if (!l->m[i])
            continue;
        at = lane_pointer(l, OP_SHARED, to[i] + (uint64_t)p->to, o->width, i);
        memset(at, 0, o->width);
        if (n)
            memcpy(at, lane_pointer(l, OP_GLOBAL, from[i] + (uint64_t)p->from, o->width, i), n);
    }
}

bool translate_cp(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    struct copy_plan      *p = arena_alloc(&d->code->arena, sizeof *p);
    struct decoded_address to, from;
    uint64_t               bytes = operand(d, 2)->value;
    uint32_t               bounded;
    struct op             *o;

    if (!p || !in->async)
        return false;
    if (in->action != PTX_NO_ACTION)
        return true;
    if (operand(d, 2)->kind != PTX_IMMEDIATE || (bytes != 4 && bytes != 8 && bytes != 16))
        return false;
    to = decode_address(d, operand(d, 0), PTX_SHARED);
    from = decode_address(d, operand(d, 1), PTX_GLOBAL);
    bounded = in->operands_count > 3 ? decode_source(d, operand(d, 3), 4) : decode_constant(d, 0, 4);
    *p = (struct copy_plan){to.immediate, from.immediate, in->operands_count > 3};
    o = decode_op(d, copy_now);
    o->extra = p;
    o->a = to.place;
    o->b = from.place;
    o->c = bounded;
    o->width = (uint8_t)bytes;
    return true;
}
