/* Every compilation of the interpreter, with and without its fast paths, must give the same bits as the plain baseline: for compiled
 * kernels, for random programs, and for the texts of faults. */
#include <stdio.h>

#include "device/cpu/interp/variants.h"
#include "program_maker.h"
#include "unit/device/cpu/interp/the_rig.h"

enum { WORDS = 1 << 14, SEEDS = 200 };

static uint32_t *in, *other, *out, expected[WORDS];

/* One host thread: float sums by atomics depend on the order of blocks. */
static void start(void)
{
    the_rig_start();
    the_rig_threads(1);
    in = rig_memory(&r, WORDS * 4);
    other = rig_memory(&r, WORDS * 4);
    out = rig_memory(&r, WORDS * 4);
}

TestSuite(interp_variants, .init = start, .fini = the_rig_stop);

static void load_as(const struct interpreter *by, bool plain)
{
    cpu_code_unload(r.module);
    cr_assert_eq(cpu_code_load_as(r.module, by, plain, &r.why), STATUS_OK, "%s", r.why.detail);
}

static void compare(const char *what, const struct interpreter *by, bool plain, unsigned floats_from, unsigned period)
{
    for (unsigned i = 0; i < WORDS; i++) {
        bool is_float = period && i % period >= floats_from;
        cr_assert(maker_same(out[i], expected[i], is_float), "%s on %s%s: word %u is %08x, not %08x", what, by->name,
                  plain ? ", plain" : "", i, out[i], expected[i]);
    }
}

/* run fills `out`; the result of the first variant, the plain baseline, is the reference. */
static void for_every_variant(const char *what, void (*run)(const void *), const void *context, unsigned floats_from, unsigned period)
{
    const struct interpreter *by;

    for (unsigned k = 0; (by = interpreter_at(k)) != NULL; k++) {
        for (int plain = 1; plain >= 0; plain--) {
            load_as(by, plain);
            memset(out, 0, WORDS * 4);
            run(context);
            if (k == 0 && plain)
                memcpy(expected, out, sizeof expected);
            else
                compare(what, by, plain, floats_from, period);
        }
    }
}

Test(interp_variants, the_best_is_the_last_of_them)
{
    const struct interpreter *last = NULL;

    cr_assert_str_eq(interpreter_at(0)->name, "baseline");
    for (unsigned k = 0; interpreter_at(k); k++)
        last = interpreter_at(k);
    cr_assert_eq(interpreter_best(), last);
}

struct kernel_case {
    const char      *file, *kernel;
    struct rig_shape shape;
    uint64_t         rest[5]; /* the parameters after the arrays */
    unsigned         rest_count;
    unsigned         arrays; /* the number of in, other and out, which come first; 2: in and out */
    bool             bytes;  /* inputs are arbitrary bytes, not floats */
};

#define REST(...) {__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8
static const struct kernel_case kernels[] = {
    {"vadd.ptx", "vadd", {.grid_x = 9, .block_x = 256}, REST(2100), 3, false},
    {"vadd.ptx", "vadd4", {.grid_x = 3, .block_x = 96}, REST(250), 3, false},
    {"matmul.ptx", "matmul", {.grid_x = 3, .block_x = 16, .grid_y = 3, .block_y = 16}, REST(48), 3, false},
    {"matmul.ptx", "matmul_naive", {.grid_x = 4, .block_x = 16, .grid_y = 3, .block_y = 16}, REST(48, 50, 40), 3, false},
    {"reduce.ptx", "reduce_interleaved", {.grid_x = 20, .block_x = 256, .shared_bytes = 1024}, REST(5000), 2, false},
    {"reduce.ptx", "reduce_seq", {.grid_x = 10, .block_x = 256}, REST(4999), 2, false},
    {"reduce_shfl.ptx", "reduce_shfl", {.grid_x = 8, .block_x = 256}, REST(5000), 2, false},
    {"softmax.ptx", "softmax", {.grid_x = 5, .block_x = 128, .shared_bytes = 512}, REST(300), 2, false},
    {"histogram.ptx", "hist_global", {.grid_x = 8, .block_x = 256}, REST(16000), 2, true},
    {"histogram.ptx", "hist_shared", {.grid_x = 8, .block_x = 256}, REST(16000), 2, true},
    {"scan.ptx", "scan_warp", {.grid_x = 1, .block_x = 512}, REST(512), 2, true},
    {"transpose.ptx", "transpose", {.grid_x = 3, .block_x = 32, .grid_y = 2, .block_y = 8}, REST(70, 45), 2, true},
};

static void fill_inputs(bool bytes)
{
    uint32_t state = 99;

    for (unsigned i = 0; i < WORDS; i++) {
        in[i] = maker_random(&state);
        other[i] = maker_random(&state);
        if (bytes)
            continue;
        in[i] = (uint32_t)bits_of_float((float)(in[i] % 2000) / 250.0f - 4.0f);
        other[i] = (uint32_t)bits_of_float((float)(other[i] % 2000) / 250.0f - 4.0f);
    }
}

static void run_kernel(const void *context)
{
    const struct kernel_case *k = context;
    uint64_t                  params[8];
    unsigned                  n = 0;
    bool                      flipped = strcmp(k->kernel, "transpose") == 0; /* out comes first */

    params[n++] = ADDRESS(flipped ? out : in);
    if (k->arrays == 3)
        params[n++] = ADDRESS(other);
    params[n++] = ADDRESS(flipped ? in : out);
    for (unsigned i = 0; i < k->rest_count; i++)
        params[n++] = k->rest[i];
    cr_assert_eq(rig_run(&r, k->kernel, k->shape, params, n), STATUS_OK, "%s: %s", k->kernel, r.why.detail);
}

