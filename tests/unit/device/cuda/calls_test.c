/* Every operation of the cuda backend on the fake driver. */
#include "unit/device/cuda/the_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TestSuite(cuda, .init = the_device_open, .fini = the_device_close);

static enum status synchronise(struct device_stream *s)
{
    struct device_event *e = NULL;
    struct problem       why = {0};
    enum status          st = ops->event_create(d, &e);

    if (!st)
        st = ops->event_record(d, s, e);
    if (!st)
        st = ops->event_query(d, e, &why);
    ops->event_destroy(d, e);
    return st;
}

Test(cuda, closes_without_leaving_anything)
{
    struct device_stream *s;
    struct device_event  *e;
    char                  host[4096];

    fixture_memory(d, 100);
    cr_assert_eq(ops->stream_create(d, &s), STATUS_OK);
    cr_assert_eq(ops->event_create(d, &e), STATUS_OK);
    cr_assert_eq(ops->host_register(d, host, sizeof host), STATUS_OK);
    fixture_module(d);
    ops->close(d);
    d = NULL;
    cr_assert_eq(fixture_live(), 0);
    ops->close(NULL);
}

Test(cuda, describes_the_device)
{
    struct device_info info;

    memset(&info, 0xff, sizeof info);
    cr_assert_eq(ops->info(d, &info), STATUS_OK);
    cr_assert_str_eq(info.name, "Fake GPU");
    cr_assert_str_eq(info.uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    cr_assert_str_eq(info.compute_capability, "9.0");
    cr_assert_str_eq(info.compile_arch, "sm_90");
    cr_assert_str_eq(info.driver, "13.0");
    cr_assert_eq(info.code_format, DEVICE_CODE_CUBIN);
    cr_assert_eq(info.on_host, 0);
    cr_assert_eq(info.max_block[2], 64);
    cr_assert_eq(info.max_shared_bytes_per_block, 232448);
    cr_assert_str_eq(info.unsupported, "");
    cr_assert_gt(info.attributes_count, 100);
    cr_assert_str_eq(info.attributes[0].name, "max_threads_per_block");
    cr_assert_eq(info.attributes[0].value, 1024);
}

Test(cuda, devices_are_counted_and_have_an_identity)
{
    char           uuid[DEVICE_UUID_BYTES];
    struct problem why = {0};

    cr_assert_eq(ops->count(&why), 1);
    ops->identify(0, uuid);
    cr_assert_str_eq(uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
    ops->identify(1, uuid);
    cr_assert_str_eq(uuid, "");
}

Test(cuda, no_device_is_told_apart_from_a_driver_that_cannot_tell)
{
    static const struct {
        const char *script;
        enum status status;
    } rows[] = {
        {"cuInit:0:100", STATUS_DEVICE_NOT_FOUND}, {"cuInit:0:999", STATUS_DEVICE_ERROR}, {"cuDeviceGetCount:0:999", STATUS_DEVICE_ERROR}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct problem why = {0};

        setenv("FAKE_CUDA_FAIL", rows[i].script, 1);
        cr_assert_eq(ops->count(&why), 0, "%s", rows[i].script);
        cr_assert_eq(why.status, rows[i].status, "%s: %s", rows[i].script, why.detail);
    }
}

Test(cuda, counts_memory_as_asked_for)
{
    uint64_t a = fixture_memory(d, 1000), b = fixture_memory(d, 3);

    cr_assert_eq(a % 256, 0);
    cr_assert_eq(ops->mem_free(d, a), STATUS_OK);
    cr_assert_eq(the_device_memory().allocated_bytes, 3);
    cr_assert_eq(the_device_memory().peak_bytes, 1003);
    cr_assert_eq(the_device_memory().total_bytes, 256u << 20);
    cr_assert_eq(ops->mem_free(d, a), STATUS_INTERNAL, "freed twice");
    cr_assert_eq(ops->mem_free(d, b + 1), STATUS_INTERNAL);
}

Test(cuda, keeps_track_of_many_allocations)
{
    enum { MANY = 3000 };
    static uint64_t addresses[MANY];

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < MANY; i++)
            cr_assert_eq(ops->mem_alloc(d, 1 + i % 7, &addresses[i]), STATUS_OK);
        for (unsigned i = 0; i < MANY; i++)
            cr_assert_eq(ops->mem_free(d, addresses[(i * 1999) % MANY]), STATUS_OK);
        cr_assert_eq(the_device_memory().allocated_bytes, 0);
    }
}

