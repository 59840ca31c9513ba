/* Arithmetic of compiled kernels. Every operation gives the bits that its handler in device/cpu/interp/ops/ gives. */
#include "device/cpu/jit/emit/emit.h"

#include "device/cpu/interp/decode/decode.h"
#include "device/cpu/jit/subset.h"

/* One operation in the making: its operands, all scalars or all vectors. */
struct work {
    struct value x, y, z;
    bool         scalar;
    unsigned     bits;
    bool         is_signed;
};

static llvm_value same(struct emitter *e, const struct work *w, uint64_t v)
{
    return like(e, w->scalar, w->bits, v);
}

static llvm_value fcmp(struct emitter *e, enum llvm_float_compare how, llvm_value x, llvm_value y)
{
    return e->ll->LLVMBuildFCmp(e->b, how, x, y, "");
}

static llvm_type shaped(const struct emitter *e, bool scalar, llvm_type element)
{
    return scalar ? element : vector_of(e, element);
}

static llvm_value bitcast(struct emitter *e, bool scalar, llvm_value v, llvm_type element)
{
    return e->ll->LLVMBuildCast(e->b, LLVM_BITCAST, v, shaped(e, scalar, element), "");
}

static llvm_value unary_intrinsic(struct emitter *e, const char *name, llvm_value v)
{
    llvm_type type = e->ll->LLVMTypeOf(v);

    return intrinsic(e, name, &type, 1, &v, 1);
}

/* ---- integers ---- */

/* With the divisor 1 where the host would trap; zero gives all ones, and -1 negates. */
static llvm_value divide(struct emitter *e, const struct work *w, bool remainder)
{
    llvm_value zero = icmp(e, LLVM_EQ, w->y.v, same(e, w, 0)), ones = same(e, w, ~0ull), bad = zero, safe, r;

    if (w->is_signed)
        bad = binary(e, LLVM_OR, zero, icmp(e, LLVM_EQ, w->y.v, ones));
    safe = choose(e, bad, same(e, w, 1), w->y.v);
    if (w->bits == 32) {
        /* In binary64, which is exact for 32 bits (device/cpu/interp/ops/int.c). */
        enum llvm_opcode to = w->is_signed ? LLVM_SITOFP : LLVM_UITOFP;
        r = binary(e, LLVM_FDIV, cast(e, to, w->x.v, e->f64), cast(e, to, safe, e->f64));
        r = cast(e, LLVM_TRUNC, cast(e, LLVM_FPTOSI, r, e->i64), e->i32);
        if (remainder)
            r = binary(e, LLVM_SUB, w->x.v, binary(e, LLVM_MUL, r, safe));
    } else {
        r = binary(e, w->is_signed ? (remainder ? LLVM_SREM : LLVM_SDIV) : remainder ? LLVM_UREM : LLVM_UDIV, w->x.v, safe);
    }
    if (w->is_signed)
        r = choose(e, icmp(e, LLVM_EQ, w->y.v, ones), remainder ? same(e, w, 0) : binary(e, LLVM_SUB, same(e, w, 0), w->x.v), r);
    return choose(e, zero, ones, r);
}

/* By as much as the width or more: nothing is left, or copies of the sign. The amount has 32 bits. */
static llvm_value shift(struct emitter *e, struct work *w, struct value amount)
{
    const bool       left = e->insn->opcode == PTX_OP_SHL;
    enum llvm_opcode op = left ? LLVM_SHL : w->is_signed ? LLVM_ASHR : LLVM_LSHR;
    llvm_value       over = icmp(e, LLVM_UGE, amount.v, like(e, w->scalar, 32, w->bits)), by, r;

    amount = resize_value(e, amount, w->bits, false);
    by = binary(e, LLVM_AND, amount.v, same(e, w, w->bits - 1));
    if (op == LLVM_ASHR)
        return binary(e, op, w->x.v, choose(e, over, same(e, w, w->bits - 1), by));
    r = binary(e, op, w->x.v, by);
    return choose(e, over, same(e, w, 0), r);
}

static llvm_value wide_product(struct emitter *e, const struct work *w, unsigned bits)
{
    enum llvm_opcode to = w->is_signed ? LLVM_SEXT : LLVM_ZEXT;

    return binary(e, LLVM_MUL, cast(e, to, w->x.v, int_type(e, bits)), cast(e, to, w->y.v, int_type(e, bits)));
}

static llvm_value high_product(struct emitter *e, const struct work *w)
{
    llvm_value both = wide_product(e, w, 2 * w->bits);

    return cast(e, LLVM_TRUNC, binary(e, LLVM_LSHR, both, like(e, w->scalar, 2 * w->bits, w->bits)), int_type(e, w->bits));
}

