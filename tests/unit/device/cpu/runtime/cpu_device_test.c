/* The `cpu` device through struct device_ops only, as a worker uses it. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "device/device.h"

extern const struct device_ops device_cpu;

static struct {
    struct device        *device;
    struct device_module *module;
    struct device_event  *event;
} r;
static struct problem why;

static void start(void)
{
    cr_assert_eq(device_cpu.open(&r.device, 0, &why), STATUS_OK, "%s", why.detail);
    cr_assert_eq(device_cpu.event_create(r.device, &r.event), STATUS_OK);
}

static void stop(void)
{
    device_cpu.event_destroy(r.device, r.event);
    device_cpu.module_unload(r.device, r.module);
    device_cpu.close(r.device);
}

TestSuite(cpu_device, .init = start, .fini = stop);

static void load_file(const char *path)
{
    static char    text[64 * 1024];
    FILE          *f = fopen(path, "r");
    size_t         n;

    cr_assert_not_null(f, "%s", path);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    cr_assert_eq(device_cpu.module_load(r.device, text, n, &r.module, &why), STATUS_OK, "%s", why.detail);
}

static enum status finish(void)
{
    enum status st;

    cr_assert_eq(device_cpu.event_record(r.device, NULL, r.event), STATUS_OK);
    while ((st = device_cpu.event_query(r.device, r.event, &why)) == STATUS_PENDING)
        device_cpu.wait_progress(r.device, 1000000);
    return st;
}

static unsigned kernel(const char *name)
{
    int i = kernel_table_find(device_cpu.module_table(r.module), span_of(name));

    cr_assert_geq(i, 0, "%s", name);
    return (unsigned)i;
}

static enum status launch(const char *name, unsigned grid, unsigned block, const void *params, uint32_t bytes)
{
    struct device_launch l = {.module = r.module, .kernel = kernel(name), .grid = {grid, 1, 1}, .block = {block, 1, 1},
                              .params = params, .params_bytes = bytes, .deadline_ms = 30000};

    return device_cpu.launch(r.device, NULL, &l, &why);
}

static uint64_t allocate(uint64_t bytes)
{
    uint64_t address = 0;

    cr_assert_eq(device_cpu.mem_alloc(r.device, bytes, &address), STATUS_OK);
    cr_assert_eq(address % 256, 0);
    return address;
}

Test(cpu_device, tells_about_the_host)
{
    static struct device_info info;
    bool                      warp = false;

    cr_assert_eq(device_cpu.count(NULL), 1);
    cr_assert_eq(device_cpu.info(r.device, &info), STATUS_OK);
    cr_expect(info.name[0] && info.multiprocessors >= 1 && info.total_bytes > 0 && info.code_format == DEVICE_CODE_PTX && info.on_host == 1 && info.warp_size == 32);
    cr_expect_str_eq(info.compute_capability, "7.5");
    cr_expect_str_eq(info.compile_arch, "compute_75");
    cr_expect_not_null(strstr(info.unsupported, "texture_references,"));
    for (uint32_t i = 0; i < info.attributes_count; i++)
        warp = warp || (strcmp(info.attributes[i].name, "warp_size") == 0 && info.attributes[i].value == 32);
    cr_expect(warp);
}

Test(cpu_device, refuses_a_second_device)
{
    struct device *d = NULL;

    cr_expect_eq(device_cpu.open(&d, 1, &why), STATUS_DEVICE_NOT_FOUND);
    cr_expect_null(d);
}

Test(cpu_device, copies_fills_and_runs_in_order)
{
    enum { N = 1000 };
    float    a[N], c[N];
    struct { uint64_t a, b, c; uint32_t n; } __attribute__((packed)) params;

    load_file(PTX_FOLDER "/vadd.ptx");
    for (int i = 0; i < N; i++)
        a[i] = (float)i;
    params.a = allocate(sizeof a);
    params.b = allocate(sizeof a);
    params.c = allocate(sizeof a);
    params.n = N;
    cr_assert_eq(device_cpu.mem_write(r.device, NULL, params.a, a, sizeof a), STATUS_OK);
    cr_assert_eq(device_cpu.mem_fill(r.device, NULL, params.b, 0x3f800000, 4, N), STATUS_OK); /* 1.0f */
    cr_assert_eq(launch(device_cpu.module_table(r.module)->kernels[0].name, 8, 128, &params, sizeof params), STATUS_OK, "%s",
                 why.detail);
    cr_assert_eq(device_cpu.mem_read(r.device, NULL, c, params.c, sizeof c), STATUS_OK);
    cr_assert_eq(finish(), STATUS_OK, "%s", why.detail);
    for (int i = 0; i < N; i++)
        cr_assert_float_eq(c[i], (float)i + 1, 0);
}

static const struct kernel_global *global(const char *name)
{
    const struct kernel_table *t = device_cpu.module_table(r.module);

    for (uint32_t i = 0; i < t->globals_count; i++) {
        if (strcmp(t->globals[i].name, name) == 0)
            return &t->globals[i];
    }
    cr_assert_fail("%s", name);
    return NULL;
}

