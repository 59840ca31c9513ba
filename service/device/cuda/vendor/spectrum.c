/* Eigenvalues and singular values by cuSOLVER. Its functions for them wait for the device between their steps, so the word that says how they
 * ended is read at once; a matrix that is not finite is not given to them, because they would try for seconds. */
#include "device/cuda/vendor/solver.h"

/* ---- what they work with ---- */

static enum status size_eigh(struct device *d, struct cuda_solver *x, struct problem *why)
{
    int64_t n = (int64_t)x->ask.n;

    return solver_check(d,
                        cusolver_functions()->syevd_size(d->solver, d->solver_options,
                                                         x->ask.lefts ? CUSOLVER_VECTORS : CUSOLVER_NO_VECTORS, CUBLAS_UPPER, n, x->type,
                                                         NULL, n, x->real_type, NULL, x->type, &x->device_bytes, &x->host_bytes),
                        why);
}

static enum status size_eig(struct device *d, struct cuda_solver *x, struct problem *why)
{
    int64_t n = (int64_t)x->ask.n;

    if (!cusolver_functions()->geev)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "this cuSOLVER has no eigenvalues of general matrices");
    return solver_check(d,
                        cusolver_functions()->geev_size(d->solver, d->solver_options, CUSOLVER_NO_VECTORS,
                                                        x->ask.lefts ? CUSOLVER_VECTORS : CUSOLVER_NO_VECTORS, n, x->type, NULL, n,
                                                        x->complex_type, NULL, x->type, NULL, n, x->type, NULL, n, x->type,
                                                        &x->device_bytes, &x->host_bytes),
                        why);
}

/* The library's matrix has as many rows as ours has columns, or with fewer of these is the transpose of that. */
static bool is_turned(const struct vendor_plan *ask)
{
    return ask->n < ask->m;
}

/* What the library makes: no vectors, those of all values, or a whole basis. 0: another number is wanted. */
static signed char job_of(uint64_t wanted, uint64_t values, uint64_t all)
{
    return wanted == 0 ? 'N' : wanted == values ? 'S' : wanted == all ? 'A' : 0;
}

struct svd_jobs {
    int64_t     m, n; /* of the library's matrix: m >= n */
    signed char u, vt;
    uint64_t    vt_rows; /* that it makes */
};

static struct svd_jobs jobs_of(const struct vendor_plan *ask)
{
    const uint64_t values = least(ask->m, ask->n);
    const bool     turned = is_turned(ask);
    const uint64_t u = turned ? ask->lefts : ask->rights, vt = turned ? ask->rights : ask->lefts;

    return (struct svd_jobs){.m = (int64_t)(turned ? ask->m : ask->n),
                             .n = (int64_t)values,
                             .u = job_of(u, values, turned ? ask->m : ask->n),
                             .vt = job_of(vt, values, values),
                             .vt_rows = vt};
}

static enum status size_svd(struct device *d, struct cuda_solver *x, struct problem *why)
{
    const struct svd_jobs jobs = jobs_of(&x->ask);

    if (!jobs.u || !jobs.vt || !solver_room_for(x, ROOM_VECTORS, (uint64_t)jobs.n, jobs.vt_rows))
        return STATUS_NOT_IMPLEMENTED;
    return solver_check(d,
                        cusolver_functions()->gesvd_size(d->solver, d->solver_options, jobs.u, jobs.vt, jobs.m, jobs.n, x->type, NULL,
                                                         jobs.m, x->real_type, NULL, x->type, NULL, jobs.m, x->type, NULL, jobs.n, x->type,
                                                         &x->device_bytes, &x->host_bytes),
                        why);
}

enum status solver_size_spectrum(struct device *d, struct cuda_solver *x, struct problem *why)
{
    const struct vendor_plan *ask = &x->ask;

    if (!solver_room_for(x, ROOM_MATRIX, ask->m, ask->n))
        return STATUS_NOT_IMPLEMENTED;
    if (ask->operation == VENDOR_EIGH)
        return size_eigh(d, x, why);
    if (ask->operation == VENDOR_SVD)
        return size_svd(d, x, why);
    if (x->bytes == x->part_bytes && ask->lefts && !solver_room_for(x, ROOM_VECTORS, ask->n, ask->n))
        return STATUS_NOT_IMPLEMENTED;
    return size_eig(d, x, why);
}

