/* Factorizations by cuSOLVER, on a fake that does what the real one would: which plans are refused, that each call's failure leaves nothing behind,
 * that streams take turns. What they compute is compared with NumPy by tests/service/test_engines.py on the fake, and by tests/kernels on GPUs. */
#include "unit/device/cuda/vendor/fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 6, BUFFER_BYTES = 1 << 14 };

static const enum vendor_operation operations[] = {
    VENDOR_LU, VENDOR_CHOLESKY, VENDOR_TRIANGULAR_SOLVE, VENDOR_QR, VENDOR_QR_Q, VENDOR_EIGH, VENDOR_EIG, VENDOR_SVD};
static const enum vendor_number numbers[] = {VENDOR_F32, VENDOR_F64, VENDOR_C64, VENDOR_C128};

/* Runs it on identity matrices, as every buffer is one. */
static enum status play(struct device *d, struct device_stream *s, struct vendor_plan ask, struct problem *why)
{
    struct device_module *m = NULL;
    uint64_t              workspace = 0, params[VENDOR_PARAMS_MAX] = {0};
    uint32_t              count = vendor_params_count(ask.operation);
    enum status           st;

    ask.lefts = ask.operation == VENDOR_SVD ? ask.n : 1;
    st = ops->vendor_load(d, &ask, &m, &workspace, why);
    if (st)
        return st;
    for (uint32_t i = 0; i + 1 < count; i++) {
        char *at = (char *)(uintptr_t)(params[i] = fixture_memory(d, BUFFER_BYTES));
        memset(at, 0, BUFFER_BYTES);
        for (uint64_t j = 0; j < ask.n; j++)
            if (ask.number == VENDOR_F64)
                ((double *)(void *)at)[j * (ask.n + 1)] = 1;
            else if (ask.number == VENDOR_F32)
                ((float *)(void *)at)[j * (ask.n + 1)] = 1;
            else if (ask.number == VENDOR_C128)
                ((double *)(void *)at)[2 * j * (ask.n + 1)] = 1;
            else
                ((float *)(void *)at)[2 * j * (ask.n + 1)] = 1;
    }
    params[count - 1] = workspace ? fixture_memory(d, workspace) : 0;
    struct device_launch l = {.module = m, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = params, .params_bytes = count * 8};
    st = ops->launch(d, s, &l, why);
    ops->module_unload(d, m);
    return st;
}

Test(solver, every_factorization_runs_in_every_type)
{
    struct device *d = vendor_open();
    struct problem why = {0};

    for (size_t o = 0; o < COUNT(operations); o++)
        for (size_t n = 0; n < COUNT(numbers); n++)
            cr_expect_eq(play(d, NULL, vendor_square(operations[o], numbers[n], SIDE, 1), &why), STATUS_OK, "operation %zu, number %zu: %s",
                         o, n, why.detail);
    ops->close(d);
    cr_expect_eq(vendor_live(), 0);
    cr_expect_eq(fixture_live(), 0);
}

Test(solver, what_it_does_not_do_is_refused_and_harms_nothing)
{
    struct device     *d = vendor_open();
    struct problem     why = {0};
    struct vendor_plan good = vendor_square(VENDOR_LU, VENDOR_F64, SIDE, 1), svd = vendor_square(VENDOR_SVD, VENDOR_F64, SIDE, 1);
    struct vendor_plan p[] = {good, good, good, good, good, svd, svd, vendor_square(VENDOR_TRIANGULAR_SOLVE, VENDOR_F64, SIDE, 1)};
    uint64_t           workspace;

    p[0].number = VENDOR_F16;
    p[1].n = 5;
    p[2].m = p[2].n = 0;
    p[3].m = p[3].n = 1 << 20; /* beyond 2^31 elements */
    p[4].m = p[4].n = 13;      /* an input that only the fake refuses */
    p[5].lefts = 3;            /* neither none, nor those of all values, nor a basis */
    p[6].m = 1ull << 32;
    p[7].k = 1ull << 31;
    for (size_t i = 0; i < COUNT(p); i++) {
        struct device_module *m = NULL;

        cr_expect_eq(ops->vendor_load(d, &p[i], &m, &workspace, &why), STATUS_NOT_IMPLEMENTED, "plan %zu", i);
        cr_expect(why.detail[0]);
    }
    cr_expect_eq(play(d, NULL, good, &why), STATUS_OK);
    ops->close(d);
    cr_expect_eq(vendor_live(), 0);
}

