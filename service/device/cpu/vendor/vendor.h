/* Products, transforms and factorizations by the host's libraries, as kernels of one block. A plan is made by the command thread and run by
 * the dispatcher; what a run needs beside the data is in the plan, or in the launch's own workspace. */
#pragma once

#include <stdatomic.h>

#include "base/problem.h"
#include "device/cpu/vendor/vendor_library.h"
#include "ipc/vendor_plan.h"

/* Pieces of a factorization's workspace. */
enum cpu_room { ROOM_MATRIX, ROOM_LEFT, ROOM_RIGHT, ROOM_WORK, ROOM_REALS, ROOM_INTEGERS, CPU_ROOMS };

struct cpu_plan {
    struct vendor_plan ask;
    enum blas_number   number;
    uint64_t           workspace_bytes;
    uint64_t           room_bytes[CPU_ROOMS];
    int                work_count, reals_count, integers_count; /* what LAPACK asks for, in elements */
    fftw_plan_handle   fft;                                     /* NULL: of another operation */
    uint64_t           fft_bytes;                               /* host memory that it is counted with */
};

/* Looked at between matrices, and between pieces of large ones: a library's own call cannot be stopped. */
struct cpu_plan_watch {
    const atomic_int *stop;     /* not 0: cancelled */
    uint64_t          deadline; /* of deadline_passed() */
};

/* NOT_IMPLEMENTED: no library is here, or it does not support it. *out is to be freed; NULL on failure. */
enum status cpu_plan_make(const struct vendor_plan *ask, struct cpu_plan **out, struct problem *why);
void        cpu_plan_free(struct cpu_plan *p); /* NULL is a no-op */
/* `params`: vendor_params_count() addresses, the struct of the operation. EXECUTION_TIMEOUT, CANCELLED, LAUNCH_CONFIG_INVALID. */
enum status cpu_plan_run(const struct cpu_plan *p, const void *params, const struct cpu_plan_watch *watch, struct problem *why);

/* ---- of each operation's file ---- */
enum status cpu_matmul_make(struct cpu_plan *p, struct problem *why);
enum status cpu_matmul_run(const struct cpu_plan *p, const struct vendor_matmul_params *at, const struct cpu_plan_watch *watch,
                           struct problem *why);
enum status cpu_fft_make(struct cpu_plan *p, struct problem *why);
void        cpu_fft_free(struct cpu_plan *p);
enum status cpu_fft_run(const struct cpu_plan *p, const struct vendor_fft_params *at, const struct cpu_plan_watch *watch,
                        struct problem *why);
enum status cpu_factor_make(struct cpu_plan *p, struct problem *why);
void        cpu_lu_run(const struct cpu_plan *p, const struct vendor_lu_params *at, uint64_t index);
void        cpu_cholesky_run(const struct cpu_plan *p, const struct vendor_cholesky_params *at, uint64_t index);
void        cpu_triangular_solve_run(const struct cpu_plan *p, const struct vendor_triangular_solve_params *at, uint64_t index);
void        cpu_qr_run(const struct cpu_plan *p, const struct vendor_qr_params *at, uint64_t index);
void        cpu_qr_q_run(const struct cpu_plan *p, const struct vendor_qr_q_params *at, uint64_t index);
void        cpu_eigh_run(const struct cpu_plan *p, const struct vendor_eigh_params *at, uint64_t index);
void        cpu_eig_run(const struct cpu_plan *p, const struct vendor_eig_params *at, uint64_t index);
void        cpu_svd_run(const struct cpu_plan *p, const struct vendor_svd_params *at, uint64_t index);

/* ---- shared by them ---- */
/* OK, or how the run ended. */
enum status cpu_plan_watched(const struct cpu_plan_watch *watch, struct problem *why);
/* 1 of that type, and 0 of any. */
const void *blas_one(enum blas_number n);
const void *blas_zero(void);
uint64_t    blas_bytes(enum blas_number n);      /* of an element */
uint64_t    blas_part_bytes(enum blas_number n); /* of its real part */
bool        blas_is_complex(enum blas_number n);
