/* Launches that are given to the device with their marks: as one graph, or one after the other where the driver makes none. */
#include "unit/device/cuda/the_device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = 8 };

static _Alignas(4096) _Atomic uint32_t words[1024];
static struct device_module *m;
static float                *numbers, *sums; /* of eight: the fake's device memory is the host's */

static const char ptx[] = ".version 6.4\n.target sm_75\n.address_size 64\n"
                          ".visible .entry vadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{ ret; }\n"
                          ".visible .entry vadd_again(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{ ret; }\n"
                          ".visible .entry vadd_in_clusters(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{ ret; }\n"
                          ".visible .entry vadd_in_any_clusters(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{ ret; }\n"
                          ".visible .entry endless()\n{ ret; }\n";

static struct device_module *load(void)
{
    struct problem        why = {0};
    struct device_module *loaded = NULL;

    cr_assert_eq(ops->module_load(d, ptx, sizeof ptx - 1, &loaded, &why), STATUS_OK, "%s", why.detail);
    return loaded;
}

static void open_with_words(void)
{
    the_device_open();
    cr_assert_eq(ops->host_register(d, words, sizeof words), STATUS_OK);
    m = load();
    numbers = (float *)(uintptr_t)fixture_memory(d, NUMBERS * sizeof *numbers);
    sums = (float *)(uintptr_t)fixture_memory(d, NUMBERS * sizeof *sums);
    for (unsigned i = 0; i < NUMBERS; i++)
        numbers[i] = (float)i;
    memset(sums, 0, NUMBERS * sizeof *sums);
    atomic_store(words, 0);
}

TestSuite(marked, .init = open_with_words, .fini = the_device_close);

/* c[i] = i + i, and the word has the value. */
static enum status add_by(const char *kernel, struct device_stream *s, uint32_t value)
{
    struct problem       why = {0};
    struct vadd_params   p = {(uintptr_t)numbers, (uintptr_t)numbers, (uintptr_t)sums, NUMBERS};
    struct device_launch l = fixture_launch(m, kernel, &p, offsetof(struct vadd_params, n) + sizeof p.n, 32);

    l.grid[0] = 2;
    l.mark = (struct device_mark){words, value};
    return ops->launch(d, s, &l, &why);
}

static enum status add(struct device_stream *s, uint32_t value)
{
    return add_by("vadd", s, value);
}

static bool added(uint32_t value)
{
    bool right = atomic_load(words) == value;

    for (unsigned i = 0; i < NUMBERS; i++)
        right = right && sums[i] == (float)(2 * i);
    memset(sums, 0, NUMBERS * sizeof *sums);
    return right;
}

Test(marked, one_graph_is_changed_by_each_launch)
{
    for (uint32_t i = 1; i < 4; i++) {
        cr_assert_eq(add(NULL, i), STATUS_OK);
        cr_assert(added(i));
    }
    cr_assert_eq(fixture_calls("cuGraphInstantiateWithFlags"), 1);
    cr_assert_eq(fixture_calls("cuGraphLaunch"), 3);
    cr_assert_eq(fixture_calls("cuLaunchKernel") + fixture_calls("cuStreamWriteValue32_v2"), 0);
}

Test(marked, each_stream_has_its_graph)
{
    struct device_stream *s;

    cr_assert_eq(ops->stream_create(d, &s), STATUS_OK);
    cr_assert_eq(add(NULL, 1), STATUS_OK);
    cr_assert_eq(add(s, 2), STATUS_OK);
    cr_assert(added(2));
    cr_assert_eq(fixture_calls("cuGraphInstantiateWithFlags"), 2);
    ops->stream_destroy(d, s);
    cr_assert_eq(fixture_calls("cuGraphExecDestroy"), 1);
}

Test(marked, a_graph_goes_with_the_module_of_its_kernel)
{
    struct device_module *other = load();

    cr_assert_eq(add(NULL, 1), STATUS_OK);
    ops->module_unload(d, other);
    cr_assert_eq(fixture_calls("cuGraphExecDestroy"), 0);
    ops->module_unload(d, m);
    cr_assert_eq(fixture_calls("cuGraphExecDestroy"), 1);
    m = load();
    cr_assert_eq(add(NULL, 2), STATUS_OK);
    cr_assert(added(2));
}

/* Whatever fails, the launch runs once, and its mark is written. */
Test(marked, what_makes_no_graph_goes_by_itself)
{
    static const char *const makes[] = {"cuGraphCreate", "cuGraphAddKernelNode_v2", "cuGraphAddBatchMemOpNode",
                                        "cuGraphInstantiateWithFlags"};

    for (size_t i = 0; i < COUNT(makes); i++) {
        char script[64];

        snprintf(script, sizeof script, "%s:0:801", makes[i]);
        setenv("FAKE_CUDA_FAIL", script, 1);
        cr_assert_eq(add(NULL, 1 + (uint32_t)i), STATUS_OK, "%s", makes[i]);
        cr_assert(added(1 + (uint32_t)i), "%s", makes[i]);
        cr_assert_eq(add(NULL, 10), STATUS_OK);
        cr_assert_eq(fixture_calls(makes[i]), 1, "%s is tried again", makes[i]);
        unsetenv("FAKE_CUDA_FAIL");
        ops->close(d);
        cr_assert_eq(fixture_live(), 0, "%s", makes[i]);
        fixture_reset();
        open_with_words();
    }
}

