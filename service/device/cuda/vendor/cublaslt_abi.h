/* The part of cuBLASLt's binary interface that is used, declared here so that building needs no CUDA header. It is the same in versions
 * 12 and 13. tests/unit/device/cuda/vendor/abi_test.c compares it with the real cublasLt.h where a toolkit exists. */
#pragma once

#include "device/cuda/abi.h"

#include <stddef.h>
#include <stdint.h>

typedef int cublas_status;

enum {
    CUBLASLT_OK = 0,
    CUBLASLT_ALLOC_FAILED = 3,
    CUBLASLT_INVALID_VALUE = 7,
    CUBLASLT_ARCH_MISMATCH = 8,
    CUBLASLT_NOT_SUPPORTED = 15,
};

/* Of elements, and of the factors alpha and beta. */
enum cublaslt_type { CUBLASLT_R_32F = 0, CUBLASLT_R_64F = 1, CUBLASLT_R_16F = 2, CUBLASLT_R_16BF = 14 };

/* What products are computed and summed in. */
enum cublaslt_compute { CUBLASLT_COMPUTE_32F = 68, CUBLASLT_COMPUTE_64F = 70, CUBLASLT_COMPUTE_32F_FAST_TF32 = 77 };

enum cublaslt_layout_attribute {
    CUBLASLT_LAYOUT_BATCH_COUNT = 5,          /* int32_t */
    CUBLASLT_LAYOUT_STRIDED_BATCH_OFFSET = 6, /* int64_t, elements */
};

enum cublaslt_preference_attribute {
    CUBLASLT_PREFERENCE_MAX_WORKSPACE_BYTES = 1, /* uint64_t */
    CUBLASLT_PREFERENCE_REDUCTION_SCHEMES = 3,   /* uint32_t, of the bits below; all unless set */
    CUBLASLT_PREFERENCE_ALIGNMENT_A = 5,         /* uint32_t, bytes; so are the next three */
    CUBLASLT_PREFERENCE_ALIGNMENT_B = 6,
    CUBLASLT_PREFERENCE_ALIGNMENT_C = 7,
    CUBLASLT_PREFERENCE_ALIGNMENT_D = 8,
};

/* How the parts of a product split along k are combined: in the output as its type, in the workspace as the compute type, or in the
 * workspace as the output's type. */
enum cublaslt_reduction { CUBLASLT_REDUCTION_IN_PLACE = 1, CUBLASLT_REDUCTION_COMPUTE_TYPE = 2, CUBLASLT_REDUCTION_OUTPUT_TYPE = 4 };

typedef struct cublaslt_context           *cublaslt_handle; /* these four are opaque */
typedef struct cublaslt_matmul_desc       *cublaslt_matmul;
typedef struct cublaslt_matrix_layout     *cublaslt_layout;
typedef struct cublaslt_matmul_preference *cublaslt_preference;

struct cublaslt_algorithm {
    uint64_t data[8];
};

struct cublaslt_choice {
    struct cublaslt_algorithm algorithm;
    size_t                    workspace_bytes;
    cublas_status             state; /* not OK: the others are not valid */
    float                     waves;
    int                       reserved[4];
};

struct cublaslt_functions {
#define CUBLASLT(name, result, parameters) result(*name) parameters;
#include "device/cuda/vendor/cublaslt.def"
#undef CUBLASLT
};