Test(cuda, lives_on_after_running_out_of_memory)
{
    uint64_t a = 77, b;

    setenv("FAKE_CUDA_MEMORY_MIB", "1", 1);
    ops->close(d);
    d = fixture_open();
    cr_assert_eq(ops->mem_alloc(d, 2 << 20, &a), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(ops->mem_alloc(d, UINT64_MAX, &a), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(ops->mem_alloc(d, 700000, &b), STATUS_OK);
    cr_assert_eq(ops->mem_alloc(d, 700000, &a), STATUS_DEVICE_MEMORY_EXHAUSTED);
    cr_assert_eq(a, 77);
    cr_assert_eq(ops->mem_free(d, b), STATUS_OK);
    cr_assert_eq(ops->mem_alloc(d, 700000, &a), STATUS_OK);
}

Test(cuda, a_free_waits_for_all_streams)
{
    struct device_module *m = fixture_module(d);
    struct device_launch  l = fixture_launch(m, "endless", NULL, 0, 1);
    struct device_stream *s;
    uint64_t              a;
    long                  before;

    cr_assert_eq(ops->stream_create(d, &s), STATUS_OK);
    cr_assert_eq(ops->mem_alloc(d, 100, &a), STATUS_OK);
    cr_assert_eq(ops->launch(d, s, &l, NULL), STATUS_OK);
    cr_assert_eq(synchronise(s), STATUS_PENDING);
    cr_assert_eq(synchronise(NULL), STATUS_OK, "the other stream goes on");
    before = fixture_calls("cuMemFreeAsync");
    cr_assert_eq(ops->mem_free(d, a), STATUS_OK);
    cr_assert_eq(the_device_memory().allocated_bytes, 0);
    cr_assert_eq(fixture_calls("cuMemFreeAsync"), before, "freed under a running kernel");
    ops->stream_destroy(d, s);
    cr_assert_eq(ops->mem_alloc(d, 100, &a), STATUS_OK);
    cr_assert_eq(ops->mem_free(d, a), STATUS_OK);
    cr_assert_eq(fixture_calls("cuMemFreeAsync"), before, "freed under a kernel of a destroyed stream");
    fixture_finish();
    the_device_memory();
    cr_assert_eq(fixture_calls("cuMemFreeAsync"), before + 2);
}

Test(cuda, close_gives_pending_frees_back)
{
    struct device_module *m = fixture_module(d);
    struct device_launch  l = fixture_launch(m, "endless", NULL, 0, 1);
    uint64_t              a = fixture_memory(d, 100);

    cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    cr_assert_eq(ops->mem_free(d, a), STATUS_OK);
}

Test(cuda, trims_what_is_free_and_leaves_what_a_kernel_may_use)
{
    struct device_module *m = fixture_module(d);
    struct device_launch  l = fixture_launch(m, "endless", NULL, 0, 1);
    uint64_t              a, b, c;

    cr_assert_eq(ops->mem_alloc(d, 1 << 20, &a), STATUS_OK);
    cr_assert_eq(ops->mem_alloc(d, 2 << 20, &b), STATUS_OK);
    cr_assert_eq(ops->mem_alloc(d, 4 << 20, &c), STATUS_OK);
    cr_assert_eq(ops->mem_free(d, c), STATUS_OK);
    cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    cr_assert_eq(ops->mem_free(d, b), STATUS_OK);
    cr_assert_eq(the_device_memory().reserved_bytes, 7 << 20);
    cr_assert_eq(ops->mem_trim(d), STATUS_OK);
    cr_assert_eq(the_device_memory().reserved_bytes, 3 << 20);
    fixture_finish();
    cr_assert_eq(ops->mem_trim(d), STATUS_OK);
    cr_assert_eq(the_device_memory().reserved_bytes, 1 << 20);
    cr_assert_eq(the_device_memory().allocated_bytes, 1 << 20);
}

static uint64_t reserved(void)
{
    struct device_memory now;

    cr_assert_eq(ops->memory(d, &now), STATUS_OK);
    return now.reserved_bytes;
}

Test(cuda, freed_memory_is_kept_up_to_the_bound)
{
    struct device_module *m = fixture_module(d);
    struct device_launch  l = fixture_launch(m, "endless", NULL, 0, 1);
    uint64_t              a[4];

    for (unsigned i = 0; i < 4; i++)
        cr_assert_eq(ops->mem_alloc(d, 1 << 20, &a[i]), STATUS_OK);
    cr_assert_eq(ops->mem_free(d, a[0]), STATUS_OK);
    cr_assert_eq(reserved(), 4 << 20, "all is kept at the start");
    cr_assert_eq(ops->mem_keep(d, 1 << 19), STATUS_OK);
    cr_assert_eq(reserved(), 7 << 19, "what is more goes back at once");
    cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    cr_assert_eq(ops->mem_free(d, a[1]), STATUS_OK);
    cr_assert_geq(reserved(), 3 << 20, "what a kernel may still use stays");
    fixture_finish();
    cr_assert_eq(reserved(), 5 << 19);
    cr_assert_eq(ops->mem_free(d, a[2]), STATUS_OK);
    cr_assert_eq(reserved(), 3 << 19);
    cr_assert_eq(ops->mem_keep(d, UINT64_MAX), STATUS_OK);
    cr_assert_eq(ops->mem_free(d, a[3]), STATUS_OK);
    cr_assert_eq(reserved(), 3 << 19);
    cr_assert_eq(ops->mem_keep(d, 0), STATUS_OK);
    cr_assert_eq(reserved(), 0);
}

Test(cuda, fills_with_every_pattern)
{
    static const uint64_t counts[] = {1, 2, 3, 4095, 4096, 4097, 8192, 20000};
    static unsigned char  host[200000];
    const uint64_t        pattern = 0x1122334455667788;
    uint64_t              a = fixture_memory(d, sizeof host);

    for (uint32_t bytes = 1; bytes <= 8; bytes *= 2)
        for (size_t c = 0; c < COUNT(counts); c++) {
            size_t end = 16 + bytes * counts[c];

            cr_assert_eq(ops->mem_fill(d, NULL, a, 0xee, 1, sizeof host), STATUS_OK);
            cr_assert_eq(ops->mem_fill(d, NULL, a + 16, pattern, bytes, counts[c]), STATUS_OK);
            cr_assert_eq(ops->mem_read(d, NULL, host, a, sizeof host), STATUS_OK);
            cr_assert_eq(host[15], 0xee);
            cr_assert_eq(host[end], 0xee);
            for (size_t i = 16; i < end; i++)
                cr_assert_eq(host[i], (unsigned char)(pattern >> 8 * ((i - 16) % bytes)), "%u bytes, %zu", bytes, i);
        }
    cr_assert_eq(ops->mem_fill(d, NULL, a, 0, 3, 1), STATUS_INTERNAL);
    cr_assert_eq(ops->mem_fill(d, NULL, a, 0, 8, UINT64_MAX), STATUS_INTERNAL);
}

Test(cuda, copies_overlapping_ranges_as_if_apart)
{
    static const int shifts[] = {-100, -1, 0, 1, 3, 100};
    unsigned char    before[1000], after[1000];
    uint64_t         a;
    long             live = fixture_live();

    for (size_t i = 0; i < sizeof before; i++)
        before[i] = (unsigned char)(i * 7);
    cr_assert_eq(ops->mem_alloc(d, sizeof before, &a), STATUS_OK);
    for (size_t k = 0; k < COUNT(shifts); k++) {
        cr_assert_eq(ops->mem_write(d, NULL, a, before, sizeof before), STATUS_OK);
        cr_assert_eq(ops->mem_copy(d, NULL, a + 200 + (uint64_t)(int64_t)shifts[k], a + 200, 500), STATUS_OK);
        cr_assert_eq(ops->mem_read(d, NULL, after, a, sizeof after), STATUS_OK);
        for (int i = 0; i < 500; i++)
            cr_assert_eq(after[200 + shifts[k] + i], before[200 + i]);
    }
    cr_assert_eq(fixture_live(), live + 1);
}

Test(cuda, reads_the_kernel_table)
{
    static const uint32_t      expected[][2] = {{0, 1}, {8, 8}, {16, 24}, {40, 2}};
    struct device_module      *m = fixture_module(d);
    const struct kernel_table *t = ops->module_table(m);
    int                        k = kernel_table_find(t, SPAN_LITERAL("layout"));
    uint32_t                   threads = 0;

    cr_assert_eq(t->kernels_count, 9);
    cr_assert_geq(k, 0);
    cr_assert_eq(t->kernels[k].params_count, 4);
    cr_assert_eq(t->kernels[k].params_bytes, 42);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(t->kernels[k].params[i].offset, expected[i][0]);
        cr_assert_eq(t->kernels[k].params[i].size, expected[i][1]);
    }
    cr_assert_eq(t->kernels[k].max_threads, 1024);
    cr_assert_eq(t->kernels[k].max_dynamic_shared_bytes, 232448);
    cr_assert_eq(ops->best_block(d, m, (unsigned)k, 0, &threads), STATUS_OK);
    cr_assert_eq(threads, 1024);
    cr_assert_eq(ops->best_block(d, m, (unsigned)k, 1u << 30, &threads), STATUS_LAUNCH_CONFIG_INVALID);
    ops->module_unload(d, m);
}

Test(cuda, refuses_images_that_are_none)
{
    static const struct span images[] = {SPAN_LITERAL(""),
                                         SPAN_LITERAL("hello"),
                                         SPAN_LITERAL(".version 7.0\0.target"),
                                         SPAN_LITERAL("\177ELF\2\1\1"),
                                         SPAN_LITERAL("\x50\xed\x55\xba\1\0\x10\0\xff\xff\0\0\0\0\0\0"),
                                         SPAN_LITERAL("\xb1\x43\x62\x46\1\0\0\0\1\2\3\4\5\6\7\0")};
    long                     loads = fixture_calls("cuModuleLoadDataEx");

    for (size_t i = 0; i < COUNT(images); i++) {
        struct device_module *m = NULL;
        struct problem        why = {0};

        cr_assert_eq(ops->module_load(d, images[i].data, images[i].bytes, &m, &why), STATUS_MODULE_INVALID, "image %zu", i);
        cr_assert_eq(why.status, STATUS_MODULE_INVALID, "image %zu", i);
        cr_assert_str_neq(why.detail, "", "image %zu", i);
        cr_assert_null(m, "image %zu", i);
    }
    cr_assert_eq(fixture_calls("cuModuleLoadDataEx"), loads, "none of them may reach the driver");
}

Test(cuda, tells_the_line_of_a_bad_instruction)
{
    static const char     ptx[] = ".version 6.4\n.target sm_75\n.visible .entry k()\n{\n    bogus.u32;\n}\n";
    struct device_module *m = NULL;
    struct problem        why = {0};

    cr_assert_eq(ops->module_load(d, ptx, sizeof ptx - 1, &m, &why), STATUS_MODULE_INVALID);
    cr_assert_not_null(strstr(why.detail, "line 5"), "%s", why.detail);
    cr_assert_eq(why.cuda_result, 218);
    cr_assert_str_eq(why.cuda_name, "CUDA_ERROR_INVALID_PTX");
}

Test(cuda, launches_in_the_order_of_a_stream)
{
    struct device_module *m = fixture_module(d);
    uint32_t              out[64];
    uint64_t              a = fixture_memory(d, sizeof out);

    cr_assert_eq(ops->mem_fill(d, NULL, a, 1, 4, 64), STATUS_OK);
    for (uint32_t k = 0; k < 3; k++) {
        struct {
            uint64_t p;
            uint32_t n, k;
        } params = {a, 64, k};
        struct device_launch l = fixture_launch(m, "add", &params, sizeof params, 64);
        cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    }
    cr_assert_eq(ops->mem_read(d, NULL, out, a, sizeof out), STATUS_OK);
    cr_assert_eq(synchronise(NULL), STATUS_OK);
    for (int i = 0; i < 64; i++)
        cr_assert_eq(out[i], ((1 * 2 + 0) * 2 + 1) * 2 + 2);
}

Test(cuda, a_cooperative_launch_hands_over_each_parameter)
{
    struct device_module *m = fixture_module(d);
    uint32_t              out[64];
    struct {
        uint64_t p;
        uint32_t n, k;
    } params = {0, 64, 5};
    struct device_launch l = fixture_launch(m, "add", &params, sizeof params, 64);
    struct problem       why = {0};

    cr_assert_eq(ops->mem_alloc(d, sizeof out, &params.p), STATUS_OK);
    cr_assert_eq(ops->mem_fill(d, NULL, params.p, 1, 4, 64), STATUS_OK);
    l.cooperative = true;
    cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    cr_assert_eq(fixture_calls("cuLaunchCooperativeKernel"), 1);
    cr_assert_eq(fixture_calls("cuLaunchKernel"), 0);
    cr_assert_eq(ops->mem_read(d, NULL, out, params.p, sizeof out), STATUS_OK);
    cr_assert_eq(synchronise(NULL), STATUS_OK);
    for (int i = 0; i < 64; i++)
        cr_assert_eq(out[i], 1 * 2 + 5);
    l.grid[0] = 1000;
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_LAUNCH_CONFIG_INVALID, "%s", why.detail);
    cr_assert_eq(why.cuda_result, 720);
}