Test(marked, what_a_graph_cannot_be_changed_to_goes_by_itself)
{
    cr_assert_eq(add(NULL, 1), STATUS_OK);
    memset(sums, 0, NUMBERS * sizeof *sums);
    setenv("FAKE_CUDA_FAIL", "cuGraphExecKernelNodeSetParams_v2:1:1,cuGraphExecBatchMemOpNodeSetParams:1:1", 1);
    for (uint32_t i = 2; i < 5; i++) {
        cr_assert_eq(add(NULL, i), STATUS_OK);
        cr_assert(added(i));
    }
    cr_assert_eq(fixture_calls("cuLaunchKernel"), 2);
    cr_assert_eq(fixture_calls("cuGraphInstantiateWithFlags"), 1);
    cr_assert_eq(fixture_calls("cuGraphLaunch"), 2);
}

Test(marked, a_refused_launch_says_so)
{
    setenv("FAKE_CUDA_FAIL", "cuGraphLaunch:1:1", 1);
    cr_assert_eq(add(NULL, 1), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(atomic_load(words), 0);
    cr_assert_eq(add(NULL, 2), STATUS_OK);
    cr_assert(added(2));
}

/* The launch whose graph fails goes by itself, and only that one. */
static void loses_nothing_by(const char *failure)
{
    setenv("FAKE_CUDA_FAIL", failure, 1);
    for (uint32_t i = 1; i < 4; i++) {
        cr_assert_eq(add(NULL, i), STATUS_OK);
        cr_assert(added(i));
    }
    cr_assert_eq(fixture_calls("cuLaunchKernel"), 1);
}

/* Running a graph takes memory of the device that a launch by itself does not need, and tenants fill it. */
Test(marked, a_graph_that_finds_no_memory_to_run_is_no_refusal)
{
    loses_nothing_by("cuGraphLaunch:1:2");
}

Test(marked, a_lost_context_is_told)
{
    struct problem why = {0};

    setenv("FAKE_CUDA_FAIL", "cuGraphExecKernelNodeSetParams_v2:1:700", 1);
    cr_assert_eq(add(NULL, 1), STATUS_OK);
    cr_assert_eq(add(NULL, 2), STATUS_KERNEL_FAULT);
    cr_assert_eq(atomic_load(words), 1);
    cr_assert_eq(ops->stream_query(d, NULL, &why), STATUS_KERNEL_FAULT);
}

Test(marked, a_mark_outside_registered_memory_is_refused_before_anything_runs)
{
    struct problem       why = {0};
    _Atomic uint32_t     word = 0;
    struct device_launch l = fixture_launch(m, "endless", NULL, 0, 1);

    l.mark = (struct device_mark){&word, 1};
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_NOT_IMPLEMENTED);
    cr_assert_eq(ops->stream_query(d, NULL, &why), STATUS_OK);
}

Test(marked, what_has_many_parameters_goes_by_itself)
{
    static const char     many[] = ".version 8.1\n.target sm_75\n.address_size 64\n.visible .entry nothing(.param .b8 p[5000])\n{ ret; }\n";
    static unsigned char  params[5000];
    struct problem        why = {0};
    struct device_module *takes = NULL;
    struct device_launch  l;

    cr_assert_eq(ops->module_load(d, many, sizeof many - 1, &takes, &why), STATUS_OK, "%s", why.detail);
    l = fixture_launch(takes, "nothing", params, sizeof params, 1);
    l.mark = (struct device_mark){words, 3};
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(atomic_load(words), 3);
    cr_assert_eq(fixture_calls("cuGraphLaunch"), 0);
}

/* What it prints belongs to its launch, and would not come out of a graph. */
Test(marked, what_prints_goes_by_itself)
{
    struct problem        why = {0};
    struct device_module *prints = fixture_module(d);
    uint32_t              n = 7;
    struct device_launch  l = fixture_launch(prints, "hello", &n, sizeof n, 1);
    struct buf            text;

    buf_init(&text, 1000);
    cr_assert_eq(add(NULL, 1), STATUS_OK);
    l.mark = (struct device_mark){words, 2};
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_OK);
    cr_assert_eq(atomic_load(words), 2);
    cr_assert_eq(ops->take_output(d, NULL, &text), STATUS_OK);
    cr_assert(span_is(buf_span(&text), "hello 7\n"), "%.*s", (int)text.bytes, text.data);
    cr_assert_eq(fixture_calls("cuGraphLaunch"), 1);
    buf_finish(&text);
}

