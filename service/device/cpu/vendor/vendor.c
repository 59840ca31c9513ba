/* Plans of all operations: made, run, freed. */
#include "device/cpu/vendor/vendor.h"

#include <stdlib.h>

#include "base/deadline.h"

enum { LAUNCH_TIMEOUT = 702 }; /* CUDA's number */

const void *blas_one(enum blas_number n)
{
    static const float  single[2] = {1, 0};
    static const double wide[2] = {1, 0};

    return n == BLAS_F32 || n == BLAS_C64 ? (const void *)single : wide;
}

const void *blas_zero(void)
{
    static const double zeros[2];

    return zeros;
}

bool blas_is_complex(enum blas_number n)
{
    return n == BLAS_C64 || n == BLAS_C128;
}

uint64_t blas_part_bytes(enum blas_number n)
{
    return n == BLAS_F32 || n == BLAS_C64 ? sizeof(float) : sizeof(double);
}

uint64_t blas_bytes(enum blas_number n)
{
    return blas_part_bytes(n) * (blas_is_complex(n) ? 2 : 1);
}

/* Numbers that only GPUs have are computed in wider ones, where that is what our kernels do. */
static bool number_of(uint32_t number, enum blas_number *out)
{
    static const struct {
        uint32_t         asked;
        enum blas_number number;
    } rows[] = {{VENDOR_F32, BLAS_F32}, {VENDOR_TF32, BLAS_F32}, {VENDOR_F64, BLAS_F64}, {VENDOR_C64, BLAS_C64}, {VENDOR_C128, BLAS_C128}};

    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].asked == number) {
            *out = rows[i].number;
            return true;
        }
    return false;
}

static enum status make(struct cpu_plan *p, struct problem *why)
{
    if (!number_of(p->ask.number, &p->number))
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "the host's libraries do not have this type of numbers");
    if (p->ask.operation == VENDOR_FFT)
        return cpu_fft_make(p, why);
    if (!openblas_functions())
        return problem_set(why, STATUS_NOT_IMPLEMENTED, "this device has no OpenBLAS");
    return p->ask.operation == VENDOR_MATMUL ? cpu_matmul_make(p, why) : cpu_factor_make(p, why);
}

enum status cpu_plan_make(const struct vendor_plan *ask, struct cpu_plan **out, struct problem *why)
{
    struct cpu_plan *p;
    enum status      st;

    *out = NULL;
    if (!vendor_params_count(ask->operation))
        return problem_set(why, STATUS_INVALID_REQUEST, "unknown operation");
    p = calloc(1, sizeof *p);
    if (!p)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    p->ask = *ask;
    st = make(p, why);
    if (st)
        cpu_plan_free(p);
    else
        *out = p;
    return st;
}

void cpu_plan_free(struct cpu_plan *p)
{
    if (p)
        cpu_fft_free(p);
    free(p);
}

enum status cpu_plan_watched(const struct cpu_plan_watch *watch, struct problem *why)
{
    if (atomic_load_explicit(watch->stop, memory_order_relaxed))
        return problem_set(why, STATUS_CANCELLED, "cancelled");
    if (deadline_left_ns(watch->deadline) == 0)
        return problem_cuda(why, STATUS_EXECUTION_TIMEOUT, LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT",
                            "the execution deadline, its timeout_ms, passed");
    return STATUS_OK;
}

static void run_factor(const struct cpu_plan *p, const void *params, uint64_t index)
{
    switch ((enum vendor_operation)p->ask.operation) {
    case VENDOR_LU:
        cpu_lu_run(p, params, index);
        break;
    case VENDOR_CHOLESKY:
        cpu_cholesky_run(p, params, index);
        break;
    case VENDOR_TRIANGULAR_SOLVE:
        cpu_triangular_solve_run(p, params, index);
        break;
    case VENDOR_QR:
        cpu_qr_run(p, params, index);
        break;
    case VENDOR_QR_Q:
        cpu_qr_q_run(p, params, index);
        break;
    case VENDOR_EIGH:
        cpu_eigh_run(p, params, index);
        break;
    case VENDOR_EIG:
        cpu_eig_run(p, params, index);
        break;
    case VENDOR_SVD:
        cpu_svd_run(p, params, index);
        break;
    case VENDOR_MATMUL:
    case VENDOR_FFT:
    case VENDOR_OPERATIONS:
        break; /* not factorizations */
    }
}

enum status cpu_plan_run(const struct cpu_plan *p, const void *params, const struct cpu_plan_watch *watch, struct problem *why)
{
    const uint64_t *addresses = params;
    enum status     st = cpu_plan_watched(watch, why);

    if (st)
        return st;
    if (p->workspace_bytes && !addresses[vendor_params_count(p->ask.operation) - 1])
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the launch has no workspace");
    if (p->ask.operation == VENDOR_MATMUL)
        return cpu_matmul_run(p, params, watch, why);
    if (p->ask.operation == VENDOR_FFT)
        return cpu_fft_run(p, params, watch, why);
    openblas_use_threads(p->ask.m * p->ask.n * (p->ask.m < p->ask.n ? p->ask.m : p->ask.n)); /* below 2^60: cpu_factor_make() */
    for (uint64_t i = 0; i < p->ask.batch && !st; i++) {
        run_factor(p, params, i);
        st = i + 1 < p->ask.batch ? cpu_plan_watched(watch, why) : STATUS_OK;
    }
    return st;
}
