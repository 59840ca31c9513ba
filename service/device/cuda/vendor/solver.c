/* Plans of cuSOLVER: made, run, freed. */
#include "device/cuda/vendor/solver.h"

#include <stdlib.h>

enum { ROOM_ALIGNMENT = 256 };

static enum status meaning_of_cusolver(cusolver_status r)
{
    switch (r) {
    case CUSOLVER_NO_MEMORY:
        return STATUS_DEVICE_MEMORY_EXHAUSTED;
    case CUSOLVER_VALUE_INVALID:
    case CUSOLVER_ARCH_UNKNOWN:
    case CUSOLVER_TYPE_UNKNOWN:
    case CUSOLVER_NOT_OFFERED:
        return STATUS_NOT_IMPLEMENTED;
    default:
        return STATUS_INTERNAL;
    }
}

enum status solver_check(struct device *d, cusolver_status r, struct problem *why)
{
    return r == CUSOLVER_OK ? STATUS_OK : cuda_vendor_failed(d, meaning_of_cusolver(r), r, "preparing the factorization", why);
}

static enum status check_blas(struct device *d, cusolver_status r, struct problem *why)
{
    enum status meaning = r == CUBLAS_NO_MEMORY ? STATUS_DEVICE_MEMORY_EXHAUSTED : STATUS_INTERNAL;

    return r == CUSOLVER_OK ? STATUS_OK : cuda_vendor_failed(d, meaning, r, "the factorization", why);
}

/* ---- the library ---- */

static enum status open_library(struct device *d, struct problem *why)
{
    const struct cusolver_functions *f = cusolver_functions();
    enum status                      st = STATUS_OK;

    if (!f)
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "this device has no cuSOLVER");
    if (!d->solver)
        st = solver_check(d, f->create(&d->solver), why);
    if (!st && !d->solver_options)
        st = solver_check(d, f->create_options(&d->solver_options), why);
    if (!st && !d->solver_blas)
        st = check_blas(d, f->blas_create(&d->solver_blas), why);
    if (!st && !d->solver_done)
        st = cuda_check(d, d->cu->cuEventCreate(&d->solver_done, CUDA_EVENT_DISABLE_TIMING), why, "starting cuSOLVER");
    return st;
}

void cuda_solver_stop(struct device *d)
{
    const struct cusolver_functions *f = cusolver_functions();

    if (d->solver_done)
        d->cu->cuEventDestroy_v2(d->solver_done);
    if (d->solver_blas)
        f->blas_destroy(d->solver_blas);
    if (d->solver_options)
        f->destroy_options(d->solver_options);
    if (d->solver)
        f->destroy(d->solver);
    d->solver_done = NULL;
    d->solver_blas = NULL;
    d->solver_options = NULL;
    d->solver = NULL;
}

/* ---- making ---- */

static const struct {
    uint32_t           asked;
    enum solver_number number;
    enum cusolver_type type, real_type, complex_type;
    uint64_t           bytes, part_bytes;
} numbers[] = {
    {VENDOR_F32, SOLVER_F32, CUSOLVER_TYPE_R_32F, CUSOLVER_TYPE_R_32F, CUSOLVER_TYPE_C_32F, 4, 4},
    {VENDOR_F64, SOLVER_F64, CUSOLVER_TYPE_R_64F, CUSOLVER_TYPE_R_64F, CUSOLVER_TYPE_C_64F, 8, 8},
    {VENDOR_C64, SOLVER_C64, CUSOLVER_TYPE_C_32F, CUSOLVER_TYPE_R_32F, CUSOLVER_TYPE_C_32F, 8, 4},
    {VENDOR_C128, SOLVER_C128, CUSOLVER_TYPE_C_64F, CUSOLVER_TYPE_R_64F, CUSOLVER_TYPE_C_64F, 16, 8},
};

static bool choose_number(struct cuda_solver *x)
{
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (numbers[i].asked == x->ask.number) {
            x->number = numbers[i].number;
            x->type = numbers[i].type;
            x->real_type = numbers[i].real_type;
            x->complex_type = numbers[i].complex_type;
            x->bytes = numbers[i].bytes;
            x->part_bytes = numbers[i].part_bytes;
            return true;
        }
    return false;
}