static void add_each_way(const char *kernel, unsigned rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        cr_assert_eq(add_by(kernel, NULL, 100 + i), STATUS_OK);
        cr_assert(added(100 + i));
    }
}

/* A driver's node keeps what the kernel before had beside its parameters. */
Test(marked, a_graph_is_not_changed_to_another_kernel)
{
    for (unsigned i = 0; i < 40; i++)
        add_each_way(i % 2 ? "vadd_again" : "vadd", 1);
    cr_assert_eq(fixture_calls("cuGraphInstantiateWithFlags"), 1);
    cr_assert_eq(fixture_calls("cuGraphExecKernelNodeSetParams_v2"), 19);
    cr_assert_eq(fixture_calls("cuLaunchKernel"), 20);
    add_each_way("vadd_again", 100);
    cr_assert_eq(fixture_calls("cuGraphInstantiateWithFlags"), 2, "the one that comes in its place has a graph");
    cr_assert_eq(fixture_calls("cuGraphExecDestroy"), 1);
    cr_assert_leq(fixture_calls("cuLaunchKernel"), 40);
}

Test(marked, kernels_with_clusters_go_by_themselves)
{
    add_each_way("vadd_in_clusters", 2);
    add_each_way("vadd", 2);
    add_each_way("vadd_in_clusters", 50);
    cr_assert_eq(fixture_calls("cuGraphLaunch"), 2);
    cr_assert_eq(fixture_calls("cuLaunchKernel"), 52);
}

/* As newer drivers may say something of graphs that we do not know. */
Test(marked, a_result_that_is_not_known_loses_nothing)
{
    loses_nothing_by("cuGraphExecKernelNodeSetParams_v2:1:917");
}

/* Of a program whose module was made anew, for instance. */
Test(marked, a_longer_graph_is_run_launch_by_launch_when_a_kernel_needs_other_clusters)
{
    struct problem       why = {0};
    struct vadd_params   p = {(uintptr_t)numbers, (uintptr_t)numbers, (uintptr_t)sums, NUMBERS};
    size_t               bytes = offsetof(struct vadd_params, n) + sizeof p.n;
    struct device_launch plain = fixture_launch(m, "vadd", &p, (uint32_t)bytes, 32);
    struct device_launch again = fixture_launch(m, "vadd_again", &p, (uint32_t)bytes, 32);
    struct device_launch clusters = fixture_launch(m, "vadd_in_clusters", &p, (uint32_t)bytes, 32);
    struct device_graph *g;

    clusters.grid[0] = 2;
    cr_assert_eq(ops->graph_create(d, &plain, 1, &g, &why), STATUS_OK);
    cr_assert_eq(ops->graph_set(d, g, 0, &again, &why), STATUS_OK);
    cr_assert_eq(ops->graph_run(d, NULL, g, &why), STATUS_OK);
    cr_assert_eq(fixture_calls("cuGraphLaunch"), 1);
    cr_assert_eq(ops->graph_set(d, g, 0, &clusters, &why), STATUS_OK);
    memset(sums, 0, NUMBERS * sizeof *sums);
    cr_assert_eq(ops->graph_run(d, NULL, g, &why), STATUS_OK);
    cr_assert_eq(fixture_calls("cuGraphLaunch"), 1);
    cr_assert_eq(fixture_calls("cuLaunchKernel"), 1);
    cr_assert(added(0));
    ops->graph_destroy(d, g);
}

/* Of a launch by itself the driver says so, not of one in a graph. */
Test(marked, a_grid_that_is_no_multiple_of_its_clusters_is_refused)
{
    struct problem       why = {0};
    struct vadd_params   p = {(uintptr_t)numbers, (uintptr_t)numbers, (uintptr_t)sums, NUMBERS};
    struct device_launch l = fixture_launch(m, "vadd_in_clusters", &p, offsetof(struct vadd_params, n) + sizeof p.n, 32);
    struct device_graph *g;

    l.grid[0] = 4;
    cr_assert_eq(ops->graph_create(d, &l, 1, &g, &why), STATUS_OK);
    l.grid[0] = 3;
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(ops->graph_set(d, g, 0, &l, &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_str_eq(why.detail, "grid[0] is 3, but must be a multiple of 2, the size of the kernel's clusters");
    ops->graph_destroy(d, g);
}

/* A node of a graph could run it with clusters of one block. */
Test(marked, a_kernel_whose_launches_say_the_size_of_clusters_is_refused)
{
    struct problem       why = {0};
    struct vadd_params   p = {(uintptr_t)numbers, (uintptr_t)numbers, (uintptr_t)sums, NUMBERS};
    struct device_launch l = fixture_launch(m, "vadd_in_any_clusters", &p, offsetof(struct vadd_params, n) + sizeof p.n, 32);
    struct device_graph *g;

    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_str_eq(why.detail, "the kernel needs clusters of a size that a launch cannot say here; give it __cluster_dims__(x, y, z)");
    cr_assert_eq(ops->graph_create(d, &l, 1, &g, &why), STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(fixture_calls("cuLaunchKernel"), 0);
}