Test(solver, a_launch_has_its_workspace_and_aligned_numbers)
{
    struct device        *d = vendor_open();
    struct problem        why = {0};
    struct vendor_plan    ask = vendor_square(VENDOR_CHOLESKY, VENDOR_C128, SIDE, 1);
    struct device_module *m = NULL;
    uint64_t              workspace = 0, x = fixture_memory(d, BUFFER_BYTES);

    cr_assert_eq(ops->vendor_load(d, &ask, &m, &workspace, &why), STATUS_OK);
    struct vendor_cholesky_params at = {x + 8, x, x + 8192, fixture_memory(d, workspace)};
    cr_expect_eq(vendor_launch(d, m, &at, sizeof at, &why), STATUS_LAUNCH_CONFIG_INVALID);
    at.x = x;
    at.workspace = 0;
    cr_expect_eq(vendor_launch(d, m, &at, sizeof at, &why), STATUS_LAUNCH_CONFIG_INVALID);
    ops->close(d);
}

static bool plays_with(enum vendor_operation operation, const char *function, int nth, int answer)
{
    char           script[128];
    struct problem why = {0};
    struct device *d;
    enum status    st;

    vendor_reset();
    snprintf(script, sizeof script, "%s:%d:%d", function, nth, answer);
    setenv("FAKE_VENDOR_FAIL", script, 1);
    d = vendor_open();
    st = play(d, NULL, vendor_square(operation, VENDOR_C64, SIDE, 2), &why);
    unsetenv("FAKE_VENDOR_FAIL");
    if (st) {
        cr_expect_eq(why.status, st, "%s", script);
        cr_expect(why.detail[0], "%s", script);
        cr_expect(st == STATUS_NOT_IMPLEMENTED || st == STATUS_DEVICE_MEMORY_EXHAUSTED || st == STATUS_INTERNAL, "%s: %d", script, (int)st);
        cr_expect_eq(play(d, NULL, vendor_square(operation, VENDOR_C64, SIDE, 2), &why), STATUS_OK, "%s: the context lives on: %s", script,
                     why.detail);
    }
    ops->close(d);
    cr_expect_eq(vendor_live(), 0, "%s: %ld", script, vendor_live());
    cr_expect_eq(fixture_live(), 0, "%s", script);
    return st != STATUS_OK;
}

Test(solver, every_call_that_fails_leaves_nothing_behind)
{
    static const struct {
        enum vendor_operation operation;
        const char           *function;
    } rows[] = {
        {VENDOR_LU, "cusolverDnCreate"},
        {VENDOR_LU, "cusolverDnCreateParams"},
        {VENDOR_LU, "cublasCreate_v2"},
        {VENDOR_LU, "cusolverDnSetStream"},
        {VENDOR_LU, "cublasSetStream_v2"},
        {VENDOR_LU, "cublasCgeam"},
        {VENDOR_LU, "cusolverDnXgetrf_bufferSize"},
        {VENDOR_LU, "cusolverDnXgetrf"},
        {VENDOR_CHOLESKY, "cusolverDnXpotrf_bufferSize"},
        {VENDOR_CHOLESKY, "cusolverDnXpotrf"},
        {VENDOR_TRIANGULAR_SOLVE, "cublasCtrsm_v2"},
        {VENDOR_QR, "cusolverDnXgeqrf_bufferSize"},
        {VENDOR_QR, "cusolverDnXgeqrf"},
        {VENDOR_QR_Q, "cusolverDnCungqr_bufferSize"},
        {VENDOR_QR_Q, "cusolverDnCungqr"},
        {VENDOR_EIGH, "cusolverDnXsyevd_bufferSize"},
        {VENDOR_EIGH, "cusolverDnXsyevd"},
        {VENDOR_EIGH, "cublasSscal_v2"},
        {VENDOR_EIG, "cusolverDnXgeev_bufferSize"},
        {VENDOR_EIG, "cusolverDnXgeev"},
        {VENDOR_SVD, "cusolverDnXgesvd_bufferSize"},
        {VENDOR_SVD, "cusolverDnXgesvd"},
    };
    static const int answers[] = {2, 3, 7, 9};

    for (size_t f = 0; f < COUNT(rows); f++)
        for (size_t a = 0; a < COUNT(answers); a++) {
            int n = 1;

            while (plays_with(rows[f].operation, rows[f].function, n, answers[a]))
                n++;
            cr_expect_gt(n, 1, "%s is called", rows[f].function);
        }
}

