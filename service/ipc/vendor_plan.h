/* A product, a transform or a factorization for a library to prepare: one of the GPU's maker, or of the host. Fixed bytes, all of them
 * set: equal plans are equal bytes. A plan becomes a module of one kernel. Its parameters are addresses: of the built-in kernel's buffers,
 * in the order of its parameters, then of the workspace. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define VENDOR_KERNEL "vendor"

enum vendor_operation {
    VENDOR_MATMUL, /* out = a b for each of `batch`, all in rows */
    VENDOR_FFT,    /* `batch` transforms of complex numbers, not in place; the inverse is divided by its length */
    VENDOR_LU,     /* these are the built-in kernels of those names */
    VENDOR_CHOLESKY,
    VENDOR_TRIANGULAR_SOLVE,
    VENDOR_QR,
    VENDOR_QR_Q,
    VENDOR_EIGH,
    VENDOR_EIG,
    VENDOR_SVD,
    VENDOR_OPERATIONS,
};

/* C64 and C128: pairs of F32 and F64. */
enum vendor_number { VENDOR_F16, VENDOR_BF16, VENDOR_F32, VENDOR_TF32, VENDOR_F64, VENDOR_C64, VENDOR_C128 };

enum vendor_triangle { VENDOR_LOWER = 1, VENDOR_TRANSPOSED = 2, VENDOR_UNIT = 4 };

/* In elements; every address is a multiple of alignment_bytes, a power of two. */
struct vendor_matrix {
    uint64_t row;    /* from one row to the next */
    uint64_t matrix; /* from one matrix of the batch to the next; 0: the same one */
    uint64_t alignment_bytes;
};

struct vendor_plan {
    uint32_t             operation; /* enum vendor_operation */
    uint32_t             number;    /* enum vendor_number */
    uint64_t             batch;
    uint64_t             workspace_max; /* bytes; MATMUL: a method that needs more is not chosen */
    uint64_t             m, n, k;       /* MATMUL: a is m x k, b is k x n. Of factorizations: rows and columns of a matrix; k: columns of b
                                           (TRIANGULAR_SOLVE), or of out (QR_Q) */
    struct vendor_matrix a, b, out;     /* MATMUL */
    uint64_t             length, stride, distance; /* FFT: complex numbers; between the elements of a transform, and between transforms */
    uint64_t             repeats;                  /* FFT: all of it so often, the data behind each other */
    uint64_t             inverse;                  /* FFT: 0 or 1 */
    uint64_t             lefts, rights;            /* SVD: vectors wanted; EIGH, EIG: lefts is 1 if they are */
    uint64_t             triangle;                 /* TRIANGULAR_SOLVE: enum vendor_triangle */
};

/* Libraries count in 32 bits. */
static inline bool vendor_fits_int(uint64_t n)
{
    return n >= 1 && n <= INT32_MAX;
}

static_assert(sizeof(struct vendor_plan) == 2 * sizeof(uint32_t) + 22 * sizeof(uint64_t), "no byte of it is padding");

/* workspace: that many bytes for this launch alone, aligned to 256; 0 if none is needed. */
struct vendor_matmul_params {
    uint64_t a, b, out, workspace;
};
struct vendor_fft_params {
    uint64_t x, out, workspace;
};
struct vendor_lu_params {
    uint64_t x, out, order, exchanges, info, workspace;
};
struct vendor_cholesky_params {
    uint64_t x, out, info, workspace;
};
struct vendor_triangular_solve_params {
    uint64_t a, b, out, workspace;
};
struct vendor_qr_params {
    uint64_t x, out, tau, workspace;
};
struct vendor_qr_q_params {
    uint64_t x, tau, out, workspace;
};
struct vendor_eigh_params {
    uint64_t x, values, vectors, info, workspace;
};
struct vendor_eig_params {
    uint64_t x, values, vectors, info, workspace;
};
struct vendor_svd_params {
    uint64_t x, left, values, right, info, workspace;
};

enum { VENDOR_PARAMS_MAX = 6 }; /* addresses of any of them */

static_assert(sizeof(struct vendor_lu_params) == VENDOR_PARAMS_MAX * sizeof(uint64_t) &&
                  sizeof(struct vendor_svd_params) == VENDOR_PARAMS_MAX * sizeof(uint64_t),
              "the longest ones");

/* Addresses that a plan's kernel takes, the workspace's among them; 0: no such operation. */
static inline uint32_t vendor_params_count(uint32_t operation)
{
    static const uint32_t bytes[VENDOR_OPERATIONS] = {
        [VENDOR_MATMUL] = sizeof(struct vendor_matmul_params),
        [VENDOR_FFT] = sizeof(struct vendor_fft_params),
        [VENDOR_LU] = sizeof(struct vendor_lu_params),
        [VENDOR_CHOLESKY] = sizeof(struct vendor_cholesky_params),
        [VENDOR_TRIANGULAR_SOLVE] = sizeof(struct vendor_triangular_solve_params),
        [VENDOR_QR] = sizeof(struct vendor_qr_params),
        [VENDOR_QR_Q] = sizeof(struct vendor_qr_q_params),
        [VENDOR_EIGH] = sizeof(struct vendor_eigh_params),
        [VENDOR_EIG] = sizeof(struct vendor_eig_params),
        [VENDOR_SVD] = sizeof(struct vendor_svd_params),
    };

    return operation < VENDOR_OPERATIONS ? bytes[operation] / (uint32_t)sizeof(uint64_t) : 0;
}