static void refuse_launch(struct device_launch l, enum status expected)
{
    struct problem why = {0};

    cr_assert_eq(ops->launch(d, NULL, &l, &why), expected, "%s", why.detail);
    cr_assert_eq(why.status, expected);
    cr_assert_str_neq(why.detail, "");
}

Test(cuda, refuses_impossible_launches_and_lives_on)
{
    struct device_module *m = fixture_module(d);
    struct device_launch  good = fixture_launch(m, "unknown", NULL, 0, 32);
    struct device_launch  l = good;
    struct vadd_params    params = {0};

    l.grid[1] = 0;
    refuse_launch(l, STATUS_LAUNCH_CONFIG_INVALID);
    l = good, l.grid[1] = 65536;
    refuse_launch(l, STATUS_LAUNCH_CONFIG_INVALID);
    l = good, l.block[0] = 1024, l.block[1] = 2;
    refuse_launch(l, STATUS_LAUNCH_CONFIG_INVALID);
    l = good, l.block[2] = 65;
    refuse_launch(l, STATUS_LAUNCH_CONFIG_INVALID);
    l = good, l.shared_bytes = 232449;
    refuse_launch(l, STATUS_LAUNCH_CONFIG_INVALID);
    refuse_launch(fixture_launch(m, "vadd", &params, 24, 32), STATUS_ARGUMENT_MISMATCH);
    cr_assert_eq(fixture_calls("cuLaunchKernel"), 0, "none of them may reach the driver");
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:1:1,cuLaunchKernel:2:701", 1);
    refuse_launch(good, STATUS_LAUNCH_CONFIG_INVALID);
    refuse_launch(good, STATUS_LAUNCH_CONFIG_INVALID);
    cr_assert_eq(synchronise(NULL), STATUS_OK);
}

