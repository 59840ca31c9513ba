/* LU, Cholesky's, QR and substitution by cuSOLVER and cuBLAS. */
#include "device/cuda/vendor/solver.h"

static const double ones_f64[2] = {1, 0};
static const float  ones_f32[2] = {1, 0};

static const void *one(const struct cuda_solver *x)
{
    return x->part_bytes == sizeof(float) ? (const void *)ones_f32 : ones_f64;
}

/* Columns that there are, and reflectors that have to do with them. */
static uint64_t q_columns(const struct vendor_plan *ask)
{
    return least(ask->k, ask->m);
}

static uint64_t q_reflectors(const struct vendor_plan *ask)
{
    return least(q_columns(ask), ask->n);
}

/* ---- what they work with ---- */

static enum status size_lu(struct device *d, struct cuda_solver *x, struct problem *why)
{
    int64_t n = (int64_t)x->ask.n;

    x->room_bytes[ROOM_INTEGERS] = x->ask.n * sizeof(int64_t);
    return solver_check(
        d,
        cusolver_functions()->getrf_size(d->solver, d->solver_options, n, n, x->type, NULL, n, x->type, &x->device_bytes, &x->host_bytes),
        why);
}

static enum status size_cholesky(struct device *d, struct cuda_solver *x, struct problem *why)
{
    int64_t n = (int64_t)x->ask.n;

    return solver_check(d,
                        cusolver_functions()->potrf_size(d->solver, d->solver_options, CUBLAS_UPPER, n, x->type, NULL, n, x->type,
                                                         &x->device_bytes, &x->host_bytes),
                        why);
}

static enum status size_qr(struct device *d, struct cuda_solver *x, struct problem *why)
{
    int64_t m = (int64_t)x->ask.m, n = (int64_t)x->ask.n;

    return solver_check(d,
                        cusolver_functions()->geqrf_size(d->solver, d->solver_options, m, n, x->type, NULL, m, x->type, NULL, x->type,
                                                         &x->device_bytes, &x->host_bytes),
                        why);
}

static enum status size_qr_q(struct device *d, struct cuda_solver *x, struct problem *why)
{
    int         m = (int)x->ask.m;
    enum status st = solver_check(d,
                                  cusolver_functions()->of[x->number].orgqr_size(d->solver, m, (int)q_columns(&x->ask),
                                                                                 (int)q_reflectors(&x->ask), NULL, m, NULL, &x->count),
                                  why);

    x->device_bytes = x->count > 0 ? (size_t)x->count * x->bytes : 0;
    return st;
}

enum status solver_size_factor(struct device *d, struct cuda_solver *x, struct problem *why)
{
    const struct vendor_plan *ask = &x->ask;

    if (ask->operation == VENDOR_LU)
        return solver_room_for(x, ROOM_MATRIX, ask->n, ask->n) ? size_lu(d, x, why) : STATUS_NOT_IMPLEMENTED;
    if (ask->operation == VENDOR_CHOLESKY)
        return size_cholesky(d, x, why);
    if (ask->operation == VENDOR_QR)
        return solver_room_for(x, ROOM_MATRIX, ask->m, ask->n) ? size_qr(d, x, why) : STATUS_NOT_IMPLEMENTED;
    if (ask->operation == VENDOR_QR_Q)
        return solver_room_for(x, ROOM_MATRIX, ask->m, q_columns(ask)) ? size_qr_q(d, x, why) : STATUS_NOT_IMPLEMENTED;
    return STATUS_OK; /* of substitution: cuBLAS has memory of its own */
}

/* ---- running ---- */

enum status solver_run_lu(const struct solver_run *r, const struct vendor_lu_params *at, uint64_t index)
{
    const struct cuda_solver *x = r->x;
    const uint64_t            n = x->ask.n, matrix = solver_room(r, ROOM_MATRIX), pivots = solver_room(r, ROOM_INTEGERS);
    enum status               st = solver_transpose(r, matrix, n, solver_at(r, at->x, index, n * n), n, n, n);

    if (!st)
        st = solver_did(r, cusolver_functions()->getrf(r->d->solver, r->d->solver_options, (int64_t)n, (int64_t)n, x->type,
                                                       solver_pointer(matrix), (int64_t)n, solver_pointer(pivots), x->type,
                                                       solver_pointer(solver_room(r, ROOM_WORK)), x->device_bytes, x->host, x->host_bytes,
                                                       solver_pointer(at->info + index * sizeof(int32_t))));
    if (!st)
        st = solver_transpose(r, solver_at(r, at->out, index, n * n), n, matrix, n, n, n);
    return st ? st : solver_order(r, pivots, at->order + index * n * sizeof(int32_t), at->exchanges + index * sizeof(int32_t), n);
}