/* cuBLAS counts in 32 bits. */
static bool sizes_fit(const struct vendor_plan *ask)
{
    const bool takes_k = ask->operation == VENDOR_TRIANGULAR_SOLVE || ask->operation == VENDOR_QR_Q;
    const bool square = ask->operation != VENDOR_QR && ask->operation != VENDOR_QR_Q && ask->operation != VENDOR_SVD;

    return vendor_fits_int(ask->m) && vendor_fits_int(ask->n) && vendor_fits_int(2 * ask->m * ask->n) && ask->batch &&
           (!square || ask->m == ask->n) && (!takes_k || (vendor_fits_int(ask->k) && vendor_fits_int(ask->m * ask->k)));
}

bool solver_room_for(struct cuda_solver *x, enum solver_room room, uint64_t rows, uint64_t columns)
{
    uint64_t elements;

    if (__builtin_mul_overflow(rows, columns, &elements) || elements > INT32_MAX)
        return false;
    x->room_bytes[room] = elements * x->bytes;
    return true;
}

static uint64_t room_size(const struct cuda_solver *x, unsigned room)
{
    return (x->room_bytes[room] + ROOM_ALIGNMENT - 1) / ROOM_ALIGNMENT * ROOM_ALIGNMENT;
}

static bool finds_spectrum(uint32_t operation)
{
    return operation == VENDOR_EIGH || operation == VENDOR_EIG || operation == VENDOR_SVD;
}

static enum status size_rooms(struct device *d, struct cuda_plan *p, struct problem *why)
{
    struct cuda_solver *x = &p->solver;
    enum status         st = finds_spectrum(x->ask.operation) ? solver_size_spectrum(d, x, why) : solver_size_factor(d, x, why);

    if (st)
        return st;
    x->room_bytes[ROOM_WORK] = x->device_bytes;
    if (x->ask.operation != VENDOR_TRIANGULAR_SOLVE)
        x->room_bytes[ROOM_INFO] = 2 * sizeof(uint64_t);
    for (unsigned room = 0; room < SOLVER_ROOMS; room++)
        p->workspace_bytes += room_size(x, room);
    x->host = x->host_bytes ? malloc(x->host_bytes) : NULL;
    return x->host_bytes && !x->host ? problem_set(why, STATUS_OUT_OF_MEMORY, "not enough host memory for the factorization") : STATUS_OK;
}

enum status cuda_solver_make(struct device *d, const struct vendor_plan *ask, struct cuda_plan *p, struct problem *why)
{
    struct cuda_solver *x = &p->solver;
    enum status         st = open_library(d, why);

    x->ask = *ask;
    if (st)
        return st;
    if (!choose_number(x) || !sizes_fit(ask))
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "cuSOLVER does not support matrices of these sizes");
    st = size_rooms(d, p, why);
    if (st == STATUS_NOT_IMPLEMENTED && why->status != st)
        problem_set(why, st, "cuSOLVER does not support matrices of these sizes");
    return st;
}

void cuda_solver_free(struct cuda_plan *p)
{
    free(p->solver.host);
}

/* ---- running ---- */

uint64_t solver_room(const struct solver_run *r, enum solver_room room)
{
    uint64_t at = r->workspace;

    for (unsigned before = 0; before < (unsigned)room; before++)
        at += room_size(r->x, before);
    return at;
}

uint64_t solver_at(const struct solver_run *r, uint64_t base, uint64_t index, uint64_t elements)
{
    return base + index * elements * r->x->bytes;
}

void *solver_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

enum status solver_did(const struct solver_run *r, cusolver_status result)
{
    return result == CUSOLVER_OK ? STATUS_OK : cuda_vendor_failed(r->d, meaning_of_cusolver(result), result, "the factorization", r->why);
}

enum status solver_blas_did(const struct solver_run *r, cusolver_status result)
{
    return check_blas(r->d, result, r->why);
}

enum status solver_driver_did(const struct solver_run *r, cuda_result result)
{
    return cuda_check(r->d, result, r->why, "the factorization");
}

enum status solver_transpose(const struct solver_run *r, uint64_t to, uint64_t to_step, uint64_t from, uint64_t from_step, uint64_t rows,
                             uint64_t columns)
{
    static const float  one_f32[2] = {1, 0}, zero_f32[2] = {0, 0};
    static const double one_f64[2] = {1, 0}, zero_f64[2] = {0, 0};
    const bool          single = r->x->part_bytes == sizeof(float);

    return solver_blas_did(r, cusolver_functions()->of[r->x->number].geam(r->d->solver_blas, CUBLAS_TRANSPOSED, CUBLAS_PLAIN, (int)rows,
                                                                          (int)columns, single ? (const void *)one_f32 : one_f64,
                                                                          solver_pointer(from), (int)from_step,
                                                                          single ? (const void *)zero_f32 : zero_f64, solver_pointer(to),
                                                                          (int)to_step, solver_pointer(to), (int)to_step));
}

