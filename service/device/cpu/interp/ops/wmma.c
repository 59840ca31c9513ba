/* wmma: matrices of a warp that are loaded, multiplied and stored as a whole. PTX leaves open how a fragment's elements are distributed
 * over the threads. Here they lie as mma has them; fragments with more registers than elements repeat them. */
#include "device/cpu/interp/ops/matrix.h"

enum { F16_REGISTERS = 8 }; /* of a and b, whatever the shape */

static const struct matrix_shape shapes[] = {
    {PTX_M16N16K16, 16, 16, 16, PTX_F16},  {PTX_M32N8K16, 32, 8, 16, PTX_F16},  {PTX_M8N32K16, 8, 32, 16, PTX_F16},
    {PTX_M16N16K16, 16, 16, 16, PTX_BF16}, {PTX_M32N8K16, 32, 8, 16, PTX_BF16}, {PTX_M8N32K16, 8, 32, 16, PTX_BF16},
    {PTX_M16N16K16, 16, 16, 16, PTX_S8},   {PTX_M32N8K16, 32, 8, 16, PTX_S8},   {PTX_M8N32K16, 8, 32, 16, PTX_S8},
    {PTX_M16N16K8, 16, 16, 8, PTX_TF32},   {PTX_M8N8K4, 8, 8, 4, PTX_F64},      {PTX_M8N8K32, 8, 8, 32, PTX_S4},
    {PTX_M8N8K128, 8, 8, 128, PTX_B1},
};

struct transfer_plan { /* wmma.load and wmma.store */
    struct fragment f;
    bool            by_columns;
    uint32_t        stride; /* place of the distance between rows or columns, in elements */
};

static const struct matrix_shape *shape_of(const struct ptx_insn *in, enum ptx_type type)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        if (shapes[i].shape == in->shape && shapes[i].type == matrix_type_family(type))
            return &shapes[i];
    }
    return NULL;
}

/* Of a sum the type of the factors is unknown: any row of that shape with such sums will do; m and n are the same. */
static const struct matrix_shape *shape_of_sum(const struct ptx_insn *in, enum ptx_type type)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        if (shapes[i].shape == in->shape && matrix_sum_fits(shapes[i].type, type))
            return &shapes[i];
    }
    return NULL;
}

/* Bytes per access: an element, or a whole register of smaller ones, which lie side by side. */
static unsigned access_bytes(const struct fragment *f)
{
    return matrix_type_bits(f->type) < 8 ? 4 : matrix_type_bits(f->type) / 8;
}

static uint8_t *element_pointer(struct lanes *l, const struct op *o, const struct transfer_plan *p, unsigned r, unsigned j, uint32_t lane,
                                enum check_access how)
{
    uint64_t stride = LANE(uint32_t, p->stride)[lane], at = LANE(uint64_t, o->a)[lane] + (uint64_t)o->immediate;
    unsigned row, column;

    matrix_place(&p->f, lane % WARP_LANES, r, j, &row, &column);
    at += (p->by_columns ? column * stride + row : row * stride + column) * matrix_type_bits(p->f.type) / 8;
    check_now(l, (enum op_space)o->mode, at, access_bytes(&p->f), how, lane);
    return lane_pointer(l, (enum op_space)o->mode, at, access_bytes(&p->f), lane);
}

static unsigned accesses(const struct fragment *f)
{
    return matrix_type_bits(f->type) < 8 ? 1 : f->elements;
}

static void load_register(struct lanes *l, const struct op *o, const struct transfer_plan *p, unsigned r, uint32_t lane)
{
    unsigned bytes = access_bytes(&p->f);
    uint64_t value = 0;

    for (unsigned j = 0; j < accesses(&p->f); j++) {
        uint64_t element = 0;
        memcpy(&element, element_pointer(l, o, p, r % p->f.registers, j, lane, CHECK_READ), bytes);
        value |= element << (8 * bytes * j);
    }
    if (p->f.type == PTX_F64)
        LANE(uint64_t, p->f.places->place[r])[lane] = value;
    else
        LANE(uint32_t, p->f.places->place[r])[lane] = (uint32_t)value;
}