Test(cuda, opens_shared_memory_up_once)
{
    struct device_module *m = fixture_module(d);
    uint32_t              n = 1;
    struct device_launch  l = fixture_launch(m, "hello", &n, sizeof n, 1);

    l.shared_bytes = 200000;
    cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    cr_assert_eq(fixture_calls("cuFuncSetAttribute"), 1);
}

static void lose(const char *kernel, int result, const char *name)
{
    struct device_launch l;
    struct device_event *e;
    struct problem       why = {0};
    uint64_t             a;

    the_device_close();
    the_device_open();
    l = fixture_launch(fixture_module(d), kernel, NULL, 0, 1);
    cr_assert_eq(ops->event_create(d, &e), STATUS_OK);
    cr_assert_eq(ops->event_record(d, NULL, e), STATUS_OK);
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_OK);
    cr_assert_eq(ops->event_query(d, e, &why), STATUS_KERNEL_FAULT);
    cr_assert_eq(why.cuda_result, result);
    cr_assert_str_eq(why.cuda_name, name);
    cr_assert_eq(ops->mem_alloc(d, 1, &a), STATUS_KERNEL_FAULT);
    cr_assert_eq(ops->launch(d, NULL, &l, &why), STATUS_KERNEL_FAULT);
    cr_assert_eq(why.cuda_result, result);
}