enum status solver_copy(const struct solver_run *r, uint64_t to, uint64_t from, uint64_t elements)
{
    if (to == from)
        return STATUS_OK;
    return solver_driver_did(r, r->d->cu->cuMemcpyDtoDAsync_v2(to, from, elements * r->x->bytes, r->s->handle));
}

enum status solver_zero(const struct solver_run *r, uint64_t at, uint64_t bytes)
{
    return bytes ? solver_driver_did(r, r->d->cu->cuMemsetD8Async(at, 0, bytes, r->s->handle)) : STATUS_OK;
}

uint64_t solver_word(const struct solver_run *r)
{
    return solver_room(r, ROOM_INFO) + sizeof(uint64_t);
}

uint64_t solver_infinity(const struct cuda_solver *x)
{
    return x->part_bytes == sizeof(float) ? UINT64_C(0x7f800000) : UINT64_C(0x7ff0000000000000);
}

enum status solver_read_word(const struct solver_run *r, uint64_t at, uint64_t *out)
{
    enum status st = solver_driver_did(r, r->d->cu->cuMemcpyDtoHAsync_v2(out, at, sizeof *out, r->s->handle));

    return st ? st : solver_driver_did(r, r->d->cu->cuStreamSynchronize(r->s->handle));
}

static enum status run_one(const struct solver_run *r, const void *at, uint64_t index)
{
    switch ((enum vendor_operation)r->x->ask.operation) {
    case VENDOR_LU:
        return solver_run_lu(r, at, index);
    case VENDOR_CHOLESKY:
        return solver_run_cholesky(r, at, index);
    case VENDOR_TRIANGULAR_SOLVE:
        return solver_run_triangular_solve(r, at, index);
    case VENDOR_QR:
        return solver_run_qr(r, at, index);
    case VENDOR_QR_Q:
        return solver_run_qr_q(r, at, index);
    case VENDOR_EIGH:
        return solver_run_eigh(r, at, index);
    case VENDOR_EIG:
        return solver_run_eig(r, at, index);
    case VENDOR_SVD:
        return solver_run_svd(r, at, index);
    case VENDOR_MATMUL:
    case VENDOR_FFT:
    case VENDOR_OPERATIONS:
        break;
    }
    return problem_set(r->why, STATUS_INTERNAL, "not a factorization");
}

/* Elements of two numbers, too, are aligned as one. */
static enum status check_alignment(const struct cuda_plan *p, const uint64_t *addresses, struct problem *why)
{
    for (uint32_t i = 0; i + 1 < vendor_params_count(p->operation); i++)
        if (addresses[i] % sizeof(int32_t) || (i == 0 && addresses[i] % p->solver.bytes))
            return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the buffer offset is not aligned for the matrix's elements");
    return STATUS_OK;
}

static enum status choose_stream(const struct solver_run *r)
{
    const struct cusolver_functions *f = cusolver_functions();
    enum status                      st = solver_driver_did(r, r->d->cu->cuStreamWaitEvent(r->s->handle, r->d->solver_done, 0));

    if (!st)
        st = solver_did(r, f->set_stream(r->d->solver, r->s->handle));
    return st ? st : solver_blas_did(r, f->blas_set_stream(r->d->solver_blas, r->s->handle));
}

enum status cuda_solver_launch(struct device *d, struct device_stream *s, const struct cuda_plan *p, const uint64_t *addresses,
                               struct problem *why)
{
    const struct solver_run r = {
        .d = d, .s = s, .x = &p->solver, .workspace = addresses[vendor_params_count(p->operation) - 1], .why = why};
    enum status st = check_alignment(p, addresses, why);
    cuda_result ended;

    if (!st)
        st = choose_stream(&r);
    if (st)
        return st;
    for (uint64_t i = 0; i < p->solver.ask.batch && !st; i++)
        st = run_one(&r, addresses, i);
    ended = d->cu->cuEventRecord(d->solver_done, s->handle);
    return st ? st : solver_driver_did(&r, ended);
}