Test(interp_variants, compiled_kernels)
{
    unsigned written;

    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        fill_inputs(kernels[k].bytes);
        rig_load_file(&r, kernels[k].file);
        for_every_variant(kernels[k].kernel, run_kernel, &kernels[k], 0, 0);
        for (written = 0; written < WORDS && !expected[written]; written++)
            continue;
        cr_assert_lt(written, WORDS, "%s did nothing", kernels[k].kernel);
    }
}

static void run_mandelbrot(const void *context)
{
    (void)context;
    cr_assert_eq(RUN(&r, "mandel", SHAPE(5, 16, .grid_y = 4, .block_y = 16), ADDRESS(out), 75, 60, bits_of_float(-2.0f),
                     bits_of_float(-1.2f), bits_of_float(0.04f), bits_of_float(0.04f), 100),
                 STATUS_OK, "%s", r.why.detail);
}

Test(interp_variants, mandelbrot)
{
    rig_load_file(&r, "mandelbrot.ptx");
    for_every_variant("mandel", run_mandelbrot, NULL, 0, 0);
}

static void run_program(const void *context)
{
    const unsigned *threads = context;
    enum status     st = RUN(&r, "made", SHAPE(2, *threads), ADDRESS(in), ADDRESS(out), ADDRESS(out + WORDS / 2));

    cr_assert_eq(st, STATUS_OK, "%s", r.why.detail);
}

/* Block sizes with and without whole runs of lanes, whole warps and a last partial mask word. */
Test(interp_variants, programs_made_at_random)
{
    static const unsigned threads[] = {256, 128, 100, 48, 33, 16, 7};
    static char           text[MAKER_TEXT_BYTES];
    char                  name[32];

    for (unsigned seed = 0; seed < SEEDS; seed++) {
        uint32_t state = 7 * seed + 1;
        for (unsigned i = 0; i < WORDS; i++)
            in[i] = maker_value(&state);
        maker_write(text, sizeof text, seed);
        rig_load(&r, text);
        snprintf(name, sizeof name, "program %u", seed);
        for_every_variant(name, run_program, &threads[seed % (sizeof threads / sizeof *threads)], MAKER_FLOATS_FROM, MAKER_RESULTS);
    }
}

static void fault_texts(const char *body, const char *must_name)
{
    char                      text[2048], right[PROBLEM_DETAIL_BYTES] = "";
    const struct interpreter *by;

    snprintf(text, sizeof text,
             ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry f(.param .u64 p, .param .u64 q, .param .u64 s)\n{\n"
             ".reg .b32 %%r<8>; .reg .b64 %%rd<8>; .reg .pred %%p<3>; .shared .align 8 .b8 mem[512];\n"
             "ld.param.u64 %%rd1, [p]; ld.param.u64 %%rd2, [q]; mov.u32 %%r1, %%tid.x; mul.wide.u32 %%rd3, %%r1, 4;\n%s\nret;\n}\n",
             body);
    rig_load(&r, text);
    for (unsigned k = 0; (by = interpreter_at(k)) != NULL; k++) {
        for (int plain = 1; plain >= 0; plain--) {
            load_as(by, plain);
            cr_assert_eq(RUN(&r, "f", SHAPE(1, 64), ADDRESS(in), ADDRESS(out), 0), STATUS_KERNEL_FAULT);
            if (k == 0 && plain)
                snprintf(right, sizeof right, "%s", r.why.detail);
            cr_assert_str_eq(r.why.detail, right, "%s: %s, not %s", by->name, r.why.detail, right);
            cr_assert(strstr(r.why.detail, must_name), "%s", r.why.detail);
        }
    }
}

Test(interp_variants, faults_name_the_same_thread_and_address)
{
    fault_texts("setp.eq.u32 %p1, %r1, 17; add.s64 %rd4, %rd1, %rd3; @%p1 mov.u64 %rd4, 64; ld.global.u32 %r2, [%rd4];", "thread (17,0,0)");
    fault_texts("add.s64 %rd4, %rd1, %rd3; add.s64 %rd4, %rd4, 2; ld.global.u32 %r2, [%rd4];", "misaligned");
    fault_texts("mov.u64 %rd4, mem; mul.wide.u32 %rd5, %r1, 16; add.s64 %rd4, %rd4, %rd5; st.shared.u32 [%rd4], %r1;", "thread (32,0,0)");
    fault_texts("mov.u64 %rd4, mem; add.s64 %rd4, %rd4, %rd3; st.shared.u32 [%rd4+448], %r1;", "thread (16,0,0)");
    fault_texts("mov.u64 %rd4, 12; ld.global.u32 %r2, [%rd4];", "thread (0,0,0)");
}

/* A guard page begins after the last byte of an allocation. */
Test(interp_variants, faults_in_guard_pages_name_the_thread)
{
    char body[256];

    snprintf(body, sizeof body, "add.s64 %%rd4, %%rd1, %%rd3; add.s64 %%rd4, %%rd4, %d; ld.global.u32 %%r2, [%%rd4];", WORDS * 4 - 40 * 4);
    fault_texts(body, "thread (40,0,0)");
}