/* The library's handles work with memory of their own: another stream's launch waits for the last one. */
Test(solver, streams_take_turns)
{
    struct device        *d = vendor_open();
    struct problem        why = {0};
    struct device_stream *other = NULL;
    long                  waits;

    cr_assert_eq(ops->stream_create(d, &other), STATUS_OK);
    cr_expect_eq(play(d, NULL, vendor_square(VENDOR_CHOLESKY, VENDOR_F32, SIDE, 1), &why), STATUS_OK);
    waits = fixture_calls("cuStreamWaitEvent");
    cr_expect_eq(play(d, other, vendor_square(VENDOR_CHOLESKY, VENDOR_F32, SIDE, 1), &why), STATUS_OK);
    cr_expect_gt(fixture_calls("cuStreamWaitEvent"), waits);
    ops->close(d);
}

/* They wait for the device, which no graph can: the launches then go one by one. */
Test(solver, a_graph_with_one_is_launched_one_by_one)
{
    struct device        *d = vendor_open();
    struct problem        why = {0};
    struct vendor_plan    ask = vendor_square(VENDOR_CHOLESKY, VENDOR_F64, 1, 1);
    struct device_module *m = NULL;
    struct device_graph  *g = NULL;
    uint64_t              workspace = 0, x = fixture_memory(d, BUFFER_BYTES);

    cr_assert_eq(ops->vendor_load(d, &ask, &m, &workspace, &why), STATUS_OK);
    struct vendor_cholesky_params at = {x, x, x + 8192, fixture_memory(d, workspace)};
    struct device_launch          l = {.module = m, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = &at, .params_bytes = sizeof at};
    struct device_launch          both[2] = {l, l};
    *(double *)(uintptr_t)x = 65536;
    cr_assert_eq(ops->graph_create(d, both, 2, &g, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(ops->graph_run(d, NULL, g, &why), STATUS_OK, "%s", why.detail);
    cr_expect_eq(*(double *)(uintptr_t)x, 16);
    cr_assert_eq(ops->graph_run(d, NULL, g, &why), STATUS_OK, "%s", why.detail);
    cr_expect_eq(*(double *)(uintptr_t)x, 2);
    ops->close(d);
    cr_expect_eq(vendor_live(), 0);
}

Test(solver_absent, without_the_library_there_is_no_plan)
{
    struct device        *d;
    struct device_module *m = NULL;
    struct problem        why = {0};
    struct vendor_plan    ask = vendor_square(VENDOR_LU, VENDOR_F64, SIDE, 1);
    uint64_t              workspace;

    device_set(SPAN_LITERAL("cusolver"), FAKE_CUFFT); /* which lacks its functions */
    d = fixture_open();
    cr_expect_eq(ops->vendor_load(d, &ask, &m, &workspace, &why), STATUS_NOT_IMPLEMENTED);
    cr_expect_str_eq(why.detail, "this device has no cuSOLVER");
    ops->close(d);
}
