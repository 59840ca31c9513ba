/* Plans of the host's libraries, where there are some: which are refused, that each does its work, and that a run ends when it is told to. What they
 * compute is compared with NumPy by tests/kernels/. */
#include "device/cpu/vendor/vendor.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "base/deadline.h"

static bool open_libraries(void)
{
    cpu_library_choose(SPAN_LITERAL("openblas"), "");
    cpu_library_choose(SPAN_LITERAL("fftw"), "");
    cpu_library_choose(SPAN_LITERAL("fftwf"), "");
    cpu_libraries_open();
    cpu_libraries_start(2);
    if (openblas_functions() && fftw_functions(true))
        return true;
    cr_skip("no OpenBLAS or no FFTW on this machine");
    return false;
}

static const atomic_int            going;
static const struct cpu_plan_watch unwatched = {.stop = &going, .deadline = DEADLINE_NEVER};

static struct vendor_plan square(enum vendor_operation operation, enum vendor_number number, uint64_t n)
{
    return (struct vendor_plan){.operation = operation, .number = number, .batch = 1, .m = n, .n = n, .k = n, .lefts = 1, .rights = 1};
}

static struct vendor_plan product(uint64_t m, uint64_t n, uint64_t k)
{
    return (struct vendor_plan){
        .operation = VENDOR_MATMUL, .number = VENDOR_F64, .batch = 1, .m = m, .n = n, .k = k, .a.row = k, .b.row = n, .out.row = n};
}

static struct vendor_plan transform(uint64_t length)
{
    return (struct vendor_plan){
        .operation = VENDOR_FFT, .number = VENDOR_F64, .batch = 1, .length = length, .stride = 1, .distance = length, .repeats = 1};
}

static void refused(struct vendor_plan ask, enum status with)
{
    struct cpu_plan *p = NULL;
    struct problem   why = {0};

    cr_expect_eq(cpu_plan_make(&ask, &p, &why), with, "operation %u, number %u: %s", ask.operation, ask.number, why.detail);
    cr_expect_null(p);
    cpu_plan_free(p);
}

Test(vendor, without_libraries_every_plan_is_refused)
{
    cpu_libraries_open(); /* none was chosen */
    for (unsigned operation = VENDOR_MATMUL; operation < VENDOR_OPERATIONS; operation++)
        refused(square(operation, VENDOR_F64, 4), STATUS_NOT_IMPLEMENTED);
    cr_assert_null(openblas_functions());
    cr_assert_null(fftw_functions(false));
    cr_assert_str_empty(openblas_version());
    cr_assert_not(cpu_library_choose(SPAN_LITERAL("cublaslt"), ""));
}

Test(vendor, what_a_library_cannot_do_is_refused)
{
    struct vendor_plan ask;

    if (!open_libraries())
        return;
    refused((struct vendor_plan){.operation = VENDOR_OPERATIONS, .number = VENDOR_F64}, STATUS_INVALID_REQUEST);
    refused(square(VENDOR_LU, VENDOR_F16, 4), STATUS_NOT_IMPLEMENTED);
    refused(square(VENDOR_LU, 99, 4), STATUS_NOT_IMPLEMENTED);
    for (unsigned operation = VENDOR_MATMUL; operation < VENDOR_OPERATIONS; operation++)
        for (unsigned i = 0; i < 3; i++)
            refused(square(operation, VENDOR_F64, (uint64_t[]){0, 1ull << 31, UINT64_MAX}[i]), STATUS_NOT_IMPLEMENTED);
    refused(square(VENDOR_SVD, VENDOR_F64, 1 << 21), STATUS_NOT_IMPLEMENTED); /* beyond 2^40 elements */
    ask = product(4, 4, 4);
    ask.a.row = 3;
    refused(ask, STATUS_NOT_IMPLEMENTED);
    ask = product(4, 4, 4);
    ask.batch = UINT64_MAX;
    ask.b.matrix = 1ull << 40;
    refused(ask, STATUS_NOT_IMPLEMENTED);
    refused(transform(0), STATUS_NOT_IMPLEMENTED);
    refused(transform(1ull << 60), STATUS_NOT_IMPLEMENTED);
    ask = transform(8);
    ask.number = VENDOR_C64;
    refused(ask, STATUS_NOT_IMPLEMENTED);
    ask = transform(8);
    ask.stride = 3;
    refused(ask, STATUS_NOT_IMPLEMENTED);
}

Test(vendor, tables_of_transforms_have_a_bound_together)
{
    struct cpu_plan *plans[256];
    unsigned         made = 0;

    if (!open_libraries())
        return;
    for (; made < 256; made++) {
        struct vendor_plan ask = transform(1 << 20);
        struct problem     why = {0};

        if (cpu_plan_make(&ask, &plans[made], &why))
            break;
    }
    cr_expect_eq(made, 32, "2^20 numbers of f64 are counted with 32 MiB, of 1 GiB: %u", made);
    for (unsigned i = 0; i < made; i++)
        cpu_plan_free(plans[i]);
    refused(transform(1 << 26), STATUS_NOT_IMPLEMENTED);
    made = cpu_plan_make(
        &(struct vendor_plan){
            .operation = VENDOR_FFT, .number = VENDOR_F32, .batch = 2, .length = 8, .stride = 2, .distance = 1, .repeats = 3},
        &plans[0], NULL);
    cr_assert_eq(made, 0, "freed plans are not counted");
    cpu_plan_free(plans[0]);
}

