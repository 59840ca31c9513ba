/* Factorizations by cuSOLVER, and what they share. The library works on one matrix after the other, by columns, so it sees the transpose of a
 * matrix that lies in rows. */
#pragma once

#include "device/cuda/vendor/vendor.h"

/* One launch of a plan while it is queued. */
struct solver_run {
    struct device            *d;
    struct device_stream     *s;
    const struct cuda_solver *x;
    uint64_t                  workspace;
    struct problem           *why;
};

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- what a plan works with ---- */
/* Room for a matrix in the workspace of each launch. False: too large. */
bool solver_room_for(struct cuda_solver *x, enum solver_room room, uint64_t rows, uint64_t columns);
/* Each asks the library what it works with. */
enum status solver_size_factor(struct device *d, struct cuda_solver *x, struct problem *why);
enum status solver_size_spectrum(struct device *d, struct cuda_solver *x, struct problem *why);
enum status solver_check(struct device *d, cusolver_status r, struct problem *why);

/* ---- running: matrix `index` of a launch ---- */
enum status solver_run_lu(const struct solver_run *r, const struct vendor_lu_params *at, uint64_t index);
enum status solver_run_cholesky(const struct solver_run *r, const struct vendor_cholesky_params *at, uint64_t index);
enum status solver_run_triangular_solve(const struct solver_run *r, const struct vendor_triangular_solve_params *at, uint64_t index);
enum status solver_run_qr(const struct solver_run *r, const struct vendor_qr_params *at, uint64_t index);
enum status solver_run_qr_q(const struct solver_run *r, const struct vendor_qr_q_params *at, uint64_t index);
enum status solver_run_eigh(const struct solver_run *r, const struct vendor_eigh_params *at, uint64_t index);
enum status solver_run_eig(const struct solver_run *r, const struct vendor_eig_params *at, uint64_t index);
enum status solver_run_svd(const struct solver_run *r, const struct vendor_svd_params *at, uint64_t index);

/* ---- for them ---- */
/* Why the work was refused; `r` is cuSOLVER's answer, or cuBLAS's. */
enum status solver_did(const struct solver_run *r, cusolver_status result);
enum status solver_blas_did(const struct solver_run *r, cusolver_status result);
enum status solver_driver_did(const struct solver_run *r, cuda_result result);
uint64_t    solver_room(const struct solver_run *r, enum solver_room room);
/* Matrix `index` of a buffer, of so many elements each. */
uint64_t solver_at(const struct solver_run *r, uint64_t base, uint64_t index, uint64_t elements);
void    *solver_pointer(uint64_t address);
/* to[j * to_step + i] = from[i * from_step + j], for i < rows and j < columns. */
enum status solver_transpose(const struct solver_run *r, uint64_t to, uint64_t to_step, uint64_t from, uint64_t from_step, uint64_t rows,
                             uint64_t columns);
enum status solver_copy(const struct solver_run *r, uint64_t to, uint64_t from, uint64_t elements);
enum status solver_zero(const struct solver_run *r, uint64_t at, uint64_t bytes);
/* A word of device memory, once the stream's work is done. */
enum status solver_read_word(const struct solver_run *r, uint64_t at, uint32_t *out);

/* ---- our kernels around them: device/cuda/vendor/solver_kernels.c ---- */
/* From LAPACK's exchanges to which row each row was, and their number. */
enum status solver_order(const struct solver_run *r, uint64_t pivots, uint64_t order, uint64_t exchanges, uint64_t count);
/* Zeros above the diagonal of an n x n matrix in rows. */
enum status solver_clear_upper(const struct solver_run *r, uint64_t matrix, uint64_t n);
/* Sets the word at `flag` where one of `count` elements is not finite. */
enum status solver_look_for_infinite(const struct solver_run *r, uint64_t x, uint64_t elements, uint64_t flag);
/* From geev's eigenvectors of a real matrix to complex ones in rows. */
enum status solver_unpack_vectors(const struct solver_run *r, uint64_t packed, uint64_t values, uint64_t vectors, uint64_t n);
