/* Makes LLVM's intermediate form of a planned kernel. */
#pragma once

#include "device/cpu/interp/ops/ops.h"
#include "device/cpu/jit/llvm.h"
#include "device/cpu/jit/plan.h"
#include "device/cpu/jit/strip.h"

/* A number of each lane, of 1, 8, 16, 32 or 64 bits; floats as their bits. scalar: the same in all lanes; or the first lane's, when
 * `shape` says that the lanes form a line. */
struct value {
    llvm_value   v;
    bool         scalar;
    unsigned     bits;
    struct shape shape; /* scalar: UNIFORM or LINEAR */
    llvm_value   turn;  /* LINEAR with shape.wrapped: from this lane on (32 bits) */
};

/* Lanes [low, high) of a band, in 32 bits; NULL: not known. */
struct stretch {
    llvm_value low, high;
};

/* What e->ahead knows of a register. */
enum ahead_state { AHEAD_KNOWN, AHEAD_UNKNOWN };

/* Accesses of a basic block that are checked together. */
struct access_group {
    uint32_t               reg;
    enum op_space          space;
    int64_t                low, high; /* bytes from the register's value on */
    unsigned               align;
    const struct ptx_insn *last; /* the last instruction that it holds for */
    llvm_value             ok;
    bool                   assumed; /* checked before the block */
};
enum { GROUPS_MAX = 16, GROUP_REACH = 1 << 20 };

/* Which chunk follows: chunks of a block are the inner turns and blocks the outer ones, or, across, the other way round. In 32 bits. */
struct chunk_turns {
    llvm_value across;                                             /* 1 bit */
    llvm_value inner, outer;                                       /* now */
    llvm_value inner_first, inner_step, inner_end, inner_full_end; /* full: of chunks that have all lanes */
    llvm_value outer_step, outer_end;
};

/* A parameter of the kernel. */
struct param_value {
    uint64_t   offset;
    unsigned   bytes;
    llvm_value v;
};
enum { PARAMS_KEPT_MAX = 64 };

struct emitter {
    const struct llvm     *ll;
    const struct jit_plan *plan;
    llvm_context           context;
    llvm_module            module;
    llvm_builder           b;
    llvm_value             function;
    llvm_type              i1, i8, i16, i32, i64, f32, f64;
    unsigned               lanes;
    llvm_value             call, lane; /* 64 bits: the call's address, and the chunk's first lane */
    llvm_value             frame, stride;
    llvm_value             memory_base, memory_span, shared, shared_bytes, local, local_bytes, params;
    llvm_value             every;  /* 0, 1, 2, ... in 32 bits */
    llvm_value            *slot;   /* [registers_count] where each is kept, or NULL */
    llvm_value            *turn;   /* [registers_count] of LINEAR ones that may wrap */
    llvm_block            *blocks; /* [blocks_count] of compiled ones */
    llvm_value             mask_slot, bits_slot, budget_slot;
    llvm_type              bits_type;
    unsigned               bits_words;
    llvm_block             dispatch, leave;
    llvm_block             chunk, done; /* where a chunk begins and ends */
    llvm_value             chunk_lane, chunk_lanes, chunk_same;
    struct chunk_turns     turns;
    llvm_value             leaves_slot, mixed_slot, last_slot; /* as in struct native_call */
    uint8_t               *awaited;                            /* [blocks_count] 1: lanes may wait there */
    llvm_value             mask;                               /* of the lanes that run the block now */
    llvm_value             taken;                              /* of those, the lanes that run the instruction */
    bool                   guarded;                            /* taken may be less than mask */
    uint32_t               block;
    const struct ptx_insn *insn;
    struct access_group    groups[GROUPS_MAX]; /* of the block */
    unsigned               groups_count;
    bool                   assuming, careful; /* which of two versions of the block is made */
    bool                   holds;             /* chunks may leave with registers held */
    bool                   full;              /* all lanes of a chunk run the block: its version for that is made */
    llvm_block            *full_blocks;       /* [blocks_count] those versions of compiled blocks */
    uint8_t               *passed;            /* [insns_count] 1: an access of the block that was checked before it began */
    unsigned               listed;            /* of those, in a strip: noted in the call's strip_access[] */
    struct value          *ahead;             /* [registers_count] not NULL: what registers will hold; nothing is written to them */
    uint8_t               *ahead_state;       /* [registers_count] enum ahead_state */
    struct native_ops     *ops;               /* [insns_count] gets their steps */
    llvm_value             specials[PTX_SPECIAL_COUNT]; /* the values of those that it knows, or of %tid the addresses of the arrays */
    struct param_value     param[PARAMS_KEPT_MAX];      /* loaded once for all chunks */
    unsigned               params_count;
    struct jit_strip      *strip;               /* of the kernel; NULL: it has none */
    struct strip_emission *strip_made;          /* device/cpu/jit/emit/strip.c */
    llvm_value             strip_all;           /* the bits of a chunk's lanes */
    llvm_value             strip_align;         /* as the call has it */
    llvm_value             begins;              /* 1 bit: the call began in the first block */
    llvm_value             strips_wanted;       /* 1 bit: they may begin */
    llvm_block             head, narrow;        /* where a chunk or strip begins; where a chunk does then */
    bool                   in_strip;            /* the strip's lanes, shapes and registers are the present ones */
    llvm_value             band_slot;           /* how many strips run together, in 32 bits; NULL: one */
    llvm_value             low_slot, high_slot; /* of their lanes, those that have not returned: [low, high); NULL: all are there */
    bool                   unfit;               /* not all of the strip can be made */
    bool                   has_strips;          /* the function has */
    bool                   broken;              /* the plan and the code disagree: nothing of it may run */
};