static void store_register(struct lanes *l, const struct op *o, const struct transfer_plan *p, unsigned r, uint32_t lane)
{
    unsigned bytes = access_bytes(&p->f);
    uint64_t value = matrix_register(l, &p->f, r, lane);

    for (unsigned j = 0; j < accesses(&p->f); j++) {
        uint64_t element = value >> (8 * bytes * j);
        memcpy(element_pointer(l, o, p, r, j, lane, CHECK_WRITE), &element, bytes);
    }
}

static void load_matrix(struct lanes *l, const struct op *o)
{
    const struct transfer_plan *p = o->extra;

    LANES_EACH(for (unsigned r = 0; r < p->f.places->count; r++) load_register(l, o, p, r, i));
}

static void store_matrix(struct lanes *l, const struct op *o)
{
    const struct transfer_plan *p = o->extra;

    LANES_EACH(for (unsigned r = 0; r < p->f.places->count; r++) store_register(l, o, p, r, i));
}

/* The default of the distance: the matrix is dense. */
static uint32_t stride_of(struct decoder *d, const struct transfer_plan *p, unsigned operands)
{
    if (d->insn->operands_count > operands)
        return decode_source(d, operand(d, operands), 4);
    return decode_constant(d, p->by_columns ? p->f.rows : p->f.columns, 4);
}

static bool translate_transfer(struct decoder *d, bool store)
{
    const struct ptx_insn     *in = d->insn;
    struct transfer_plan      *p = arena_alloc(&d->code->arena, sizeof *p);
    char                       matrix = in->matrix == 'd' ? 'c' : in->matrix;
    enum ptx_type              type = (enum ptx_type)in->types[0];
    const struct matrix_shape *s = matrix == 'c' ? shape_of_sum(in, type) : shape_of(in, type);
    struct decoded_address     at;

    if (!p || !s || !in->matrix || store != (in->matrix == 'd') || in->types_count != 1 || in->layouts_count != 1 ||
        operand(d, !store)->kind != PTX_ADDRESS ||
        !matrix_fragment(d, store, matrix, type, s, matrix != 'c' && type == PTX_F16 ? F16_REGISTERS : 0, &p->f))
        return false;
    p->by_columns = in->layouts[0];
    if (matrix_type_bits(type) < 8 && p->by_columns != (matrix == 'b'))
        return false;
    p->stride = stride_of(d, p, 2);
    at = decode_address(d, operand(d, !store), (enum ptx_space)in->space);
    if (at.space == OP_PARAM || at.space == OP_PARAM_KERNEL || at.space == OP_LOCAL)
        return false;
    matrix_name_all_members(d);
    decode_op(
        d, (struct op){
               .run = store ? store_matrix : load_matrix, .extra = p, .a = at.place, .immediate = at.immediate, .mode = (uint8_t)at.space});
    return true;
}

/* f16 names only the sums, d and c; the others name all four types. */
static bool translate_multiply(struct decoder *d)
{
    const struct ptx_insn     *in = d->insn;
    bool                       halves = in->types_count == 2;
    enum ptx_type              t[4] = {(enum ptx_type)in->types[0], PTX_F16, PTX_F16, (enum ptx_type)in->types[1]};
    const struct matrix_shape *s;

    for (unsigned i = 0; !halves && i < 4; i++)
        t[i] = (enum ptx_type)in->types[i];
    s = shape_of(in, t[1]);
    if (!s || in->matrix || in->layouts_count != 2 || t[1] != t[2] || halves != (t[1] == PTX_F16) || (!halves && in->types_count != 4))
        return false;
    return matrix_multiply(d, s, t, halves ? F16_REGISTERS : 0);
}

bool translate_wmma(struct decoder *d)
{
    if (!d->insn->sync)
        return false;
    switch ((int)d->insn->action) {
    case PTX_DO_LOAD:
        return translate_transfer(d, false);
    case PTX_DO_STORE:
        return translate_transfer(d, true);
    case PTX_DO_MULTIPLY:
        return translate_multiply(d);
    default:
        return false;
    }
}
