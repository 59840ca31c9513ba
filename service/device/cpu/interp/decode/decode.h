/* Turns a parsed function into code: the state of that work, and the functions that its parts share. */
#pragma once

#include "device/cpu/interp/ops/ops.h"
#include "device/cpu/ptx/constant_index.h"

struct decoder {
    const struct ptx_module   *module;
    const struct ptx_function *function;
    const struct ptx_insn     *insn; /* being translated */
    struct code               *code;
    bool                       hoisting; /* operations go to the prologue */
    bool                       parted;   /* CODE_NATIVE */
    uint8_t                   *facts;    /* of each register, for device/cpu/interp/decode/hoist.c */
    uint32_t                   ops_room, prologue_room, constants_room, specials_room;
    struct constant_index      constants; /* of code->constants */
    uint32_t                  *places;    /* of each register */
    uint32_t                  *block_of;  /* [insns_count + 1] */
    uint8_t                   *leader;    /* [insns_count + 1] */
    uint32_t                   members;   /* of the warp operation translated last: place of its member mask */
    bool                       no_memory;
};

/* Space for a value of that many bytes per lane. */
uint32_t decode_temporary(struct decoder *d, unsigned bytes);
/* Appends the operation, under the instruction's guard. */
void decode_op(struct decoder *d, struct op o);
/* The same; its result is a temporary of that many bytes: its place. */
uint32_t decode_value(struct decoder *d, struct op o, unsigned bytes);
/* The same; its result goes to operand 0 and is extended if that register is wider. True. */
bool     decode_result(struct decoder *d, struct op o, unsigned bytes, bool is_signed);
uint32_t decode_constant(struct decoder *d, uint64_t value, unsigned bytes);
/* The place of an operand's value as an array of elements of exactly `bytes`; may append operations. */
uint32_t decode_source(struct decoder *d, const struct ptx_operand *p, unsigned bytes);
/* For results that decode_result() does not fit: the place of one of `bytes`; and, after the operation, its extension. */
uint32_t              decode_destination(struct decoder *d, const struct ptx_operand *p, unsigned bytes);
void                  decode_widen(struct decoder *d, const struct ptx_operand *p, uint32_t place, unsigned bytes, bool is_signed);
uint32_t              decode_register_bytes(const struct decoder *d, uint32_t reg);
struct vector_places *decode_vector(struct decoder *d, const struct ptx_operand *p, unsigned element_bytes, bool is_signed);
struct decoded_address {
    uint32_t      place;
    int64_t       immediate;
    enum op_space space;
};
struct decoded_address decode_address(struct decoder *d, const struct ptx_operand *p, enum ptx_space space);
/* An operation whose lanes access what its operand addresses. */
static inline struct op access_op(op_fn run, const struct decoded_address *at)
{
    return (struct op){.run = run, .a = at->place, .immediate = at->immediate, .mode = (uint8_t)at->space, .addresses = true};
}

/* device/cpu/interp/decode/check.c: appends the check of the access that follows, under memcheck only. */
enum check_access { CHECK_READ, CHECK_WRITE, CHECK_UPDATE };
void decode_check(struct decoder *d, const struct decoded_address *at, unsigned bytes, enum check_access how);
/* For handlers of several accesses, lane by lane: the same check of a generic or global address, now. Does nothing unless memcheck is
 * on. */
void check_now(struct lanes *l, enum op_space s, uint64_t address, uint32_t bytes, enum check_access how, uint32_t lane);

/* device/cpu/interp/decode/hoist.c: examines the function, once; whether this instruction can go to the prologue; and marks that it
 * does. */
void hoist_prepare(struct decoder *d);
bool hoist_wanted(const struct decoder *d);
void hoist_done(struct decoder *d);
/* Whether its result, lane by lane, is a function of its sources alone. Also true of ld.param of a kernel. */
bool insn_is_pure(const struct ptx_insn *in);

/* Of the instruction being translated: */
static inline unsigned type_bytes(const struct decoder *d)
{
    return ptx_type_bytes((enum ptx_type)d->insn->type);
}