static llvm_value least_or_most(struct emitter *e, const struct work *w)
{
    bool least = e->insn->opcode == PTX_OP_MIN;

    return choose(e, icmp(e, w->is_signed ? (least ? LLVM_SLT : LLVM_SGT) : least ? LLVM_ULT : LLVM_UGT, w->x.v, w->y.v), w->x.v, w->y.v);
}

static llvm_value count_zeros(struct emitter *e, const struct work *w)
{
    llvm_type  type = e->ll->LLVMTypeOf(w->x.v);
    llvm_value args[2] = {w->x.v, number(e, 1, 0)};

    return intrinsic(e, "llvm.ctlz", &type, 1, args, 2);
}

static llvm_value funnel_shift(struct emitter *e, const struct work *w)
{
    llvm_type  type = e->ll->LLVMTypeOf(w->x.v);
    llvm_value args[3] = {w->y.v, w->x.v, binary(e, LLVM_AND, w->z.v, same(e, w, 31))};

    return intrinsic(e, e->insn->action == PTX_DO_LEFT ? "llvm.fshl" : "llvm.fshr", &type, 1, args, 3);
}

static llvm_value simple_int(struct emitter *e, const struct work *w)
{
    static const uint8_t plain[PTX_OP_COUNT] = {
        [PTX_OP_ADD] = LLVM_ADD, [PTX_OP_SUB] = LLVM_SUB, [PTX_OP_AND] = LLVM_AND, [PTX_OP_OR] = LLVM_OR, [PTX_OP_XOR] = LLVM_XOR};
    llvm_value x = w->x.v, y = w->y.v, zero = same(e, w, 0);

    if (plain[e->insn->opcode])
        return binary(e, (enum llvm_opcode)plain[e->insn->opcode], x, y);
    switch ((int)e->insn->opcode) {
    case PTX_OP_NOT:
        return binary(e, LLVM_XOR, x, same(e, w, ~0ull));
    case PTX_OP_NEG:
        return binary(e, LLVM_SUB, zero, x);
    case PTX_OP_CNOT:
        return cast(e, LLVM_ZEXT, icmp(e, LLVM_EQ, x, zero), int_type(e, w->bits));
    case PTX_OP_ABS:
        return w->is_signed ? choose(e, icmp(e, LLVM_SLT, x, zero), binary(e, LLVM_SUB, zero, x), x) : x;
    case PTX_OP_MIN:
    case PTX_OP_MAX:
        return least_or_most(e, w);
    case PTX_OP_DIV:
    case PTX_OP_REM:
        return divide(e, w, e->insn->opcode == PTX_OP_REM);
    case PTX_OP_MUL:
    case PTX_OP_MAD:
        return e->insn->part == PTX_HI ? high_product(e, w) : binary(e, LLVM_MUL, x, y);
    case PTX_OP_POPC:
        return unary_intrinsic(e, "llvm.ctpop", x);
    case PTX_OP_CLZ:
        return count_zeros(e, w);
    case PTX_OP_BREV:
        return unary_intrinsic(e, "llvm.bitreverse", x);
    case PTX_OP_SHF:
        return funnel_shift(e, w);
    default:
        e->broken = true;
        return x;
    }
}

/* ---- lines ---- */

static struct value sum(struct emitter *e, struct value a, struct value b, bool minus)
{
    struct value both[2] = {a, b};
    struct shape shape = shape_sum(a.shape, b.shape, minus);
    bool         line = a.scalar && b.scalar && shape.kind != SHAPE_VARYING;
    llvm_value   turn = a.turn ? a.turn : b.turn;

    if (line)
        return (struct value){.v = binary(e, minus ? LLVM_SUB : LLVM_ADD, a.v, b.v),
                              .scalar = true,
                              .bits = a.bits,
                              .shape = shape,
                              .turn = shape.wrapped ? turn : NULL};
    alike(e, both, 2);
    return vector_value(binary(e, minus ? LLVM_SUB : LLVM_ADD, both[0].v, both[1].v), a.bits);
}

/* A line times a number in the text. */
static struct value scaled(struct emitter *e, struct value a, uint64_t by)
{
    a.shape = shape_product(a.shape, by, a.bits / 8);
    a.v = binary(e, LLVM_MUL, a.v, number(e, a.bits, by));
    return a;
}

static bool is_line(const struct value *v)
{
    return v->scalar && v->shape.kind == SHAPE_LINEAR;
}

static struct value product(struct emitter *e, unsigned bytes, bool wide, bool is_signed)
{
    const struct ptx_insn *in = e->insn;
    struct value           v[2] = {source_value(e, &in->operands[1], bytes), source_value(e, &in->operands[2], bytes)};
    struct shape           planned = plan_result(e->plan, in);
    uint64_t               by;
    struct work            w;

