/* Products of matrices that the threads of a warp hold together: gathers each warp's fragments, multiplies them and distributes the
 * result. Sums are exact or nearly so in binary64 and rounded once, where a GPU's tensor cores truncate between the steps. */
#include "device/cpu/interp/ops/matrix.h"

enum { GROUP_LANES = 4, TILE = 8, MULTIPLICANDS_MAX = 16 * 256, SUMS_MAX = 256 };

static unsigned packed_count(enum ptx_type t)
{
    switch ((int)t) {
    case PTX_F16: case PTX_BF16: return 2;
    case PTX_S8: case PTX_U8:    return 4;
    case PTX_S4: case PTX_U4:    return 8;
    case PTX_B1:                 return 32;
    default:                     return 1;
    }
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
    case PTX_S4:   return (int32_t)(bits << (28 - 4 * i)) >> 28;
    case PTX_U4:   return bits >> (4 * i) & 15;
    case PTX_B1:   return bits >> i & 1;
    default:       return (int32_t)bits;
    }
}

unsigned matrix_type_bits(enum ptx_type t)
{
    return t == PTX_B1 ? 1 : t == PTX_S4 || t == PTX_U4 ? 4 : 8 * ptx_type_bytes(t);
}

enum ptx_type matrix_type_family(enum ptx_type t)
{
    return t == PTX_U8 ? PTX_S8 : t == PTX_U4 ? PTX_S4 : t;
}

bool matrix_sum_fits(enum ptx_type product, enum ptx_type sum)
{
    switch ((int)matrix_type_family(product)) {
    case PTX_F16: return sum == PTX_F16 || sum == PTX_F32;
    case PTX_BF16: case PTX_TF32: return sum == PTX_F32;
    case PTX_F64: return sum == PTX_F64;
    default:      return sum == PTX_S32;
    }
}

/* Which modifiers a product of those types may have. */
static bool matrix_modifiers_fit(const struct ptx_insn *in, enum ptx_type product)
{
    enum ptx_type t = matrix_type_family(product);

    return (in->bit_action != PTX_NO_ACTION) == (t == PTX_B1) && (!in->sat || (in->sat == PTX_SATFINITE && (t == PTX_S8 || t == PTX_S4)))
           && (!in->rounding || (in->rounding == PTX_RN && t == PTX_F64));
}

void matrix_place(const struct fragment *f, unsigned lane, unsigned r, unsigned j, unsigned *row, unsigned *column)
{
    unsigned g = lane / GROUP_LANES, t = lane % GROUP_LANES, along, across;

    if (f->matrix == 'c') {
        unsigned q = r * f->elements + j, tiles = f->rows / TILE;
        *row = g + TILE * (q / 2 % tiles);
        *column = 2 * t + q % 2 + TILE * (q / 2 / tiles);
        return;
    }
    across = f->matrix == 'a' ? f->rows / TILE : f->columns / TILE;
    along = t * f->elements + j + r / across * GROUP_LANES * f->elements;
    *row = f->matrix == 'a' ? g + TILE * (r % across) : along;
    *column = f->matrix == 'a' ? along : g + TILE * (r % across);
}

uint64_t matrix_register(struct lanes *l, const struct fragment *f, unsigned r, uint32_t lane)
{
    if (lane >= l->count)
        return 0;
    return f->type == PTX_F64 ? LANE(uint64_t, f->places->place[r])[lane] : LANE(uint32_t, f->places->place[r])[lane];
}

/* Integers are exact in binary64. */
static uint32_t integer_bits(double sum, bool finite)
{
    int64_t v = (int64_t)sum;

    if (finite)
        v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
    return (uint32_t)v;
}

/* [rows][columns] in `into`. */
static void gather_fragment(struct lanes *l, const struct fragment *f, uint32_t warp, double *into)
{
    for (unsigned lane = 0; lane < WARP_LANES; lane++) {
        for (unsigned r = 0; r < f->registers; r++) {
            uint64_t bits = matrix_register(l, f, r, warp + lane);
            for (unsigned j = 0; j < f->elements; j++) {
                unsigned row, column;
                matrix_place(f, lane, r, j, &row, &column);
                into[row * f->columns + column] = f->type == PTX_F64 ? f64_of_bits(bits) : element_of((uint32_t)bits, j, f->type);
            }
        }
    }
}

/* f64 is a chain of fused steps; the others are exact products summed in binary64. */
static double sum_of(const struct multiply_plan *p, const double *a, const double *b, double sum, unsigned row, unsigned column)
{
    for (unsigned k = 0; k < p->k; k++) {
        double x = a[row * p->k + k], y = b[k * p->b.columns + column];
        if (p->bit_action)
            sum += p->bit_action == PTX_DO_XOR ? x != y : x * y;
        else
            sum = p->d.type == PTX_F64 ? __builtin_fma(x, y, sum) : sum + x * y;
    }
    return sum;
}

static uint64_t result_bits(const struct multiply_plan *p, double sum)
{
    switch ((int)p->d.type) {
    case PTX_F16: return f16_from_f64(sum, ROUND_NEAREST);
    case PTX_F32: return bits_of_f32((float)sum);
    case PTX_F64: return bits_of_f64(sum);
    default:      return integer_bits(sum, p->finite);
    }
}