Test(cuda, a_fault_is_what_every_later_call_answers)
{
    lose("illegal", 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
    lose("trap", 719, "CUDA_ERROR_LAUNCH_FAILED");
    lose("misaligned", 716, "CUDA_ERROR_MISALIGNED_ADDRESS");
}

Test(cuda, measures_between_events)
{
    struct device_module *m = fixture_module(d);
    struct device_launch  l = fixture_launch(m, "endless", NULL, 0, 1);
    struct device_event  *from, *to;
    float                 us = -1;

    cr_assert_eq(ops->event_create(d, &from), STATUS_OK);
    cr_assert_eq(ops->event_create(d, &to), STATUS_OK);
    cr_assert_eq(ops->event_record(d, NULL, from), STATUS_OK);
    cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    cr_assert_eq(ops->event_record(d, NULL, to), STATUS_OK);
    cr_assert_eq(ops->event_elapsed(d, from, to, &us), STATUS_PENDING);
    fixture_finish();
    cr_assert_eq(ops->event_elapsed(d, from, to, &us), STATUS_OK);
    cr_assert_geq(us, 0);
}

Test(cuda, catches_what_kernels_print)
{
    struct device_module *m = fixture_module(d);
    uint32_t              n = 42;
    struct device_launch  l = fixture_launch(m, "hello", &n, sizeof n, 1);
    struct buf            out;

    buf_init(&out, 12);
    cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    cr_assert_eq(ops->take_output(d, NULL, &out), STATUS_OK);
    cr_assert_str_eq(out.data, "hello 42\n");
    cr_assert_eq(ops->take_output(d, NULL, &out), STATUS_OK);
    cr_assert_eq(out.bytes, 9, "taken twice");
    cr_assert_eq(ops->launch(d, NULL, &l, NULL), STATUS_OK);
    cr_assert_eq(ops->take_output(d, NULL, &out), STATUS_OK);
    cr_assert_eq(out.bytes, 12, "beyond the maximum");
    cr_assert_not(out.failed);
    buf_finish(&out);
}

Test(cuda, output_of_a_busy_stream_does_not_wait_for_it)
{
    struct device_module *m = fixture_module(d);
    uint32_t              n = 1;
    struct device_launch  print = fixture_launch(m, "hello", &n, sizeof n, 1);
    struct device_launch  hang = fixture_launch(m, "endless", NULL, 0, 1);
    struct buf            out;

    buf_init(&out, 100);
    cr_assert_eq(ops->launch(d, NULL, &print, NULL), STATUS_OK);
    cr_assert_eq(ops->launch(d, NULL, &hang, NULL), STATUS_OK);
    cr_assert_eq(ops->take_output(d, NULL, &out), STATUS_OK);
    cr_assert_str_eq(out.data, "hello 1\n");
    buf_finish(&out);
}

Test(cuda, gives_standard_output_back)
{
    char path[] = "/tmp/stdout-XXXXXX";
    char text[32] = "";
    int  file = mkstemp(path);

    ops->close(d);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    d = fixture_open();
    printf("during\n");
    ops->close(d);
    d = NULL;
    printf("after\n");
    fflush(stdout);
    cr_assert_gt(pread(file, text, sizeof text - 1, 0), 0);
    cr_assert_str_eq(text, "after\n");
    unlink(path);
}
