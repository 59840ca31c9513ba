/* The part of BLAS and LAPACK that is used, by the names and with the arguments that Fortran gives them: everything by its address, whole
 * numbers of 32 bits, matrices by columns, and behind all others the length of each text. Declared here, so that building needs no header.
 * tests/unit/device/cpu/vendor/vendor_test.c calls each function of the real library where there is one. */
#pragma once

#include <stddef.h>

/* Types of elements: s, d, c and z in the functions' names. */
enum blas_number { BLAS_F32, BLAS_F64, BLAS_C64, BLAS_C128, BLAS_NUMBERS };

/* c = alpha op(a) op(b) + beta c, with m x n elements. */
typedef void blas_gemm(const char *op_a, const char *op_b, const int *m, const int *n, const int *k, const void *alpha, const void *a,
                       const int *lda, const void *b, const int *ldb, const void *beta, void *c, const int *ldc, size_t, size_t);
/* b = alpha b op(a)^-1, or with a on the left; b has m x n elements. */
typedef void blas_trsm(const char *side, const char *triangle, const char *op, const char *diagonal, const int *m, const int *n,
                       const void *alpha, const void *a, const int *lda, void *b, const int *ldb, size_t, size_t, size_t, size_t);
typedef void lapack_getrf(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);
typedef void lapack_potrf(const char *triangle, const int *n, void *a, const int *lda, int *info, size_t);
typedef void lapack_geqrf(const int *m, const int *n, void *a, const int *lda, void *tau, void *work, const int *work_count, int *info);
typedef void lapack_orgqr(const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau, void *work,
                          const int *work_count, int *info);
typedef void lapack_syevd(const char *job, const char *triangle, const int *n, void *a, const int *lda, void *values, void *work,
                          const int *work_count, int *integers, const int *integers_count, int *info, size_t, size_t);
typedef void lapack_heevd(const char *job, const char *triangle, const int *n, void *a, const int *lda, void *values, void *work,
                          const int *work_count, void *reals, const int *reals_count, int *integers, const int *integers_count, int *info,
                          size_t, size_t);
typedef void lapack_gesdd(const char *job, const int *m, const int *n, void *a, const int *lda, void *values, void *u, const int *ldu,
                          void *vt, const int *ldvt, void *work, const int *work_count, int *integers, int *info, size_t);
typedef void lapack_complex_gesdd(const char *job, const int *m, const int *n, void *a, const int *lda, void *values, void *u,
                                  const int *ldu, void *vt, const int *ldvt, void *work, const int *work_count, void *reals, int *integers,
                                  int *info, size_t);
/* Eigenvectors of real matrices: real and imaginary parts of a pair are columns beside each other. */
typedef void lapack_geev(const char *job_left, const char *job_right, const int *n, void *a, const int *lda, void *real_parts,
                         void *imaginary_parts, void *left, const int *ld_left, void *right, const int *ld_right, void *work,
                         const int *work_count, int *info, size_t, size_t);
typedef void lapack_complex_geev(const char *job_left, const char *job_right, const int *n, void *a, const int *lda, void *values,
                                 void *left, const int *ld_left, void *right, const int *ld_right, void *work, const int *work_count,
                                 void *reals, int *info, size_t, size_t);

struct openblas_functions {
    void (*set_num_threads)(int threads);
    char *(*get_config)(void); /* "OpenBLAS 0.3.21 ..." */
    struct blas_functions {
        blas_gemm            *gemm;
        blas_trsm            *trsm;
        lapack_getrf         *getrf;
        lapack_potrf         *potrf;
        lapack_geqrf         *geqrf;
        lapack_orgqr         *orgqr; /* of complex numbers: ungqr */
        lapack_syevd         *syevd; /* of real numbers, as the next two; of complex ones NULL, */
        lapack_gesdd         *gesdd;
        lapack_geev          *geev;
        lapack_heevd         *heevd; /* which have these three */
        lapack_complex_gesdd *complex_gesdd;
        lapack_complex_geev  *complex_geev;
    } of[BLAS_NUMBERS];
};