static inline enum lane_type type_of(const struct decoder *d)
{
    return lane_type_of((enum ptx_type)d->insn->type);
}

static inline const struct ptx_operand *operand(const struct decoder *d, unsigned i)
{
    static const struct ptx_operand nothing;

    return i < d->insn->operands_count ? &d->insn->operands[i] : &nothing;
}

static inline bool is_float(enum ptx_type t)
{
    return t == PTX_F16 || t == PTX_F16X2 || t == PTX_BF16 || t == PTX_BF16X2 || t == PTX_F32 || t == PTX_F64;
}

/* device/cpu/interp/decode/translate.c: appends the operations of one instruction that does not leave its block. False: not supported. */
bool translate(struct decoder *d);
/* A predicate source; with '!' it becomes an array of its own. */
uint32_t decode_predicate(struct decoder *d, const struct ptx_operand *p);
bool     translate_setp(struct decoder *d); /* device/cpu/interp/decode/translate_compare.c */
/* The comparison of a setp or set; false: unknown. */
bool insn_comparison(const struct ptx_insn *in, enum compare *how);
bool translate_set(struct decoder *d);
bool translate_logic_predicate(struct decoder *d, uint32_t value);
bool translate_convert(struct decoder *d); /* device/cpu/interp/decode/translate_convert.c */
/* device/cpu/interp/decode/translate_warp.c; these also set d->members. */
bool translate_shuffle(struct decoder *d);
bool translate_vote(struct decoder *d);
bool translate_match(struct decoder *d);
bool translate_redux(struct decoder *d);
bool translate_elect(struct decoder *d);
bool translate_warp_sync(struct decoder *d);
bool translate_mma(struct decoder *d); /* device/cpu/interp/ops/matrix.c */
/* device/cpu/interp/ops/ldmatrix.c */
bool translate_ldmatrix(struct decoder *d);
bool translate_stmatrix(struct decoder *d);
bool translate_movmatrix(struct decoder *d);
bool translate_wmma(struct decoder *d);    /* device/cpu/interp/ops/wmma.c */
bool translate_texture(struct decoder *d); /* device/cpu/interp/decode/translate_texture.c */
bool translate_texture_query(struct decoder *d);
bool translate_surface(struct decoder *d);
bool translate_video(struct decoder *d);  /* device/cpu/interp/ops/video.c */
bool translate_cp(struct decoder *d);     /* device/cpu/interp/ops/copy.c */
bool translate_alloca(struct decoder *d); /* device/cpu/interp/ops/stack.c */
bool translate_stacksave(struct decoder *d);
bool translate_stackrestore(struct decoder *d);
bool translate_mbarrier(struct decoder *d);     /* device/cpu/interp/ops/mbarrier.c */
bool translate_copy_arrival(struct decoder *d); /* cp.async.mbarrier.arrive */
bool is_fp8_pair(uint8_t type);                 /* device/cpu/interp/ops/fp8.c */
bool translate_fp8(struct decoder *d);
/* device/cpu/interp/call.c */
bool translate_call(struct decoder *d);

/* Operations of device/cpu/interp/ops/special.c. */
void offset_address(struct lanes *l, const struct op *o); /* d = a + immediate, 64 bits */
void local_address(struct lanes *l, const struct op *o);  /* d = immediate + the function's frame */
void in_window(struct lanes *l, const struct op *o);      /* isspacep; mode: enum ptx_space; width: 1 for shared::cluster */
void read_clock(struct lanes *l, const struct op *o);     /* mode: enum ptx_special */
/* device/cpu/interp/cluster.c */
void cluster_arrive(struct lanes *l, const struct op *o);
void address_in_cluster(struct lanes *l, const struct op *o); /* d = a in the block whose rank is b; mode: OP_SHARED or OP_GENERIC */
void rank_in_cluster(struct lanes *l, const struct op *o);    /* d = rank of the block that the address a belongs to; mode: likewise */
void trap(struct lanes *l, const struct op *o);
void nap(struct lanes *l, const struct op *o);
