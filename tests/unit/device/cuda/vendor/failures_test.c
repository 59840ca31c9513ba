/* Libraries of the GPU's maker whose calls fail, and their work in graphs. */
#include "unit/device/cuda/vendor/fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- failures ---- */

/* Both operations from start to results; stops at the first failure. */
static enum status play(struct device *d, struct problem *why)
{
    struct vendor_plan          p = vendor_dense(VENDOR_F32, 4, 4, 64, 2), t = vendor_transform(VENDOR_F32, 64, 1, true);
    struct device_module       *m = NULL, *u = NULL;
    uint64_t                    x = fixture_memory(d, 1 << 20), workspace = 0;
    struct vendor_matmul_params at = {x, x + 65536, x + 131072, x + 262144};
    struct vendor_fft_params    there = {x, x + 65536, x + 262144};
    enum status                 st = ops->vendor_load(d, &p, &m, &workspace, why);

    if (!st)
        st = vendor_launch(d, m, &at, sizeof at, why);
    if (!st)
        st = ops->vendor_load(d, &t, &u, &workspace, why);
    return st ? st : vendor_launch(d, u, &there, sizeof there, why);
}

static bool plays_with(const char *function, int nth, int answer)
{
    char           script[128];
    struct problem why = {0};
    struct device *d;
    enum status    st;
    bool           failed;

    vendor_reset();
    snprintf(script, sizeof script, "%s:%d:%d", function, nth, answer);
    setenv("FAKE_VENDOR_FAIL", script, 1);
    d = vendor_open();
    st = play(d, &why);
    failed = st != STATUS_OK;
    if (st) {
        cr_expect_eq(why.status, st, "%s", script);
        cr_expect(why.detail[0], "%s", script);
        cr_expect(st == STATUS_NOT_IMPLEMENTED || st == STATUS_DEVICE_MEMORY_EXHAUSTED || st == STATUS_INTERNAL, "%s: %d", script, (int)st);
        unsetenv("FAKE_VENDOR_FAIL");
        cr_expect_eq(play(d, &why), STATUS_OK, "%s: the context lives on", script);
    }
    ops->close(d);
    unsetenv("FAKE_VENDOR_FAIL");
    cr_expect_eq(vendor_live(), 0, "%s: %ld", script, vendor_live());
    cr_expect_eq(fixture_live(), 0, "%s", script);
    return failed;
}

Test(vendor_failures, every_call_that_fails_leaves_nothing_behind)
{
    static const char *const functions[] = {"cublasLtCreate",
                                            "cublasLtMatmulDescCreate",
                                            "cublasLtMatrixLayoutCreate",
                                            "cublasLtMatrixLayoutSetAttribute",
                                            "cublasLtMatmulPreferenceCreate",
                                            "cublasLtMatmulPreferenceSetAttribute",
                                            "cublasLtMatmulAlgoGetHeuristic",
                                            "cublasLtMatmul",
                                            "cufftCreate",
                                            "cufftSetAutoAllocation",
                                            "cufftMakePlanMany64",
                                            "cufftSetWorkArea",
                                            "cufftSetStream",
                                            "cufftExecC2C"};
    static const int         answers[] = {1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 16, 99};

    for (size_t f = 0; f < COUNT(functions); f++)
        for (size_t a = 0; a < COUNT(answers); a++) {
            int n = 1;

            while (plays_with(functions[f], n, answers[a]))
                n++;
            cr_expect_gt(n, 1, "%s is called", functions[f]);
        }
}

/* The library only reports that it failed; the driver knows why. */
Test(vendor_failures, a_fault_is_the_context_s_end_and_is_told_as_one)
{
    struct device              *d = vendor_open();
    struct vendor_plan          p = vendor_dense(VENDOR_F32, 4, 4, 4, 1);
    struct device_module       *m = NULL;
    struct device_event        *e = NULL;
    struct problem              why = {0};
    uint64_t                    x = fixture_memory(d, 4096), workspace = 0;
    struct vendor_matmul_params at = {x, 1 << 20, x + 2048, 0};

    cr_assert_eq(ops->vendor_load(d, &p, &m, &workspace, &why), STATUS_OK);
    cr_assert_eq(ops->event_create(d, &e), STATUS_OK);
    cr_assert_eq(vendor_launch(d, m, &at, sizeof at, &why), STATUS_OK);
    setenv("FAKE_VENDOR_FAIL", "cublasLtMatmul:0:13", 1);
    cr_assert_eq(vendor_launch(d, m, &at, sizeof at, &why), STATUS_KERNEL_FAULT);
    cr_assert_eq(why.cuda_result, 700);
    cr_assert_eq(ops->event_query(d, e, &why), STATUS_KERNEL_FAULT);
    cr_assert_eq(ops->vendor_load(d, &p, &m, &workspace, &why), STATUS_KERNEL_FAULT);
    ops->close(d);
}

/* ---- graphs ---- */

struct graphed {
    struct device              *d;
    struct device_module       *product, *inverse, *plain;
    uint64_t                    x, workspace;
    struct vendor_matmul_params at;
    struct vendor_fft_params    there;
    struct {
        uint64_t p;
        uint32_t n, k;
    } add;
    struct device_launch launches[3];
};

