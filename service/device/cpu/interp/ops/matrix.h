/* What mma and wmma share: how the elements of a matrix are distributed over the threads of a warp, and the product of two matrices. */
#pragma once

#include "device/cpu/interp/decode/decode.h"

/* The product of an m by k and a k by n matrix. */
struct matrix_shape {
    uint8_t       shape; /* enum ptx_shape */
    uint16_t      m, n, k;
    enum ptx_type type; /* of a and b; the signed one stands for both */
};

/* One matrix of an instruction and the registers that hold it. */
struct fragment {
    char                        matrix; /* 'a', 'b', or 'c' for a sum */
    uint16_t                    rows, columns;
    enum ptx_type               type;
    unsigned                    elements;  /* of a register */
    unsigned                    registers; /* distinct ones; the others repeat them */
    const struct vector_places *places;
};

struct multiply_plan {
    unsigned        k;
    uint8_t         bit_action; /* of bits: PTX_DO_XOR or PTX_DO_AND */
    bool            finite;     /* `.satfinite`: integers are clamped instead of wrapped */
    struct fragment d, a, b, c;
};

unsigned matrix_type_bits(enum ptx_type t);
/* The type that stands for signed and unsigned ones in struct matrix_shape. */
enum ptx_type matrix_type_family(enum ptx_type t);
/* Whether sums of such products may have that type. */
bool matrix_sum_fits(enum ptx_type product, enum ptx_type sum);
/* The place of element j of register r of that lane (of the warp). */
void     matrix_place(const struct fragment *f, unsigned lane, unsigned r, unsigned j, unsigned *row, unsigned *column);
uint64_t matrix_register(struct lanes *l, const struct fragment *f, unsigned r, uint32_t lane);
/* Operand i as that matrix; false unless it is a vector of `registers` registers; 0: as many as hold the matrix once. */
bool matrix_fragment(struct decoder *d, unsigned i, char matrix, enum ptx_type type, const struct matrix_shape *s, unsigned registers,
                     struct fragment *out);
/* Appends the operation. d, a, b and c are operands 0 to 3 and have the types t; a_registers: as above. */
bool matrix_multiply(struct decoder *d, const struct matrix_shape *s, const enum ptx_type t[4], unsigned a_registers);
/* All threads of the warp take part in the instruction. */
void matrix_name_all_members(struct decoder *d);