static void deal_product(struct lanes *l, const struct multiply_plan *p, const double *a, const double *b, const double *c, uint32_t warp,
                 unsigned lane)
{
    for (unsigned r = 0; r < p->d.places->count; r++) {
        uint64_t value = 0;
        for (unsigned j = 0; j < p->d.elements; j++) {
            unsigned row, column;
            matrix_place(&p->d, lane, r, j, &row, &column);
            value |= result_bits(p, sum_of(p, a, b, c[row * p->c.columns + column], row, column)) << (16 * j);
        }
        if (p->d.type == PTX_F64)
            LANE(uint64_t, p->d.places->place[r])[warp + lane] = value;
        else
            LANE(uint32_t, p->d.places->place[r])[warp + lane] = (uint32_t)value;
    }
}

static void multiply_warps(struct lanes *l, const struct op *o)
{
    const struct multiply_plan *p = o->extra;

    for (uint32_t w = l->low / WARP_LANES * WARP_LANES; w < l->high; w += WARP_LANES) {
        double a[MULTIPLICANDS_MAX], b[MULTIPLICANDS_MAX], c[SUMS_MAX];

        gather_fragment(l, &p->a, w, a);
        gather_fragment(l, &p->b, w, b);
        gather_fragment(l, &p->c, w, c);
        for (unsigned lane = 0; lane < WARP_LANES && w + lane < l->count; lane++) {
            if (l->m[w + lane])
                deal_product(l, p, a, b, c, w, lane);
        }
    }
}

bool matrix_fragment(struct decoder *d, unsigned i, char matrix, enum ptx_type type, const struct matrix_shape *s, unsigned registers,
                     struct fragment *out)
{
    const struct ptx_operand *p = operand(d, i);
    unsigned                  rows = matrix == 'b' ? s->k : s->m, columns = matrix == 'a' ? s->k : s->n;

    *out = (struct fragment){.matrix = matrix, .rows = (uint16_t)rows, .columns = (uint16_t)columns, .type = type,
                             .elements = packed_count(type)};
    out->registers = rows * columns / WARP_LANES / out->elements;
    if (p->kind != PTX_VECTOR || p->count != (registers ? registers : out->registers))
        return false;
    out->places = decode_vector(d, p, type == PTX_F64 ? 8 : 4, false);
    return true;
}

void matrix_name_all_members(struct decoder *d)
{
    d->members = decode_constant(d, UINT32_MAX, 4);
}

bool matrix_multiply(struct decoder *d, const struct matrix_shape *s, const enum ptx_type t[4], unsigned a_registers)
{
    struct multiply_plan *p = arena_alloc(&d->code->arena, sizeof *p);

    if (!p || !matrix_sum_fits(t[1], t[0]) || !matrix_sum_fits(t[1], t[3]) || !matrix_modifiers_fit(d->insn, t[1]))
        return false;
    *p = (struct multiply_plan){.k = s->k, .bit_action = d->insn->bit_action, .finite = d->insn->sat == PTX_SATFINITE};
    if (!matrix_fragment(d, 0, 'c', t[0], s, 0, &p->d) || !matrix_fragment(d, 1, 'a', t[1], s, a_registers, &p->a)
        || !matrix_fragment(d, 2, 'b', t[2], s, a_registers, &p->b) || !matrix_fragment(d, 3, 'c', t[3], s, 0, &p->c))
        return false;
    matrix_name_all_members(d);
    decode_op(d, (struct op){.run = multiply_warps, .extra = p});
    return true;
}

static const struct matrix_shape shapes[] = {
    {PTX_M16N8K8, 16, 8, 8, PTX_F16},    {PTX_M16N8K16, 16, 8, 16, PTX_F16},
    {PTX_M16N8K8, 16, 8, 8, PTX_BF16},   {PTX_M16N8K16, 16, 8, 16, PTX_BF16},
    {PTX_M16N8K4, 16, 8, 4, PTX_TF32},   {PTX_M16N8K8, 16, 8, 8, PTX_TF32},
    {PTX_M8N8K16, 8, 8, 16, PTX_S8},     {PTX_M16N8K16, 16, 8, 16, PTX_S8},   {PTX_M16N8K32, 16, 8, 32, PTX_S8},
    {PTX_M8N8K4, 8, 8, 4, PTX_F64},      {PTX_M16N8K4, 16, 8, 4, PTX_F64},    {PTX_M16N8K8, 16, 8, 8, PTX_F64},
    {PTX_M16N8K16, 16, 8, 16, PTX_F64},  {PTX_M8N8K32, 8, 8, 32, PTX_S4},     {PTX_M16N8K32, 16, 8, 32, PTX_S4},
    {PTX_M16N8K64, 16, 8, 64, PTX_S4},   {PTX_M8N8K128, 8, 8, 128, PTX_B1},   {PTX_M16N8K128, 16, 8, 128, PTX_B1},
    {PTX_M16N8K256, 16, 8, 256, PTX_B1},
};

/* Signed and unsigned integers may be mixed. */
bool translate_mma(struct decoder *d)
{
    const struct ptx_insn *in = d->insn;
    enum ptx_type          t[4];

    for (unsigned i = 0; i < 4; i++)
        t[i] = (enum ptx_type)in->types[i];
    if (in->types_count != 4 || !in->sync || t[0] != t[3] || matrix_type_family(t[1]) != matrix_type_family(t[2]))
        return false;
    for (size_t i = 0; i < COUNT(shapes); i++) {
        if (shapes[i].shape == in->shape && shapes[i].type == matrix_type_family(t[1]))
            return matrix_multiply(d, &shapes[i], t, 0);
    }
    return false;
}