    if (in->opcode == PTX_OP_MAD && planned.kind != SHAPE_UNIFORM)
        planned.kind = SHAPE_LINEAR; /* of the product alone, nothing is known yet */
    for (unsigned k = 0; k < 2 && planned.kind == SHAPE_LINEAR && in->part != PTX_HI; k++) {
        struct value line = v[k];
        struct shape s;

        if (!is_line(&line) || !operand_constant(&in->operands[2 - k], bytes, is_signed, &by))
            continue;
        s = wide ? shape_widened(line.shape) : line.shape;
        if (s.kind != SHAPE_LINEAR || shape_product(s, by, wide ? 2 * bytes : bytes).kind != SHAPE_LINEAR)
            continue;
        return scaled(e, wide ? resize_value(e, line, 16 * bytes, is_signed) : line, by);
    }
    w = (struct work){.scalar = alike(e, v, 2), .bits = 8 * bytes, .is_signed = is_signed};
    w.x = v[0];
    w.y = v[1];
    if (!wide)
        return (struct value){.v = simple_int(e, &w), .scalar = w.scalar, .bits = w.bits, .shape = v[0].shape};
    return (struct value){.v = wide_product(e, &w, 2 * w.bits), .scalar = w.scalar, .bits = 2 * w.bits, .shape = v[0].shape};
}

/* Operations that a line can go through. False: it is none of them. */
static bool line_operation(struct emitter *e, unsigned bytes, bool is_signed, struct value *out)
{
    const struct ptx_insn *in = e->insn;
    bool                   wide = in->part == PTX_WIDE;
    uint64_t               by;
    struct value           x;

    switch ((int)in->opcode) {
    case PTX_OP_ADD:
    case PTX_OP_SUB:
        *out = sum(e, source_value(e, &in->operands[1], bytes), source_value(e, &in->operands[2], bytes), in->opcode == PTX_OP_SUB);
        return true;
    case PTX_OP_MUL:
        *out = product(e, bytes, wide, is_signed);
        return true;
    case PTX_OP_MAD:
        if (strip_counts(e->plan, in)) {
            *out = strip_index(e);
            return true;
        }
        *out = product(e, bytes, wide, is_signed);
        *out = sum(e, *out, source_value(e, &in->operands[3], wide ? 2 * bytes : bytes), false);
        return true;
    case PTX_OP_SHL:
        x = source_value(e, &in->operands[1], bytes);
        if (!is_line(&x) || !operand_constant(&in->operands[2], 4, false, &by) || by >= 8 * bytes || by >= 24 ||
            shape_product(x.shape, 1ull << by, bytes).kind != SHAPE_LINEAR)
            return false;
        *out = scaled(e, x, 1ull << by);
        return true;
    default:
        return false;
    }
}

static void int_operation(struct emitter *e)
{
    const struct ptx_insn *in = e->insn;
    unsigned               bytes = ptx_type_bytes((enum ptx_type)in->type), count = in->operands_count - 1;
    bool                   is_signed = lane_type_is_signed(lane_type_of((enum ptx_type)in->type));
    bool                   shifts = in->opcode == PTX_OP_SHL || in->opcode == PTX_OP_SHR;
    struct value           v[3], r;
    struct work            w = {.bits = bytes == 1 ? 1 : 8 * bytes, .is_signed = is_signed};

    if (in->type != PTX_PRED && line_operation(e, bytes, is_signed, &r)) {
        write_register(e, in->operands[0].reg, r, false);
        return;
    }
    for (unsigned i = 0; i < count && i < 3; i++)
        v[i] = source_value(e, &in->operands[i + 1], shifts && i == 1 ? 4 : bytes);
    w.scalar = alike(e, v, count < 3 ? count : 3);
    w.x = v[0];
    w.y = count > 1 ? v[1] : v[0];
    w.z = count > 2 ? v[2] : v[0];
    r = (struct value){.v = shifts ? shift(e, &w, w.y) : simple_int(e, &w), .scalar = w.scalar, .bits = w.bits, .shape = v[0].shape};
    if (in->opcode == PTX_OP_POPC || in->opcode == PTX_OP_CLZ)
        r = resize_value(e, r, 32, false);
    write_register(e, in->operands[0].reg, r, false);
}

/* ---- floats ---- */

static llvm_value real(struct emitter *e, bool scalar, llvm_type type, double v)
{
    llvm_value one = e->ll->LLVMConstReal(type, v);

    return scalar ? one : spread(e, one);
}