/* ---- running ---- */

/* *finite: whether all elements are. */
static enum status look_first(const struct solver_run *r, uint64_t x, uint64_t elements, bool *finite)
{
    const uint64_t flag = solver_room(r, ROOM_INFO);
    uint32_t       found = 0;
    enum status    st = solver_zero(r, flag, sizeof found);

    if (!st)
        st = solver_look_for_infinite(r, x, elements, flag);
    if (!st)
        st = solver_read_word(r, flag, &found);
    *finite = !found;
    return st;
}

/* From how the library's function ended, or 1 without it, to our word for it. */
static enum status tell(const struct solver_run *r, bool tried, uint64_t info, bool *found)
{
    uint32_t    word = 1;
    enum status st = tried ? solver_read_word(r, solver_room(r, ROOM_INFO), &word) : STATUS_OK;

    *found = !word;
    return st ? st : solver_driver_did(r, r->d->cu->cuMemsetD32Async(info, word != 0, 1, r->s->handle));
}

/* What no result was found for. */
static enum status fill_nan(const struct solver_run *r, uint64_t at, uint64_t bytes)
{
    return bytes ? solver_driver_did(r, r->d->cu->cuMemsetD8Async(at, 0xff, bytes, r->s->handle)) : STATUS_OK;
}

/* cuBLAS multiplies the imaginary parts, every second number, by -1. */
static enum status conjugate(const struct solver_run *r, uint64_t at, uint64_t elements)
{
    const bool                       single = r->x->part_bytes == sizeof(float);
    static const float               minus_f32 = -1;
    static const double              minus_f64 = -1;
    const struct cusolver_functions *f = cusolver_functions();
    const struct cusolver_typed     *real = &f->of[single ? SOLVER_F32 : SOLVER_F64];

    return solver_blas_did(r, real->scal(r->d->solver_blas, (int)elements, single ? (const void *)&minus_f32 : &minus_f64,
                                         solver_pointer(at + r->x->part_bytes), 2));
}

/* The lower triangle of x in rows is the upper one of its conjugate in columns; the vectors come as columns there, which are our rows. */
enum status solver_run_eigh(const struct solver_run *r, const struct vendor_eigh_params *at, uint64_t index)
{
    const struct cuda_solver *x = r->x;
    const uint64_t            n = x->ask.n, matrix = solver_room(r, ROOM_MATRIX), values = at->values + index * n * x->part_bytes;
    const uint64_t            vectors = solver_at(r, at->vectors, index, n * n);
    bool                      finite = false, found = false;
    enum status               st = solver_copy(r, matrix, solver_at(r, at->x, index, n * n), n * n);

    if (!st)
        st = solver_clear_upper(r, matrix, n);
    if (!st)
        st = look_first(r, matrix, n * n, &finite);
    if (!st && finite)
        st = solver_did(r, cusolver_functions()->syevd(r->d->solver, r->d->solver_options,
                                                       x->ask.lefts ? CUSOLVER_VECTORS : CUSOLVER_NO_VECTORS, CUBLAS_UPPER, (int64_t)n,
                                                       x->type, solver_pointer(matrix), (int64_t)n, x->real_type, solver_pointer(values),
                                                       x->type, solver_pointer(solver_room(r, ROOM_WORK)), x->device_bytes, x->host,
                                                       x->host_bytes, solver_pointer(solver_room(r, ROOM_INFO))));
    if (!st)
        st = tell(r, finite, at->info + index * sizeof(int32_t), &found);
    if (!st && !found)
        st = fill_nan(r, values, n * x->part_bytes);
    if (st || !x->ask.lefts)
        return st;
    if (!found)
        return fill_nan(r, vectors, n * n * x->bytes);
    st = solver_copy(r, vectors, matrix, n * n);
    return st || x->bytes == x->part_bytes ? st : conjugate(r, vectors, n * n);
}

/* x itself in columns; each vector is a column, which is a row of ours. Real matrices have packed vectors. */
enum status solver_run_eig(const struct solver_run *r, const struct vendor_eig_params *at, uint64_t index)
{
    const struct cuda_solver *x = r->x;
    const bool                packed = x->bytes == x->part_bytes && x->ask.lefts;
    const uint64_t            n = x->ask.n, pair = 2 * x->part_bytes, matrix = solver_room(r, ROOM_MATRIX);
    const uint64_t            values = at->values + index * n * pair, vectors = at->vectors + index * n * n * pair;
    const uint64_t            made = packed ? solver_room(r, ROOM_VECTORS) : vectors;
    bool                      finite = false, found = false;
    enum status               st = solver_transpose(r, matrix, n, solver_at(r, at->x, index, n * n), n, n, n);