/* out = a b, then 2 out + 5 word by word to another place, then an inverse transform. */
static void prepare(struct graphed *g)
{
    struct vendor_plan p = vendor_dense(VENDOR_F32, 2, 2, 64, 1), t = vendor_transform(VENDOR_F32, 32, 1, true);
    struct problem     why = {0};
    uint64_t           bytes;

    *g = (struct graphed){.d = vendor_open()};
    g->x = fixture_memory(g->d, 65536);
    memset((void *)(uintptr_t)g->x, 0, 65536);
    cr_assert_eq(ops->vendor_load(g->d, &p, &g->product, &bytes, &why), STATUS_OK);
    cr_assert_leq(bytes, 8192);
    cr_assert_eq(ops->vendor_load(g->d, &t, &g->inverse, &bytes, &why), STATUS_OK);
    cr_assert_leq(bytes, 8192);
    g->plain = fixture_module(g->d);
    g->at = (struct vendor_matmul_params){g->x, g->x + 1024, g->x + 2048, g->x + 16384};
    g->there = (struct vendor_fft_params){g->x + 4096, g->x + 8192, g->x + 16384};
    g->add.p = g->x + 12288;
    g->add.n = 1;
    g->add.k = 5;
    g->launches[0] =
        (struct device_launch){.module = g->product, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = &g->at, .params_bytes = sizeof g->at};
    g->launches[1] = fixture_launch(g->plain, "add", &g->add, sizeof g->add, 1);
    g->launches[2] = (struct device_launch){
        .module = g->inverse, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = &g->there, .params_bytes = sizeof g->there};
}

static float *floats(const struct graphed *g, uint64_t offset)
{
    return (float *)(uintptr_t)(g->x + offset);
}

Test(vendor_failures, plans_and_kernels_run_in_a_graph_and_are_exchanged_in_it)
{
    struct graphed       g;
    struct device_graph *graph = NULL;
    struct problem       why = {0};

    prepare(&g);
    cr_assert_eq(ops->graph_create(g.d, g.launches, 3, &graph, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(fixture_calls("cuGraphAddChildGraphNode"), 2);
    floats(&g, 0)[0] = 3, floats(&g, 1024)[0] = 4, floats(&g, 4096)[0] = 32;
    cr_assert_eq(floats(&g, 2048)[0], 0, "nothing has run yet");
    cr_assert_eq(ops->graph_run(g.d, NULL, graph, &why), STATUS_OK);
    cr_assert_eq(floats(&g, 2048)[0], 12);
    cr_assert_eq(((uint32_t *)floats(&g, 12288))[0], 5);
    cr_assert_float_eq(floats(&g, 8192)[0], 1, 1e-6); /* the transform of a peak: the same everywhere, divided by the length */
    cr_assert_float_eq(floats(&g, 8192)[62], 1, 1e-6);
    g.at.out = g.x + 2048 + 512;
    cr_assert_eq(ops->graph_set(g.d, graph, 0, &g.launches[0], &why), STATUS_OK, "%s", why.detail);
    floats(&g, 2048)[0] = 0;
    cr_assert_eq(ops->graph_run(g.d, NULL, graph, &why), STATUS_OK);
    cr_assert_eq(floats(&g, 2048)[0], 0);
    cr_assert_eq(floats(&g, 2048)[128], 12);
    ops->graph_destroy(g.d, graph);
    ops->close(g.d);
    cr_assert_eq(vendor_live(), 0);
    cr_assert_eq(fixture_live(), 0);
}

Test(vendor_failures, a_graph_that_cannot_be_made_leaves_nothing_behind)
{
    static const char *const scripts[] = {"cuStreamBeginCapture_v2:1:1", "cuStreamEndCapture:1:1",       "cuGraphAddChildGraphNode:1:1",
                                          "cuStreamEndCapture:2:1",      "cuGraphAddChildGraphNode:2:2", "cuGraphInstantiateWithFlags:1:2"};

    for (size_t i = 0; i < COUNT(scripts) + 2; i++) {
        struct graphed       g;
        struct device_graph *graph = NULL;
        struct problem       why = {0};

        vendor_reset();
        prepare(&g);
        if (i < COUNT(scripts))
            setenv("FAKE_CUDA_FAIL", scripts[i], 1);
        else
            setenv("FAKE_VENDOR_FAIL", i == COUNT(scripts) ? "cublasLtMatmul:1:14" : "cufftExecC2C:1:6", 1);
        cr_expect_neq(ops->graph_create(g.d, g.launches, 3, &graph, &why), STATUS_OK, "%zu", i);
        unsetenv("FAKE_CUDA_FAIL");
        unsetenv("FAKE_VENDOR_FAIL");
        cr_expect_eq(ops->graph_create(g.d, g.launches, 3, &graph, &why), STATUS_OK, "%zu: the stream for it is whole: %s", i, why.detail);
        ops->close(g.d);
        cr_expect_eq(vendor_live(), 0, "%zu", i);
        cr_expect_eq(fixture_live(), 0, "%zu", i);
    }
}

/* A kernel in place of a library's, or a launch for which the library uses another number of kernels. */
Test(vendor_failures, a_graph_that_cannot_be_changed_is_run_launch_by_launch)
{
    for (int other = 0; other < 2; other++) {
        struct graphed       g;
        struct device_graph *graph = NULL;
        struct problem       why = {0};

        vendor_reset();
        prepare(&g);
        cr_assert_eq(ops->graph_create(g.d, g.launches, 3, &graph, &why), STATUS_OK, "%s", why.detail);
        cr_assert_eq(ops->graph_set(g.d, graph, 0, &g.launches[other ? 1 : 2], &why), STATUS_OK, "%s", why.detail);
        floats(&g, 4096)[0] = 32;
        cr_assert_eq(ops->graph_run(g.d, NULL, graph, &why), STATUS_OK);
        cr_assert_eq(fixture_calls("cuGraphLaunch"), 0);
        cr_assert_eq(((uint32_t *)floats(&g, 12288))[0], other ? 15 : 5); /* twice, or once */
        cr_assert_float_eq(floats(&g, 8192)[0], 1, 1e-6);
        ops->graph_destroy(g.d, graph);
        ops->close(g.d);
        cr_assert_eq(vendor_live(), 0);
        cr_assert_eq(fixture_live(), 0);
    }
}
