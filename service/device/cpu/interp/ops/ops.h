/* What operations share with the decoder: each file tells which handler executes a form of an instruction, NULL: none. */
#pragma once

#include "base/span.h"
#include "device/cpu/interp/interp.h"
#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/launch.h"

/* An access's space; generic addresses carry theirs in their value. */
enum op_space { OP_GENERIC, OP_GLOBAL, OP_SHARED, OP_LOCAL, OP_PARAM, OP_PARAM_KERNEL };

/* The type in which an operation computes. */
enum lane_type {
    LANE_PRED, LANE_U8, LANE_S8, LANE_U16, LANE_S16, LANE_U32, LANE_S32, LANE_U64, LANE_S64, LANE_F16, LANE_BF16, LANE_F32, LANE_F64,
    LANE_TYPES
};

/* The type of an instruction's lanes; bits count as unsigned, packed halves as 32 bits, 128 bits as LANE_TYPES. */
enum lane_type lane_type_of(enum ptx_type t);
unsigned lane_type_bytes(enum lane_type t);
bool     lane_type_is_float(enum lane_type t);
bool     lane_type_is_signed(enum lane_type t);

enum compare { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_EQU, CMP_NEU, CMP_LTU, CMP_LEU, CMP_GTU, CMP_GEU, CMP_NUM, CMP_NAN,
               COMPARES };

op_fn int_handler(const struct ptx_insn *in);
op_fn float_handler(const struct ptx_insn *in, uint8_t *mode);
op_fn half_handler(const struct ptx_insn *in, uint8_t *mode);
enum { FINISH_RELU = 1, FINISH_FINITE = 2 };
void  low_half(struct lanes *l, const struct op *o);
void  high_half(struct lanes *l, const struct op *o);
void  join_halves(struct lanes *l, const struct op *o);
void  finish_half(struct lanes *l, const struct op *o);
void  pack_clamped(struct lanes *l, const struct op *o);
void  round_tf32(struct lanes *l, const struct op *o);
op_fn bits_handler(const struct ptx_insn *in, uint8_t *mode);
op_fn saturate_handler(enum ptx_type t);
enum rounding rounding_of(uint8_t modifier);
op_fn compare_handler(enum lane_type type, enum compare how, bool ftz);
op_fn resize_handler(unsigned from_bytes, unsigned to_bytes, bool is_signed);
op_fn move_handler(unsigned bytes);
op_fn select_handler(unsigned bytes);
op_fn set_value_handler(unsigned bytes);
void  combine_and(struct lanes *l, const struct op *o);
void  combine_or(struct lanes *l, const struct op *o);
void  combine_xor(struct lanes *l, const struct op *o);
void  negate_pred(struct lanes *l, const struct op *o);
/* Sets o->run, mode, b and c. `integral`: float to float, rounded to an integral value. */
void convert_prepare(struct op *o, enum lane_type to, enum lane_type from, enum rounding r, bool ftz, bool saturate, bool integral);

enum bar_mode { BAR_SYNC, BAR_ARRIVE, BAR_POPC, BAR_AND, BAR_OR };

enum { VECTOR_ELEMENTS_MAX = 8 };

/* The registers of a vector operand. reg_bytes 0: `_`, read as 0 and never written. */
struct vector_places {
    uint32_t      place[VECTOR_ELEMENTS_MAX];
    unsigned char reg_bytes[VECTOR_ELEMENTS_MAX];
    unsigned char count;
    unsigned char element_bytes;
    bool          is_signed;
};

/* Host pointer for an access of lane `lane`; faults when it is outside its space or not aligned to `bytes` (a power of two). */
uint8_t    *lane_pointer(struct lanes *l, enum op_space s, uint64_t address, uint32_t bytes, uint32_t lane);
/* The same for a generic address and any alignment; NULL instead of a fault. */
const uint8_t *lane_peek(struct lanes *l, uint64_t address, uint32_t bytes, uint32_t lane);

op_fn memory_handler(bool store, unsigned memory_bytes, unsigned reg_bytes, bool is_signed);
void  load_vector(struct lanes *l, const struct op *o);
void  store_vector(struct lanes *l, const struct op *o);
void  pack_vector(struct lanes *l, const struct op *o);
void  unpack_vector(struct lanes *l, const struct op *o);
void  load_kernel_param_32(struct lanes *l, const struct op *o);
void  load_kernel_param_64(struct lanes *l, const struct op *o);

enum atom_op { ATOM_ADD, ATOM_AND, ATOM_OR, ATOM_XOR, ATOM_EXCH, ATOM_CAS, ATOM_MIN, ATOM_MAX, ATOM_INC, ATOM_DEC };
/* B stands for unsigned and for bits. */
enum atom_type { ATOM_B16, ATOM_B32, ATOM_S32, ATOM_B64, ATOM_S64, ATOM_F16, ATOM_F16X2, ATOM_BF16, ATOM_BF16X2, ATOM_F32, ATOM_F64 };
/* mode: the space; a: address, b and c: operands, d: the old value. */
op_fn atom_handler(enum atom_op op, enum atom_type type);
/* Faults unless each lane's address is aligned to `width` bytes and the bytes lie inside its space. */
void  check_alignment(struct lanes *l, const struct op *o);
/* After a load that acquires; before a store that releases. */
void  fence_acquire(struct lanes *l, const struct op *o);
void  fence_release(struct lanes *l, const struct op *o);
void  fence_all(struct lanes *l, const struct op *o);

/* Warp operations. e: member mask, mode: below. A second destination's place is in `immediate`. */
enum shfl_mode { SHFL_UP, SHFL_DOWN, SHFL_BFLY, SHFL_IDX };
enum vote_mode { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum redux_mode { REDUX_ADD, REDUX_AND, REDUX_OR, REDUX_XOR, REDUX_UMIN, REDUX_UMAX, REDUX_SMIN, REDUX_SMAX };
void warp_shuffle(struct lanes *l, const struct op *o);
void warp_vote(struct lanes *l, const struct op *o);
void warp_activemask(struct lanes *l, const struct op *o);
void warp_match(struct lanes *l, const struct op *o);
void warp_redux(struct lanes *l, const struct op *o);
void warp_elect(struct lanes *l, const struct op *o);
void warp_sync(struct lanes *l, const struct op *o);

/* 0 when the operation has no instruction. */
uint32_t op_line(const struct op *o);