/* Adds the function `name`, a native_fn. False: out of memory. */
bool emit_function(struct emitter *e, const char *name);

/* device/cpu/jit/emit/value.c */
llvm_type      vector_of(const struct emitter *e, llvm_type element);
llvm_type      int_type(const struct emitter *e, unsigned bits);
llvm_value     number(const struct emitter *e, unsigned bits, uint64_t value);
llvm_value     spread(struct emitter *e, llvm_value scalar);     /* to all lanes */
llvm_value     lanes_together(struct emitter *e, unsigned bits); /* how many, those of all strips of a band */
struct stretch lanes_left(struct emitter *e);                    /* those that have not returned */
struct value   scalar_value(llvm_value v, unsigned bits);
struct value   vector_value(llvm_value v, unsigned bits);
struct value   constant_value(const struct emitter *e, unsigned bits, uint64_t v);
llvm_value     as_vector(struct emitter *e, const struct value *v);
/* Both as scalars, if both are uniform; else both as vectors. */
bool         alike(struct emitter *e, struct value *values, unsigned count);
struct value resize_value(struct emitter *e, struct value v, unsigned bits, bool is_signed);
struct value source_value(struct emitter *e, const struct ptx_operand *o, unsigned bytes);
struct value read_register(struct emitter *e, uint32_t reg);
/* Under the instruction's guard and the block's lanes; resized to the register. */
void       write_register(struct emitter *e, uint32_t reg, struct value v, bool is_signed);
llvm_value member(struct emitter *e, size_t offset, unsigned bits); /* of the call */
void       set_member(struct emitter *e, size_t offset, llvm_value v, bool is_volatile);
llvm_value pointer(struct emitter *e, llvm_value address, llvm_type to);
llvm_value intrinsic(struct emitter *e, const char *name, llvm_type *types, unsigned types_count, llvm_value *args, unsigned count);
llvm_value binary(struct emitter *e, enum llvm_opcode op, llvm_value x, llvm_value y);
llvm_value icmp(struct emitter *e, enum llvm_int_compare how, llvm_value x, llvm_value y);
llvm_value cast(struct emitter *e, enum llvm_opcode op, llvm_value v, llvm_type element); /* element by element */
llvm_value like(struct emitter *e, bool scalar, unsigned bits, uint64_t v);               /* a constant, as scalar or vector */
llvm_value likely(struct emitter *e, llvm_value condition);
llvm_value choose(struct emitter *e, llvm_value condition, llvm_value x, llvm_value y);
llvm_block new_block(struct emitter *e, const char *name);
void       go_on_in(struct emitter *e, llvm_block block);

/* device/cpu/jit/emit/masked.c: a mask as a number of 32 bits, and back. */
llvm_value mask_bits(struct emitter *e, llvm_value mask);
llvm_value lanes_vector(struct emitter *e, llvm_value bits);
/* Numbers of so many bytes at the lanes' addresses, which `at` holds, or, `row`, one after the other from `at` on. The address is 64 bits wide. */
llvm_value masked_load(struct emitter *e, llvm_value at, bool row, unsigned bytes, llvm_value mask);
void       masked_store(struct emitter *e, llvm_value at, bool row, unsigned bytes, llvm_value v, llvm_value mask);
/* A row in memory of this host thread alone, of which all is there. */
void own_store(struct emitter *e, llvm_value at, unsigned bytes, llvm_value v, llvm_value mask);

