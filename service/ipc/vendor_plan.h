/* A product or a transform for a library of the GPU's maker to prepare. Fixed bytes, all of them set: equal plans are equal bytes. A
 * plan becomes a module of one kernel whose parameters are addresses: struct vendor_matmul_params or struct vendor_fft_params. */
#ifndef GPUREST_IPC_VENDOR_PLAN_H
#define GPUREST_IPC_VENDOR_PLAN_H

#include <assert.h>
#include <stdint.h>

#define VENDOR_KERNEL "vendor"

enum vendor_operation {
    VENDOR_MATMUL, /* cuBLASLt: out = a b for each of `batch`, all in rows */
    VENDOR_FFT,    /* cuFFT: `batch` transforms of complex numbers, not in place; the inverse is divided by its length */
};

enum vendor_number { VENDOR_F16, VENDOR_BF16, VENDOR_F32, VENDOR_TF32, VENDOR_F64 };

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
    uint64_t             m, n, k;       /* MATMUL: a is m x k, b is k x n */
    struct vendor_matrix a, b, out;
    uint64_t             length, stride, distance; /* FFT: complex numbers; between the elements of a transform, and between transforms */
    uint64_t             inverse;                  /* FFT: 0 or 1 */
};

static_assert(sizeof(struct vendor_plan) == 2 * sizeof(uint32_t) + 18 * sizeof(uint64_t), "no byte of it is padding");

/* workspace: that many bytes for this launch alone, aligned to 256; 0 if none is needed. */
struct vendor_matmul_params {
    uint64_t a, b, out, workspace;
};
struct vendor_fft_params {
    uint64_t x, out, workspace;
};

#endif