/* Numbers too small to be normal become zero of their sign. */
static llvm_value flush(struct emitter *e, bool scalar, llvm_value v)
{
    llvm_value bits = bitcast(e, scalar, v, e->i32), exponent = binary(e, LLVM_AND, bits, like(e, scalar, 32, 0x7f800000));
    llvm_value normal = icmp(e, LLVM_NE, exponent, like(e, scalar, 32, 0));

    return choose(e, normal, v, bitcast(e, scalar, binary(e, LLVM_AND, bits, like(e, scalar, 32, 0x80000000)), e->f32));
}

static llvm_value magnitude(struct emitter *e, llvm_value v)
{
    return unary_intrinsic(e, "llvm.fabs", v);
}

static llvm_value fused(struct emitter *e, llvm_value x, llvm_value y, llvm_value z)
{
    llvm_type  type = e->ll->LLVMTypeOf(x);
    llvm_value args[3] = {x, y, z};

    return intrinsic(e, "llvm.fma", &type, 1, args, 3);
}

/* Zero of r's sign where `small` holds. */
static llvm_value zero_where(struct emitter *e, bool scalar, llvm_value small, llvm_value r)
{
    llvm_value sign = binary(e, LLVM_AND, bitcast(e, scalar, r, e->i32), like(e, scalar, 32, 0x80000000));

    return choose(e, small, bitcast(e, scalar, sign, e->f32), r);
}

/* Whether a product or quotient, or a product and a sum, is below the smallest normal number before it is rounded. */
static llvm_value is_small(struct emitter *e, bool scalar, enum llvm_opcode op, llvm_value x, llvm_value y)
{
    llvm_value exact = binary(e, op, cast(e, LLVM_FPEXT, x, e->f64), cast(e, LLVM_FPEXT, y, e->f64));

    return fcmp(e, LLVM_OLT, magnitude(e, exact), real(e, scalar, e->f64, 0x1p-126));
}

static llvm_value sum_is_small(struct emitter *e, bool scalar, llvm_value x, llvm_value y, llvm_value z)
{
    llvm_value a = binary(e, LLVM_FMUL, cast(e, LLVM_FPEXT, x, e->f64), cast(e, LLVM_FPEXT, y, e->f64)), b = cast(e, LLVM_FPEXT, z, e->f64);
    llvm_value s = binary(e, LLVM_FADD, a, b), bb = binary(e, LLVM_FSUB, s, a);
    llvm_value error = binary(e, LLVM_FADD, binary(e, LLVM_FSUB, a, binary(e, LLVM_FSUB, s, bb)), binary(e, LLVM_FSUB, b, bb));
    llvm_value least = real(e, scalar, e->f64, 0x1p-126), m = magnitude(e, s), zero = real(e, scalar, e->f64, 0);
    llvm_value inward = choose(e, fcmp(e, LLVM_OGT, s, zero), fcmp(e, LLVM_OLT, error, zero), fcmp(e, LLVM_OGT, error, zero));

    /* The exact sum lies just below the limit that it was rounded to. */
    return binary(e, LLVM_OR, fcmp(e, LLVM_OLT, m, least), binary(e, LLVM_AND, fcmp(e, LLVM_OEQ, m, least), inward));
}

/* The other operand when one is NaN; -0 below +0. */
static llvm_value least_or_most_float(struct emitter *e, bool scalar, unsigned bits, llvm_value x, llvm_value y)
{
    bool       least = e->insn->opcode == PTX_OP_MIN;
    llvm_type  type = bits == 32 ? e->f32 : e->f64, whole = int_type(e, bits);
    llvm_value first = binary(e, LLVM_OR, fcmp(e, least ? LLVM_OLT : LLVM_OGT, x, y), fcmp(e, LLVM_UNO, y, y));
    llvm_value both = binary(e, least ? LLVM_OR : LLVM_AND, bitcast(e, scalar, x, whole), bitcast(e, scalar, y, whole));

    return choose(e, fcmp(e, LLVM_OEQ, x, y), bitcast(e, scalar, both, type), choose(e, first, x, y));
}

static llvm_value saturated(struct emitter *e, bool scalar, llvm_type type, llvm_value v)
{
    llvm_value zero = real(e, scalar, type, 0), one = real(e, scalar, type, 1);

    return choose(e, fcmp(e, LLVM_OGT, v, zero), choose(e, fcmp(e, LLVM_OLT, v, one), v, one), zero);
}