    if (!st)
        st = look_first(r, matrix, n * n, &finite);
    if (!st && finite)
        st = solver_did(r, cusolver_functions()->geev(r->d->solver, r->d->solver_options, CUSOLVER_NO_VECTORS,
                                                      x->ask.lefts ? CUSOLVER_VECTORS : CUSOLVER_NO_VECTORS, (int64_t)n, x->type,
                                                      solver_pointer(matrix), (int64_t)n, x->complex_type, solver_pointer(values), x->type,
                                                      NULL, (int64_t)n, x->type, x->ask.lefts ? solver_pointer(made) : NULL, (int64_t)n,
                                                      x->type, solver_pointer(solver_room(r, ROOM_WORK)), x->device_bytes, x->host,
                                                      x->host_bytes, solver_pointer(solver_room(r, ROOM_INFO))));
    if (!st)
        st = tell(r, finite, at->info + index * sizeof(int32_t), &found);
    if (!st && !found)
        st = fill_nan(r, values, n * pair);
    if (st || !x->ask.lefts)
        return st;
    if (!found)
        return fill_nan(r, vectors, n * n * pair);
    return packed ? solver_unpack_vectors(r, made, values, vectors, n) : STATUS_OK;
}

/* Of x' = U S V' in columns, our right vectors are U's columns and our left ones the rows of V', conjugated twice; of the turned matrix, x itself
 * in columns, they change places. */
enum status solver_run_svd(const struct solver_run *r, const struct vendor_svd_params *at, uint64_t index)
{
    const struct cuda_solver *x = r->x;
    const struct svd_jobs     jobs = jobs_of(&x->ask);
    const uint64_t            rows = x->ask.m, columns = x->ask.n, values = at->values + index * columns * x->part_bytes;
    const uint64_t            left = solver_at(r, at->left, index, x->ask.lefts * rows), from = solver_at(r, at->x, index, rows * columns);
    const uint64_t            right = solver_at(r, at->right, index, x->ask.rights * columns), matrix = solver_room(r, ROOM_MATRIX);
    const uint64_t            u = is_turned(&x->ask) ? left : right, vt = solver_room(r, ROOM_VECTORS), least_side = (uint64_t)jobs.n;
    bool                      finite = false, found = false;
    enum status               st =
        is_turned(&x->ask) ? solver_transpose(r, matrix, rows, from, columns, rows, columns) : solver_copy(r, matrix, from, rows * columns);

    if (!st)
        st = look_first(r, matrix, rows * columns, &finite);
    if (!st && finite)
        st = solver_did(r, cusolver_functions()->gesvd(
                               r->d->solver, r->d->solver_options, jobs.u, jobs.vt, jobs.m, jobs.n, x->type, solver_pointer(matrix), jobs.m,
                               x->real_type, solver_pointer(values), x->type, jobs.u == 'N' ? NULL : solver_pointer(u), jobs.m, x->type,
                               jobs.vt == 'N' ? NULL : solver_pointer(vt), jobs.n, x->type, solver_pointer(solver_room(r, ROOM_WORK)),
                               x->device_bytes, x->host, x->host_bytes, solver_pointer(solver_room(r, ROOM_INFO))));
    if (!st)
        st = tell(r, finite, at->info + index * sizeof(int32_t), &found);
    if (!st && !found)
        st = fill_nan(r, values, columns * x->part_bytes);
    if (!st && !found)
        st = fill_nan(r, left, x->ask.lefts * rows * x->bytes);
    if (!st && !found)
        st = fill_nan(r, right, x->ask.rights * columns * x->bytes);
    if (st || !found)
        return st;
    st = solver_zero(r, values + least_side * x->part_bytes, (columns - least_side) * x->part_bytes);
    if (st || jobs.vt == 'N')
        return st;
    return solver_transpose(r, is_turned(&x->ask) ? right : left, least_side, vt, least_side, least_side, jobs.vt_rows);
}