/* The lower triangle of x in rows is the upper one of its conjugate in columns: U' U = conj(x), and U in columns is L in rows. */
enum status solver_run_cholesky(const struct solver_run *r, const struct vendor_cholesky_params *at, uint64_t index)
{
    const struct cuda_solver *x = r->x;
    const uint64_t            n = x->ask.n, out = solver_at(r, at->out, index, n * n);
    enum status               st = solver_copy(r, out, solver_at(r, at->x, index, n * n), n * n);

    if (!st)
        st = solver_did(r, cusolver_functions()->potrf(r->d->solver, r->d->solver_options, CUBLAS_UPPER, (int64_t)n, x->type,
                                                       solver_pointer(out), (int64_t)n, x->type, solver_pointer(solver_room(r, ROOM_WORK)),
                                                       x->device_bytes, x->host, x->host_bytes,
                                                       solver_pointer(at->info + index * sizeof(int32_t))));
    return st ? st : solver_clear_upper(r, out, n);
}

/* In columns: out' = b' (a')^-1, a' being upper triangular where a is lower. */
enum status solver_run_triangular_solve(const struct solver_run *r, const struct vendor_triangular_solve_params *at, uint64_t index)
{
    const struct cuda_solver *x = r->x;
    const uint64_t            n = x->ask.n, columns = x->ask.k, triangle = x->ask.triangle, out = solver_at(r, at->out, index, n * columns);
    enum status               st = solver_copy(r, out, solver_at(r, at->b, index, n * columns), n * columns);

    return st ? st
              : solver_blas_did(r, cusolver_functions()->of[x->number].trsm(
                                       r->d->solver_blas, CUBLAS_ON_RIGHT, triangle & VENDOR_LOWER ? CUBLAS_UPPER : CUBLAS_LOWER,
                                       triangle & VENDOR_TRANSPOSED ? CUBLAS_TRANSPOSED : CUBLAS_PLAIN,
                                       triangle & VENDOR_UNIT ? CUBLAS_DIAGONAL_ONES : CUBLAS_DIAGONAL_READ, (int)columns, (int)n, one(x),
                                       solver_pointer(solver_at(r, at->a, index, n * n)), (int)n, solver_pointer(out), (int)columns));
}

enum status solver_run_qr(const struct solver_run *r, const struct vendor_qr_params *at, uint64_t index)
{
    const struct cuda_solver *x = r->x;
    const uint64_t            m = x->ask.m, n = x->ask.n, all = least(m, n), matrix = solver_room(r, ROOM_MATRIX);
    const uint64_t            tau = solver_at(r, at->tau, index, n);
    enum status               st = solver_transpose(r, matrix, m, solver_at(r, at->x, index, m * n), n, m, n);

    if (!st)
        st = solver_did(r, cusolver_functions()->geqrf(r->d->solver, r->d->solver_options, (int64_t)m, (int64_t)n, x->type,
                                                       solver_pointer(matrix), (int64_t)m, x->type, solver_pointer(tau), x->type,
                                                       solver_pointer(solver_room(r, ROOM_WORK)), x->device_bytes, x->host, x->host_bytes,
                                                       solver_pointer(solver_room(r, ROOM_INFO))));
    if (!st)
        st = solver_transpose(r, solver_at(r, at->out, index, m * n), n, matrix, m, n, m);
    return st ? st : solver_zero(r, tau + all * x->bytes, (n - all) * x->bytes);
}

enum status solver_run_qr_q(const struct solver_run *r, const struct vendor_qr_q_params *at, uint64_t index)
{
    const struct cuda_solver *x = r->x;
    const uint64_t            m = x->ask.m, size = x->ask.k, columns = q_columns(&x->ask), reflectors = q_reflectors(&x->ask);
    const uint64_t            matrix = solver_room(r, ROOM_MATRIX), out = solver_at(r, at->out, index, m * size);
    enum status               st = solver_transpose(r, matrix, m, solver_at(r, at->x, index, m * x->ask.n), x->ask.n, m, reflectors);

    if (!st)
        st = solver_did(r, cusolver_functions()->of[x->number].orgqr(
                               r->d->solver, (int)m, (int)columns, (int)reflectors, solver_pointer(matrix), (int)m,
                               solver_pointer(solver_at(r, at->tau, index, x->ask.n)), solver_pointer(solver_room(r, ROOM_WORK)), x->count,
                               solver_pointer(solver_room(r, ROOM_INFO))));
    if (!st && columns < size)
        st = solver_zero(r, out, m * size * x->bytes);
    return st ? st : solver_transpose(r, out, size, matrix, m, columns, m);
}