/* exp2_f32 of device/cpu/interp/ops/math.h, step by step. */
static llvm_value power_of_two(struct emitter *e, bool s, llvm_value f)
{
    static const double terms[] = {0x1.62c0223a5c824p-20, 0x1.ffcbfc588b0c7p-17, 0x1.430912f86c787p-13,
                                   0x1.5d87fe78a6731p-10, 0x1.3b2ab6fba4e77p-7,  0x1.c6b08d704a0cp-5,
                                   0x1.ebfbdff82c58fp-3,  0x1.62e42fefa39efp-1,  1};
    llvm_value          x = cast(e, LLVM_FPEXT, f, e->f64), at = real(e, s, e->f64, 0x1.8p52), high = real(e, s, e->f64, 200),
               low = real(e, s, e->f64, -200);
    llvm_value ordered = fcmp(e, LLVM_OEQ, x, x), clamped, shifted, r, scale, p = real(e, s, e->f64, 0x1.b5253d395e7c4p-24);

    clamped = choose(e, fcmp(e, LLVM_OGT, x, high), high,
                     choose(e, fcmp(e, LLVM_OLT, x, low), low, choose(e, ordered, x, real(e, s, e->f64, 0))));
    shifted = binary(e, LLVM_FADD, clamped, at);
    r = binary(e, LLVM_FSUB, clamped, binary(e, LLVM_FSUB, shifted, at));
    scale = binary(e, LLVM_SHL, binary(e, LLVM_ADD, bitcast(e, s, shifted, e->i64), like(e, s, 64, 1023)), like(e, s, 64, 52));
    for (size_t k = 0; k < COUNT(terms); k++)
        p = binary(e, LLVM_FADD, binary(e, LLVM_FMUL, p, r), real(e, s, e->f64, terms[k]));
    return choose(e, ordered, cast(e, LLVM_FPTRUNC, binary(e, LLVM_FMUL, p, bitcast(e, s, scale, e->f64)), e->f32), f);
}

struct floats {
    llvm_value x, y, z;
    llvm_type  type;
    bool       scalar, ftz;
    unsigned   bits;
};

static llvm_value copied_sign(struct emitter *e, const struct floats *f)
{
    llvm_type  type = e->ll->LLVMTypeOf(f->x);
    llvm_value args[2] = {f->y, f->x};

    return intrinsic(e, "llvm.copysign", &type, 1, args, 2);
}

static llvm_value float_result(struct emitter *e, const struct floats *f)
{
    llvm_value one = real(e, f->scalar, f->type, 1), r;

    switch ((int)e->insn->opcode) {
    case PTX_OP_ADD:
        return binary(e, LLVM_FADD, f->x, f->y);
    case PTX_OP_SUB:
        return binary(e, LLVM_FSUB, f->x, f->y);
    case PTX_OP_MUL:
        r = binary(e, LLVM_FMUL, f->x, f->y);
        return f->ftz ? zero_where(e, f->scalar, is_small(e, f->scalar, LLVM_FMUL, f->x, f->y), r) : r;
    case PTX_OP_DIV:
        r = binary(e, LLVM_FDIV, f->x, f->y);
        return f->ftz ? zero_where(e, f->scalar, is_small(e, f->scalar, LLVM_FDIV, f->x, f->y), r) : r;
    case PTX_OP_FMA:
    case PTX_OP_MAD:
        r = fused(e, f->x, f->y, f->z);
        return f->ftz ? zero_where(e, f->scalar, sum_is_small(e, f->scalar, f->x, f->y, f->z), r) : r;
    case PTX_OP_MIN:
    case PTX_OP_MAX:
        return least_or_most_float(e, f->scalar, f->bits, f->x, f->y);
    case PTX_OP_NEG:
        return e->ll->LLVMBuildFNeg(e->b, f->x, "");
    case PTX_OP_ABS:
        return magnitude(e, f->x);
    case PTX_OP_SQRT:
        return unary_intrinsic(e, "llvm.sqrt", f->x);
    case PTX_OP_RCP:
        return binary(e, LLVM_FDIV, one, f->x);
    case PTX_OP_RSQRT:
        return binary(e, LLVM_FDIV, one, unary_intrinsic(e, "llvm.sqrt", f->x));
    case PTX_OP_COPYSIGN:
        return copied_sign(e, f);
    case PTX_OP_EX2:
        return power_of_two(e, f->scalar, f->x);
    default:
        e->broken = true;
        return f->x;
    }
}