/* Runs it on identity matrices, every buffer of which has room for n * n numbers of any type. */
static void run_identity(enum vendor_operation operation, enum vendor_number number, uint64_t n, double *buffers[5])
{
    struct vendor_plan ask = square(operation, number, n);
    struct cpu_plan   *p = NULL;
    struct problem     why = {0};
    uint64_t           params[8] = {0};
    uint32_t           count = vendor_params_count(operation);
    void              *workspace;
    bool               wide = number == VENDOR_F64 || number == VENDOR_C128;
    uint64_t           parts = number == VENDOR_C64 || number == VENDOR_C128 ? 2 : 1;

    ask.lefts = operation == VENDOR_SVD ? n : 1;
    ask.rights = n;
    for (unsigned b = 0; b < 5; b++) {
        memset(buffers[b], 0, n * n * 16);
        for (uint64_t i = 0; b < 2 && i < n; i++)
            if (wide)
                buffers[b][i * (n + 1) * parts] = 1;
            else
                ((float *)buffers[b])[i * (n + 1) * parts] = 1;
    }
    cr_assert_eq(cpu_plan_make(&ask, &p, &why), STATUS_OK, "operation %u, number %u: %s", operation, number, why.detail);
    workspace = calloc(1, p->workspace_bytes + 1);
    for (uint32_t i = 0; i + 1 < count; i++)
        params[i] = (uintptr_t)buffers[i];
    if (p->workspace_bytes)
        cr_expect_eq(cpu_plan_run(p, params, &unwatched, &why), STATUS_LAUNCH_CONFIG_INVALID, "no workspace");
    params[count - 1] = (uintptr_t)workspace;
    cr_expect_eq(cpu_plan_run(p, params, &unwatched, &why), STATUS_OK, "operation %u, number %u: %s", operation, number, why.detail);
    free(workspace);
    cpu_plan_free(p);
}

/* |x| of element i, which is complex or not. */
static double size_of(const void *x, enum vendor_number number, uint64_t i)
{
    const double *d = x;
    const float  *f = x;

    if (number == VENDOR_F64)
        return fabs(d[i]);
    if (number == VENDOR_C128)
        return hypot(d[2 * i], d[2 * i + 1]);
    return number == VENDOR_C64 ? hypot((double)f[2 * i], (double)f[2 * i + 1]) : fabs((double)f[i]);
}

Test(vendor, every_factorization_of_the_identity_is_the_identity_in_every_type)
{
    static const enum vendor_number numbers[] = {VENDOR_F32, VENDOR_F64, VENDOR_C64, VENDOR_C128};
    static const struct {
        enum vendor_operation operation;
        unsigned              out; /* which buffer */
    } rows[] = {{VENDOR_LU, 1}, {VENDOR_CHOLESKY, 1}, {VENDOR_TRIANGULAR_SOLVE, 2}, {VENDOR_QR, 1}, {VENDOR_EIGH, 2}, {VENDOR_SVD, 1}};
    enum { N = 40 };
    double *buffers[5];

    if (!open_libraries())
        return;
    for (unsigned b = 0; b < 5; b++)
        buffers[b] = calloc(N * N, 16);
    for (unsigned r = 0; r < sizeof rows / sizeof rows[0]; r++)
        for (unsigned t = 0; t < 4; t++) {
            run_identity(rows[r].operation, numbers[t], N, buffers);
            for (uint64_t i = 0; i < N; i++)
                for (uint64_t j = 0; j < N; j++)
                    cr_assert_float_eq(size_of(buffers[rows[r].out], numbers[t], i * N + j), i == j ? 1 : 0, 1e-5,
                                       "operation %u, number %u", rows[r].operation, numbers[t]);
        }
    for (unsigned b = 0; b < 5; b++)
        free(buffers[b]);
}

Test(vendor, a_run_ends_when_it_is_cancelled_or_late)
{
    atomic_int                  stop = 1;
    struct vendor_plan          ask = product(2, 2, 2);
    struct cpu_plan            *p = NULL;
    struct problem              why = {0};
    double                      a[4] = {1, 2, 3, 4}, b[4] = {1, 0, 0, 1}, out[4] = {7, 7, 7, 7};
    struct vendor_matmul_params at = {(uintptr_t)a, (uintptr_t)b, (uintptr_t)out, 0};

    if (!open_libraries())
        return;
    cr_assert_eq(cpu_plan_make(&ask, &p, &why), STATUS_OK, "%s", why.detail);
    cr_expect_eq(cpu_plan_run(p, &at, &(struct cpu_plan_watch){.stop = &stop, .deadline = DEADLINE_NEVER}, &why), STATUS_CANCELLED);
    cr_expect_eq(cpu_plan_run(p, &at, &(struct cpu_plan_watch){.stop = &going, .deadline = now_ns()}, &why), STATUS_EXECUTION_TIMEOUT);
    cr_expect_eq(out[0], 7);
    cr_expect_eq(cpu_plan_run(p, &at, &unwatched, &why), STATUS_OK);
    cr_expect(out[0] == 1 && out[1] == 2 && out[2] == 3 && out[3] == 4);
    cpu_plan_free(p);
}
