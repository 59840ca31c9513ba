/* The part of cuSOLVER's binary interface that is used, and of cuBLAS's, declared here so that building needs no CUDA header. It is the same
 * in cuSOLVER 11 and 12. tests/unit/device/cuda/vendor/abi_test.c compares it with the real headers where a toolkit exists. Matrices lie by
 * columns; `lda` and its like are the elements from one column to the next. */
#pragma once

#include "device/cuda/abi.h"

#include <stddef.h>
#include <stdint.h>

typedef int cusolver_status; /* and cuBLAS's, which has other numbers */

enum {
    CUSOLVER_OK = 0,
    CUSOLVER_NO_MEMORY = 2,     /* the library's ALLOC_FAILED */
    CUSOLVER_VALUE_INVALID = 3, /* ... INVALID_VALUE */
    CUSOLVER_ARCH_UNKNOWN = 4,  /* ... ARCH_MISMATCH */
    CUSOLVER_TYPE_UNKNOWN = 8,  /* ... MATRIX_TYPE_NOT_SUPPORTED */
    CUSOLVER_NOT_OFFERED = 9,   /* ... NOT_SUPPORTED */
    CUBLAS_NO_MEMORY = 3,       /* cuBLAS's ALLOC_FAILED */
};

enum cusolver_type { CUSOLVER_TYPE_R_32F = 0, CUSOLVER_TYPE_R_64F = 1, CUSOLVER_TYPE_C_32F = 4, CUSOLVER_TYPE_C_64F = 5 };
enum cusolver_job { CUSOLVER_NO_VECTORS = 0, CUSOLVER_VECTORS = 1 };
enum cublas_triangle { CUBLAS_LOWER = 0, CUBLAS_UPPER = 1 };
enum cublas_side { CUBLAS_ON_RIGHT = 1 };
enum cublas_turn { CUBLAS_PLAIN = 0, CUBLAS_TRANSPOSED = 1 };
enum cublas_diagonal { CUBLAS_DIAGONAL_READ = 0, CUBLAS_DIAGONAL_ONES = 1 };

typedef struct cusolver_context   *cusolver_handle; /* these three are opaque */
typedef struct cusolver_dn_params *cusolver_options;
typedef struct cublas_context     *cublas_handle;

/* Types of elements: s, d, c and z in the functions' names. */
enum solver_number { SOLVER_F32, SOLVER_F64, SOLVER_C64, SOLVER_C128, SOLVER_NUMBERS };

/* Each function of a factorization has one that tells how much memory it works with, on the device and on the host. */
typedef cusolver_status cusolver_getrf_size(cusolver_handle, cusolver_options, int64_t m, int64_t n, unsigned type, const void *a,
                                            int64_t lda, unsigned compute, size_t *device_bytes, size_t *host_bytes);
typedef cusolver_status cusolver_getrf(cusolver_handle, cusolver_options, int64_t m, int64_t n, unsigned type, void *a, int64_t lda,
                                       int64_t *pivots, unsigned compute, void *device, size_t device_bytes, void *host, size_t host_bytes,
                                       int *info);
typedef cusolver_status cusolver_potrf_size(cusolver_handle, cusolver_options, unsigned triangle, int64_t n, unsigned type, const void *a,
                                            int64_t lda, unsigned compute, size_t *device_bytes, size_t *host_bytes);
typedef cusolver_status cusolver_potrf(cusolver_handle, cusolver_options, unsigned triangle, int64_t n, unsigned type, void *a, int64_t lda,
                                       unsigned compute, void *device, size_t device_bytes, void *host, size_t host_bytes, int *info);
typedef cusolver_status cusolver_geqrf_size(cusolver_handle, cusolver_options, int64_t m, int64_t n, unsigned type, const void *a,
                                            int64_t lda, unsigned tau_type, const void *tau, unsigned compute, size_t *device_bytes,
                                            size_t *host_bytes);
typedef cusolver_status cusolver_geqrf(cusolver_handle, cusolver_options, int64_t m, int64_t n, unsigned type, void *a, int64_t lda,
                                       unsigned tau_type, void *tau, unsigned compute, void *device, size_t device_bytes, void *host,
                                       size_t host_bytes, int *info);
typedef cusolver_status cusolver_syevd_size(cusolver_handle, cusolver_options, unsigned job, unsigned triangle, int64_t n, unsigned type,
                                            const void *a, int64_t lda, unsigned values_type, const void *values, unsigned compute,
                                            size_t *device_bytes, size_t *host_bytes);
typedef cusolver_status cusolver_syevd(cusolver_handle, cusolver_options, unsigned job, unsigned triangle, int64_t n, unsigned type,
                                       void *a, int64_t lda, unsigned values_type, void *values, unsigned compute, void *device,
                                       size_t device_bytes, void *host, size_t host_bytes, int *info);