static void float_operation(struct emitter *e)
{
    const struct ptx_insn *in = e->insn;
    unsigned               bits = in->type == PTX_F64 ? 64 : 32, count = in->operands_count - 1 < 3 ? in->operands_count - 1 : 3;
    struct floats          f = {.type = bits == 64 ? e->f64 : e->f32, .ftz = in->ftz && bits == 32, .bits = bits};
    llvm_value            *to[3] = {&f.x, &f.y, &f.z}, r;
    struct value           v[3];

    for (unsigned i = 0; i < count; i++)
        v[i] = source_value(e, &in->operands[i + 1], bits / 8);
    f.scalar = alike(e, v, count);
    for (unsigned i = 0; i < count; i++) {
        *to[i] = bitcast(e, f.scalar, v[i].v, f.type);
        if (f.ftz)
            *to[i] = flush(e, f.scalar, *to[i]);
    }
    r = float_result(e, &f);
    if (f.ftz)
        r = flush(e, f.scalar, r);
    if (in->sat)
        r = saturated(e, f.scalar, f.type, r);
    write_register(e, in->operands[0].reg,
                   (struct value){.v = bitcast(e, f.scalar, r, int_type(e, bits)), .scalar = f.scalar, .bits = bits, .shape = v[0].shape},
                   false);
}

void emit_arithmetic(struct emitter *e)
{
    if (is_plain_float(e->insn->type))
        float_operation(e);
    else
        int_operation(e);
}

/* ---- conversions ---- */

static llvm_value rounded(struct emitter *e, llvm_value v, uint8_t modifier)
{
    static const char *const names[] = {
        [ROUND_NEAREST] = "llvm.rint", [ROUND_ZERO] = "llvm.trunc", [ROUND_DOWN] = "llvm.floor", [ROUND_UP] = "llvm.ceil"};

    return unary_intrinsic(e, names[rounding_of(modifier)], v);
}

