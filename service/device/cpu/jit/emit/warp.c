/* Operations among the threads of a warp, which is the chunk: shuffles and votes. As device/cpu/interp/ops/warp.c. */
#include "device/cpu/jit/emit/emit.h"

#include "device/cpu/jit/subset.h"

/* ---- shuffles ---- */

/* Which lane each lane reads from, and whether that lies inside its segment. */
struct source {
    llvm_value lane, inside; /* vectors */
};

static struct source shuffle_source(struct emitter *e, llvm_value b, llvm_value c)
{
    llvm_value    low = like(e, false, 32, 31), lane = e->every;
    llvm_value    segment = binary(e, LLVM_AND, binary(e, LLVM_LSHR, c, like(e, false, 32, 8)), low), clamp = binary(e, LLVM_AND, c, low);
    llvm_value    free = binary(e, LLVM_XOR, segment, like(e, false, 32, ~0u)), least = binary(e, LLVM_AND, lane, segment);
    llvm_value    most = binary(e, LLVM_OR, least, binary(e, LLVM_AND, clamp, free)), at;
    struct source s;

    b = binary(e, LLVM_AND, b, low);
    at = e->insn->action == PTX_DO_UP     ? binary(e, LLVM_SUB, lane, b)
         : e->insn->action == PTX_DO_DOWN ? binary(e, LLVM_ADD, lane, b)
         : e->insn->action == PTX_DO_BFLY ? binary(e, LLVM_XOR, lane, b)
                                          : binary(e, LLVM_OR, least, binary(e, LLVM_AND, b, free));
    s.inside = icmp(e, e->insn->action == PTX_DO_UP ? LLVM_SGE : LLVM_SLE, at, most);
    s.lane = choose(e, s.inside, at, lane);
    return s;
}

/* The same of numbers in the text. */
static uint32_t known_source(const struct ptx_insn *in, uint32_t lane, uint32_t b, uint32_t c)
{
    uint32_t segment = c >> 8 & 31, least = lane & segment, most = least | (c & 31 & ~segment), at;

    b &= 31;
    at = in->action == PTX_DO_UP     ? lane - b
         : in->action == PTX_DO_DOWN ? lane + b
         : in->action == PTX_DO_BFLY ? lane ^ b
                                     : (least | (b & ~segment));
    return (in->action == PTX_DO_UP ? (int32_t)at >= (int32_t)most : (int32_t)at <= (int32_t)most) ? at : lane;
}

static llvm_value permuted(struct emitter *e, llvm_value v, llvm_value lane)
{
    size_t     at = offsetof(struct native_call, values);
    llvm_type  all = vector_of(e, e->i32), types[2] = {all, NULL};
    llvm_value args[4], from = binary(e, LLVM_ADD, e->call, number(e, 64, at));

    set_member(e, at, v, false);
    from = binary(e, LLVM_ADD, spread(e, from), binary(e, LLVM_SHL, cast(e, LLVM_ZEXT, lane, e->i64), like(e, false, 64, 2)));
    args[0] = e->ll->LLVMBuildCast(e->b, LLVM_INTTOPTR, from, vector_of(e, e->ll->LLVMPointerType(e->i32, 0)), "");
    args[1] = number(e, 32, 4);
    args[2] = e->ll->LLVMConstAllOnes(vector_of(e, e->i1));
    args[3] = e->ll->LLVMGetUndef(all);
    types[1] = e->ll->LLVMTypeOf(args[0]);
    return intrinsic(e, "llvm.masked.gather", types, 2, args, 4);
}

/* A lane that takes no part gives 0. */
void emit_shuffle(struct emitter *e)
{
    const struct ptx_insn    *in = e->insn;
    const struct ptx_operand *b = &in->operands[2], *c = &in->operands[3];
    struct value              v[3] = {source_value(e, &in->operands[1], 4), source_value(e, b, 4), source_value(e, c, 4)};
    llvm_value                given = choose(e, e->taken, as_vector(e, &v[0]), like(e, false, 32, 0)), got;
    struct source             s = shuffle_source(e, as_vector(e, &v[1]), as_vector(e, &v[2]));

    if (shuffles_first(in)) {
        struct value first = scalar_value(e->ll->LLVMBuildExtractElement(e->b, given, number(e, 32, 0), ""), 32);
        write_register(e, in->operands[0].reg, first, false);
    } else {
        if (b->kind == PTX_IMMEDIATE && c->kind == PTX_IMMEDIATE) {
            llvm_value lanes[NATIVE_LANES_MAX];

            for (uint32_t i = 0; i < e->lanes; i++)
                lanes[i] = number(e, 32, known_source(in, i, (uint32_t)b->value, (uint32_t)c->value));
            got = e->ll->LLVMBuildShuffleVector(e->b, given, given, e->ll->LLVMConstVector(lanes, e->lanes), "");
        } else {
            got = permuted(e, given, s.lane);
        }
        write_register(e, in->operands[0].reg, vector_value(got, 32), false);
    }
    if (in->predicate.kind == PTX_REG)
        write_register(e, in->predicate.reg, vector_value(s.inside, 1), false);
}

/* ---- votes ---- */

void emit_vote(struct emitter *e)
{
    const struct ptx_insn    *in = e->insn;
    const struct ptx_operand *o = native_members(in);
    struct value              p = source_value(e, &in->operands[1], 1);
    struct value              members = o ? source_value(e, o, 4) : constant_value(e, 32, UINT32_MAX);
    llvm_value                active = mask_bits(e, e->taken), ones = mask_bits(e, binary(e, LLVM_AND, as_vector(e, &p), e->taken)), yes, r;
    bool                      scalar = alike(e, &members, 1);
    unsigned                  bits = in->action == PTX_DO_BALLOT ? 32 : 1;

    if (!scalar) {
        active = spread(e, active);
        ones = spread(e, ones);
    }
    active = binary(e, LLVM_AND, members.v, active);
    yes = binary(e, LLVM_AND, ones, active);
    r = in->action == PTX_DO_BALLOT
            ? yes
            : icmp(e, in->action == PTX_DO_ANY ? LLVM_NE : LLVM_EQ, yes, in->action == PTX_DO_ANY ? like(e, scalar, 32, 0) : active);
    if (in->action == PTX_DO_UNI)
        r = binary(e, LLVM_OR, r, icmp(e, LLVM_EQ, yes, like(e, scalar, 32, 0)));
    write_register(e, in->operands[0].reg, scalar ? scalar_value(r, bits) : vector_value(r, bits), false);
}

void emit_activemask(struct emitter *e)
{
    write_register(e, e->insn->operands[0].reg, scalar_value(mask_bits(e, e->taken), 32), false);
}