Test(cpu_device, variables_have_addresses_and_initial_values)
{
    float          scale = 0, via[4] = {0}, changed = 7;
    uint64_t       out;

    load_file(PTX_FOLDER "/constmem.ptx");
    cr_expect(global("lut")->constant && global("lut")->bytes == 1024 && !global("scale")->constant);
    device_cpu.mem_read(r.device, NULL, &scale, global("scale")->address, sizeof scale);
    cr_assert_eq(finish(), STATUS_OK);
    cr_expect_float_eq(scale, 2.5f, 0);
    out = allocate(sizeof via);
    device_cpu.mem_write(r.device, NULL, global("scale")->address, &changed, sizeof changed);
    cr_assert_eq(launch("via_table", 1, 4, &out, sizeof out), STATUS_OK); /* reads scale through a table of addresses */
    device_cpu.mem_read(r.device, NULL, via, out, sizeof via);
    cr_assert_eq(finish(), STATUS_OK, "%s", why.detail);
    cr_expect(via[0] == 7 && via[3] == 7);
}

Test(cpu_device, printf_comes_out_once)
{
    struct buf     out;
    uint32_t       n = 2;

    load_file(PTX_FOLDER "/printf_assert.ptx");
    cr_assert_eq(launch("hello", 1, 4, &n, sizeof n), STATUS_OK);
    cr_assert_eq(finish(), STATUS_OK, "%s", why.detail);
    buf_init(&out, 4096);
    device_cpu.take_output(r.device, NULL, &out);
    cr_expect(span_is(buf_span(&out), "hello from block 0 thread 0: 0.000000 str 2199023255552\n"
                                      "hello from block 0 thread 1: 1.500000 str 2199023255552\n"),
              "%.*s", SPAN_ARG(buf_span(&out)));
    buf_clear(&out);
    device_cpu.take_output(r.device, NULL, &out);
    cr_expect_eq(out.bytes, 0);
    buf_finish(&out);
}

Test(cpu_device, wrong_launches_leave_it_alive)
{
    uint32_t       n = 1, threads = 0;

    load_file(PTX_FOLDER "/printf_assert.ptx");
    cr_expect_eq(launch("hello", 1, 4, &n, 3), STATUS_ARGUMENT_MISMATCH);
    cr_expect_eq(launch("hello", 1, 2000, &n, sizeof n), STATUS_LAUNCH_CONFIG_INVALID);
    cr_expect_eq(launch("hello", 0, 1, &n, sizeof n), STATUS_LAUNCH_CONFIG_INVALID);
    cr_expect_eq(device_cpu.best_block(r.device, r.module, 0, 0, &threads), STATUS_OK);
    cr_expect(threads >= 32 && threads <= 1024);
    cr_expect_eq(launch("hello", 1, 1, &n, sizeof n), STATUS_OK);
    cr_expect_eq(finish(), STATUS_OK);
}

Test(cpu_device, a_kernel_that_requires_a_block_runs_with_no_other)
{
    static const char kernel[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry f() .reqntid 8 { ret; }\n";

    cr_assert_eq(device_cpu.module_load(r.device, kernel, strlen(kernel), &r.module, &why), STATUS_OK, "%s", why.detail);
    cr_expect_eq(launch("f", 1, 4, NULL, 0), STATUS_LAUNCH_CONFIG_INVALID);
    cr_expect_str_eq(why.detail, "this kernel allows blocks of 8 x 1 x 1 threads only");
    cr_expect_eq(launch("f", 1, 8, NULL, 0), STATUS_OK);
    cr_expect_eq(finish(), STATUS_OK);
}

Test(cpu_device, a_failed_assertion_loses_the_context)
{
    int            values[4] = {1, 2, -3, 4};
    struct { uint64_t a; uint32_t n; } __attribute__((packed)) params;

    load_file(PTX_FOLDER "/printf_assert.ptx");
    params.a = allocate(sizeof values);
    params.n = 4;
    device_cpu.mem_write(r.device, NULL, params.a, values, sizeof values);
    cr_assert_eq(launch("check", 1, 4, &params, sizeof params), STATUS_OK, "%s", why.detail);
    cr_expect_eq(finish(), STATUS_KERNEL_FAULT);
    cr_expect_eq(why.cuda_result, 710, "%s", why.detail);
}

Test(cpu_device, modules_that_cannot_run_are_refused_when_loaded)
{
    static const struct { const char *text, *why; } rows[] = {
        {".version 8.0\n.target sm_75\n.func g();\n.entry k() {\ncall g;\n}", "function `g` is not defined, PTX line 5"},
        {".version 8.0\n.target sm_75\n.const .b8 big[70000];", "`.const` variables"},
        {".version 8.0\n.target sm_80\n.entry k() {\nwgmma.fence.sync.aligned;\n}", "not supported on device cpu: wgmma, products of warpgroups, PTX line 4"},
        {"\x7f" "ELF", "expected `.version`"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        cr_expect_eq(device_cpu.module_load(r.device, rows[i].text, strlen(rows[i].text), &r.module, &why), STATUS_MODULE_INVALID);
        cr_expect_not_null(strstr(why.detail, rows[i].why), "%s", why.detail);
    }
}