/* Clamped to the integer's range; NaN becomes 0, or the highest bit alone where 64 bits are involved. */
static llvm_value whole(struct emitter *e, bool scalar, llvm_value f, unsigned from_bits, unsigned to_bits, bool is_signed)
{
    llvm_type  types[2] = {shaped(e, scalar, int_type(e, to_bits)), e->ll->LLVMTypeOf(f)};
    llvm_value r = intrinsic(e, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat", types, 2, &f, 1);

    if (to_bits < 64 && from_bits < 64)
        return r;
    return choose(e, fcmp(e, LLVM_UNO, f, f), like(e, scalar, to_bits, 1ull << (to_bits - 1)), r);
}

static llvm_value float_to_float(struct emitter *e, bool scalar, llvm_value f)
{
    const struct ptx_insn *in = e->insn;
    llvm_type              type = in->type == PTX_F64 ? e->f64 : e->f32;

    if (in->rounding >= PTX_RNI && in->rounding <= PTX_RPI)
        f = rounded(e, f, in->rounding);
    if (in->type != in->stype)
        f = cast(e, in->type == PTX_F64 ? LLVM_FPEXT : LLVM_FPTRUNC, f, type);
    if (in->sat)
        f = saturated(e, scalar, type, f);
    return in->ftz && in->type == PTX_F32 ? flush(e, scalar, f) : f;
}

/* For NEON, LLVM goes from 64 bits over binary64 to binary32, unless the lanes go alone. */
static llvm_value convert_lanes(struct emitter *e, enum llvm_opcode op, llvm_value v, llvm_type type)
{
    llvm_value all = e->ll->LLVMGetUndef(vector_of(e, type));

    for (unsigned i = 0; i < e->lanes; i++) {
        llvm_value lane = number(e, 32, i), one = e->ll->LLVMBuildExtractElement(e->b, v, lane, "");

        all = e->ll->LLVMBuildInsertElement(e->b, all, cast(e, op, one, type), lane, "");
    }
    return all;
}

static llvm_value int_to_float(struct emitter *e, bool scalar, llvm_value v, bool is_signed)
{
    const struct ptx_insn *in = e->insn;
    llvm_type              type = in->type == PTX_F64 ? e->f64 : e->f32;
    enum llvm_opcode       op = is_signed ? LLVM_SITOFP : LLVM_UITOFP;
    bool                   twice = e->ll->neon && !scalar && in->type == PTX_F32 && ptx_type_bytes((enum ptx_type)in->stype) == 8;
    llvm_value             f = twice ? convert_lanes(e, op, v, type) : cast(e, op, v, type);

    return in->sat ? saturated(e, scalar, type, f) : f;
}

static void convert_float(struct emitter *e, struct value v, unsigned from_bits, unsigned to_bits, bool from_signed, bool to_signed)
{
    const struct ptx_insn *in = e->insn;
    struct value           r = {.scalar = alike(e, &v, 1), .bits = to_bits, .shape = v.shape};
    llvm_value             f = v.v;

    if (is_plain_float(in->stype)) {
        f = bitcast(e, r.scalar, f, in->stype == PTX_F64 ? e->f64 : e->f32);
        if (in->ftz && in->stype == PTX_F32)
            f = flush(e, r.scalar, f);
    }
    if (!is_plain_float(in->stype))
        r.v = bitcast(e, r.scalar, int_to_float(e, r.scalar, f, from_signed), int_type(e, to_bits));
    else if (is_plain_float(in->type))
        r.v = bitcast(e, r.scalar, float_to_float(e, r.scalar, f), int_type(e, to_bits));
    else
        r.v = whole(e, r.scalar, rounded(e, f, in->rounding), from_bits, to_bits, to_signed);
    write_register(e, in->operands[0].reg, r, to_signed && !is_plain_float(in->type));
}

void emit_convert(struct emitter *e)
{
    const struct ptx_insn *in = e->insn;
    unsigned               from = ptx_type_bytes((enum ptx_type)in->stype), to = ptx_type_bytes((enum ptx_type)in->type);
    bool                   from_signed = lane_type_is_signed(lane_type_of((enum ptx_type)in->stype));
    bool                   to_signed = lane_type_is_signed(lane_type_of((enum ptx_type)in->type));
    struct value           v = source_value(e, &in->operands[1], from == 1 ? 2 : from);

    if (from == 1)
        v = resize_value(e, v, 8, false);
    if (is_plain_float(in->type) || is_plain_float(in->stype)) {
        convert_float(e, v, 8 * from, 8 * to, from_signed, to_signed);
        return;
    }
    v = resize_value(e, v, 8 * to, from_signed);
    write_register(e, in->operands[0].reg, v, to_signed);
}

/* ---- comparisons, selections, moves ---- */

llvm_value compare_ints(struct emitter *e, enum compare how, bool is_signed, llvm_value x, llvm_value y)
{
    static const unsigned char of_unsigned[] = {
        [CMP_EQ] = LLVM_EQ, [CMP_NE] = LLVM_NE, [CMP_LT] = LLVM_ULT, [CMP_LE] = LLVM_ULE, [CMP_GT] = LLVM_UGT, [CMP_GE] = LLVM_UGE};
    static const unsigned char of_signed[] = {
        [CMP_EQ] = LLVM_EQ, [CMP_NE] = LLVM_NE, [CMP_LT] = LLVM_SLT, [CMP_LE] = LLVM_SLE, [CMP_GT] = LLVM_SGT, [CMP_GE] = LLVM_SGE};

    return icmp(e, (enum llvm_int_compare)(is_signed ? of_signed : of_unsigned)[how], x, y);
}

static llvm_value compare_floats(struct emitter *e, enum compare how, llvm_value x, llvm_value y)
{
    static const unsigned char conditions[] = {
        [CMP_EQ] = LLVM_OEQ,    [CMP_NE] = LLVM_ONE,    [CMP_LT] = LLVM_OLT,  [CMP_LE] = LLVM_OLE,    [CMP_GT] = LLVM_OGT,
        [CMP_GE] = LLVM_OGE,    [CMP_EQU] = LLVM_UEQ,   [CMP_NEU] = LLVM_UNE, [CMP_LTU] = LLVM_ULT_F, [CMP_LEU] = LLVM_ULE_F,
        [CMP_GTU] = LLVM_UGT_F, [CMP_GEU] = LLVM_UGE_F, [CMP_NUM] = LLVM_ORD, [CMP_NAN] = LLVM_UNO,
    };

    return fcmp(e, (enum llvm_float_compare)conditions[how], x, y);
}

static llvm_value combined(struct emitter *e, llvm_value test, llvm_value third)
{
    static const uint8_t ops[] = {[PTX_DO_AND] = LLVM_AND, [PTX_DO_OR] = LLVM_OR, [PTX_DO_XOR] = LLVM_XOR};

    return e->insn->action ? binary(e, (enum llvm_opcode)ops[e->insn->action], test, third) : test;
}

void emit_compare(struct emitter *e)
{
    const struct ptx_insn *in = e->insn;
    unsigned               bytes = ptx_type_bytes((enum ptx_type)in->type), count = in->action ? 3 : 2;
    bool                   scalar, is_float = is_plain_float(in->type);
    enum compare           how = CMP_EQ;
    struct value           v[3];
    llvm_value             test, no;

    if (!insn_comparison(in, &how) || (!is_float && how > CMP_GE)) {
        e->broken = true;
        return;
    }
    v[0] = source_value(e, &in->operands[1], bytes);
    v[1] = source_value(e, &in->operands[2], bytes);
    if (count == 3)
        v[2] = source_value(e, &in->operands[3], 1);
    scalar = alike(e, v, count);
    if (is_float) {
        for (unsigned i = 0; i < 2; i++) {
            v[i].v = bitcast(e, scalar, v[i].v, bytes == 8 ? e->f64 : e->f32);
            if (in->ftz && bytes == 4)
                v[i].v = flush(e, scalar, v[i].v);
        }
        test = compare_floats(e, how, v[0].v, v[1].v);
    } else {
        test = compare_ints(e, how, lane_type_is_signed(lane_type_of((enum ptx_type)in->type)), v[0].v, v[1].v);
    }
    no = binary(e, LLVM_XOR, test, like(e, scalar, 1, 1));
    if (count == 3) {
        test = combined(e, test, v[2].v);
        no = combined(e, no, v[2].v);
    }
    if (in->operands[0].kind == PTX_REG)
        write_register(e, in->operands[0].reg, (struct value){.v = test, .scalar = scalar, .bits = 1, .shape = v[0].shape}, false);
    if (in->predicate.kind == PTX_REG)
        write_register(e, in->predicate.reg, (struct value){.v = no, .scalar = scalar, .bits = 1, .shape = v[0].shape}, false);
}

void emit_select(struct emitter *e)
{
    const struct ptx_insn *in = e->insn;
    unsigned               bytes = ptx_type_bytes((enum ptx_type)in->type);
    struct value           v[3] = {source_value(e, &in->operands[1], bytes), source_value(e, &in->operands[2], bytes),
                                   source_value(e, &in->operands[3], 1)};
    bool                   scalar = alike(e, v, 3);

    write_register(e, in->operands[0].reg,
                   (struct value){.v = choose(e, v[2].v, v[0].v, v[1].v), .scalar = scalar, .bits = v[0].bits, .shape = v[0].shape}, false);
}

static void pack(struct emitter *e, unsigned bytes)
{
    const struct ptx_operand *parts = &e->insn->operands[1];
    unsigned                  each = bytes / parts->count;
    struct value              v[PTX_VECTOR_MAX];
    bool                      scalar;
    llvm_value                all = NULL;

    for (unsigned k = 0; k < parts->count; k++)
        v[k] = parts->elements[k].kind == PTX_SINK ? constant_value(e, 8 * each, 0)
                                                   : source_value(e, &parts->elements[k], each == 1 ? 2 : each);
    for (unsigned k = 0; k < parts->count; k++)
        v[k] = resize_value(e, v[k], 8 * each, false);
    scalar = alike(e, v, parts->count);
    for (unsigned k = 0; k < parts->count; k++) {
        llvm_value part = cast(e, LLVM_ZEXT, v[k].v, int_type(e, 8 * bytes));
        part = binary(e, LLVM_SHL, part, like(e, scalar, 8 * bytes, 8 * each * k));
        all = all ? binary(e, LLVM_OR, all, part) : part;
    }
    write_register(e, e->insn->operands[0].reg, (struct value){.v = all, .scalar = scalar, .bits = 8 * bytes, .shape = v[0].shape}, false);
}

static void unpack(struct emitter *e, unsigned bytes)
{
    const struct ptx_operand *parts = &e->insn->operands[0];
    unsigned                  each = bytes / parts->count;
    struct value              v = source_value(e, &e->insn->operands[1], bytes);
    bool                      scalar = alike(e, &v, 1);

    for (unsigned k = 0; k < parts->count; k++) {
        llvm_value part = cast(e, LLVM_TRUNC, binary(e, LLVM_LSHR, v.v, like(e, scalar, 8 * bytes, 8 * each * k)), int_type(e, 8 * each));
        if (parts->elements[k].kind == PTX_REG)
            write_register(e, parts->elements[k].reg, (struct value){.v = part, .scalar = scalar, .bits = 8 * each, .shape = v.shape},
                           false);
    }
}

void emit_move(struct emitter *e)
{
    const struct ptx_insn *in = e->insn;
    unsigned               bytes = ptx_type_bytes((enum ptx_type)in->type);

    if (in->operands[1].kind == PTX_VECTOR)
        pack(e, bytes);
    else if (in->operands[0].kind == PTX_VECTOR)
        unpack(e, bytes);
    else
        write_register(e, in->operands[0].reg, source_value(e, &in->operands[1], bytes),
                       lane_type_is_signed(lane_type_of((enum ptx_type)in->type)));
}

/* cvta: spaces other than device memory have windows (device/cpu/interp/interp.h). */
void emit_address(struct emitter *e)
{
    const struct ptx_insn *in = e->insn;
    uint64_t               window = in->space == PTX_SHARED                                   ? SHARED_WINDOW
                                    : in->space == PTX_LOCAL                                  ? LOCAL_WINDOW
                                    : in->space == PTX_PARAM || in->space == PTX_KERNEL_PARAM ? PARAM_WINDOW
                                                                                              : 0;

    write_register(e, in->operands[0].reg,
                   sum(e, source_value(e, &in->operands[1], 8), constant_value(e, 64, in->to ? 0 - window : window), false), false);
}