/* m >= n. */
typedef cusolver_status cusolver_gesvd_size(cusolver_handle, cusolver_options, signed char job_u, signed char job_vt, int64_t m, int64_t n,
                                            unsigned type, const void *a, int64_t lda, unsigned values_type, const void *values,
                                            unsigned u_type, const void *u, int64_t ldu, unsigned vt_type, const void *vt, int64_t ldvt,
                                            unsigned compute, size_t *device_bytes, size_t *host_bytes);
typedef cusolver_status cusolver_gesvd(cusolver_handle, cusolver_options, signed char job_u, signed char job_vt, int64_t m, int64_t n,
                                       unsigned type, void *a, int64_t lda, unsigned values_type, void *values, unsigned u_type, void *u,
                                       int64_t ldu, unsigned vt_type, void *vt, int64_t ldvt, unsigned compute, void *device,
                                       size_t device_bytes, void *host, size_t host_bytes, int *info);
/* Eigenvectors of real matrices as LAPACK's geev has them: real and imaginary parts of a pair are columns beside each other. */
typedef cusolver_status cusolver_geev_size(cusolver_handle, cusolver_options, unsigned job_left, unsigned job_right, int64_t n,
                                           unsigned type, const void *a, int64_t lda, unsigned values_type, const void *values,
                                           unsigned left_type, const void *left, int64_t ld_left, unsigned right_type, const void *right,
                                           int64_t ld_right, unsigned compute, size_t *device_bytes, size_t *host_bytes);
typedef cusolver_status cusolver_geev(cusolver_handle, cusolver_options, unsigned job_left, unsigned job_right, int64_t n, unsigned type,
                                      void *a, int64_t lda, unsigned values_type, void *values, unsigned left_type, void *left,
                                      int64_t ld_left, unsigned right_type, void *right, int64_t ld_right, unsigned compute, void *device,
                                      size_t device_bytes, void *host, size_t host_bytes, int *info);
/* The next ones have a name for each type of elements. */
typedef cusolver_status cusolver_orgqr_size(cusolver_handle, int m, int n, int k, const void *a, int lda, const void *tau, int *count);
typedef cusolver_status cusolver_orgqr(cusolver_handle, int m, int n, int k, void *a, int lda, const void *tau, void *device, int count,
                                       int *info);
/* c = alpha op(a) + beta op(b), with m x n elements. */
typedef cusolver_status cublas_geam(cublas_handle, unsigned op_a, unsigned op_b, int m, int n, const void *alpha, const void *a, int lda,
                                    const void *beta, const void *b, int ldb, void *c, int ldc);
/* b = alpha op(a)^-1 b, or with a on the right; b has m x n elements. */
typedef cusolver_status cublas_trsm(cublas_handle, unsigned side, unsigned triangle, unsigned op, unsigned diagonal, int m, int n,
                                    const void *alpha, const void *a, int lda, void *b, int ldb);
typedef cusolver_status cublas_scal(cublas_handle, int n, const void *alpha, void *x, int step);

struct cusolver_functions {
    cusolver_status (*version)(int *number);
    cusolver_status (*create)(cusolver_handle *handle);
    cusolver_status (*destroy)(cusolver_handle handle);
    cusolver_status (*set_stream)(cusolver_handle handle, cuda_stream stream);
    cusolver_status (*create_options)(cusolver_options *options);
    cusolver_status (*destroy_options)(cusolver_options options);
    cusolver_getrf_size *getrf_size;
    cusolver_getrf      *getrf;
    cusolver_potrf_size *potrf_size;
    cusolver_potrf      *potrf;
    cusolver_geqrf_size *geqrf_size;
    cusolver_geqrf      *geqrf;
    cusolver_syevd_size *syevd_size;
    cusolver_syevd      *syevd;
    cusolver_gesvd_size *gesvd_size;
    cusolver_gesvd      *gesvd;
    cusolver_geev_size  *geev_size; /* these two: NULL before cuSOLVER 11.7.1 */
    cusolver_geev       *geev;
    cusolver_status (*blas_create)(cublas_handle *handle);
    cusolver_status (*blas_destroy)(cublas_handle handle);
    cusolver_status (*blas_set_stream)(cublas_handle handle, cuda_stream stream);
    struct cusolver_typed {
        cusolver_orgqr_size *orgqr_size; /* of complex numbers: ungqr */
        cusolver_orgqr      *orgqr;
        cublas_geam         *geam;
        cublas_trsm         *trsm;
        cublas_scal         *scal; /* of real numbers alone */
    } of[SOLVER_NUMBERS];
};