/* device/cpu/jit/emit/emit.c: a register to its array of the interpreter, for those lanes; and all of a chunk's lanes from there. */
void         save_register(struct emitter *e, uint32_t reg, llvm_value mask);
struct value array_value(struct emitter *e, uint32_t reg);

void load_specials(struct emitter *e); /* once for all chunks */

/* One instruction each; the first, any whose way is NATIVE_EMITTED. */
void emit_instruction(struct emitter *e); /* device/cpu/jit/emit/block.c */
void emit_arithmetic(struct emitter *e);  /* device/cpu/jit/emit/arith.c */
void emit_convert(struct emitter *e);
void emit_compare(struct emitter *e);
void emit_select(struct emitter *e);
void emit_move(struct emitter *e);
void emit_address(struct emitter *e);
void emit_load(struct emitter *e); /* device/cpu/jit/emit/memory.c */
void emit_store(struct emitter *e);
void load_params(struct emitter *e);   /* once for all chunks */
void emit_borrowed(struct emitter *e); /* device/cpu/jit/emit/borrow.c: any that is not emitted */
void emit_shuffle(struct emitter *e);  /* device/cpu/jit/emit/warp.c */
void emit_vote(struct emitter *e);
void emit_activemask(struct emitter *e);
void emit_atomic(struct emitter *e); /* device/cpu/jit/emit/atomic.c */
/* Where the call keeps a value of each lane: of an access or atomic the k-th. */
static inline size_t values_at(unsigned k)
{
    return offsetof(struct native_call, values) + sizeof(uint64_t[NATIVE_LANES_MAX]) * k;
}

/* device/cpu/jit/emit/memory.c: for it. */
llvm_value atomic_is_ours(struct emitter *e, const struct ptx_operand *p, unsigned bytes);
/* Whether all members of the warp that the instruction waits for run this block now. */
llvm_value warp_is_here(struct emitter *e, const struct ptx_insn *in);
/* Whether all accesses pass whose addresses the block finds in registers; NULL: not worth a version of its own. */
llvm_value                check_block(struct emitter *e);
const struct ptx_operand *address_operand(const struct ptx_insn *in); /* of a load or store, else NULL */
unsigned                  access_bytes(const struct ptx_insn *in);
/* Accesses from `base` on that lie in [low, high), aligned to `align`, for the lanes of `mask`: whether all pass. */
llvm_value check_range(struct emitter *e, enum op_space space, struct value base, int64_t low, int64_t high, unsigned align,
                       llvm_value mask);
bool       insn_writes(const struct ptx_insn *in, uint32_t reg);
bool       block_writes(const struct jit_plan *p, const struct code_block *k, uint32_t reg);
/* device/cpu/jit/emit/decide.c: what all lanes are known to do; both false: some may do the one, and some the other. */
struct decision {
    llvm_value     all, none; /* i1 */
    struct stretch yes, no;   /* which do it, and which do not, where these are stretches and */
    llvm_value     sure;      /* i1: that is right */
};
/* Whether all lanes take the branch that ends the block, or none does. False: nothing tells without looking at each. For blocks that all
 * lanes run. */
bool           decide_branch(struct emitter *e, const struct ptx_insn *branch, struct decision *out);
struct stretch common_stretch(struct emitter *e, struct stretch a, struct stretch b); /* of both, perhaps empty */
llvm_value     compare_ints(struct emitter *e, enum compare how, bool is_signed, llvm_value x, llvm_value y);
/* device/cpu/jit/emit/ahead.c: of a block of a strip that ends with a choice between returning and going on, which lanes go on; false: not known. */
bool staying_lanes(const struct emitter *e, const struct code_block *k, const struct decision *way, struct stretch *out);
/* device/cpu/jit/emit/ahead.c: whether all accesses of the block pass whose addresses can be computed before it begins, which sets
 * e->passed; NULL: there are none. For blocks that all lanes run. */
llvm_value check_ahead(struct emitter *e);
/* Of a strip also whether its lanes go on together, and then which way, in *way: all NULL if the block ends without a choice. e->unfit: that cannot
 * be told before. */
llvm_value   check_strip(struct emitter *e, struct decision *way);
struct value strip_index(struct emitter *e); /* device/cpu/jit/emit/value.c: of strip_counts() */
