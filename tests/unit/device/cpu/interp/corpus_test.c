/* Compiled CUDA kernels (PTX from NVRTC) against plain C. */
#include <math.h>
#include <stdlib.h>

#include "unit/device/cpu/interp/the_rig.h"

TestSuite(interp_corpus, .init = the_rig_start, .fini = the_rig_stop);

static uint32_t state = 12345;

static uint32_t random_u32(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static float *floats(size_t n)
{
    float *f = rig_memory(&r, n * 4);

    for (size_t i = 0; i < n; i++)
        f[i] = (float)(random_u32() % 1000) / 100.0f - 5.0f;
    return f;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-4 * (1 + fabs(b));
}

Test(interp_corpus, vadd_and_saxpy)
{
    enum { N = 5000 };
    float *a = floats(N), *b = floats(N), *c = rig_memory(&r, N * 4);

    rig_load_file(&r, "vadd.ptx");
    OK("vadd", SHAPE(20, 256), ADDRESS(a), ADDRESS(b), ADDRESS(c), N);
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(c[i], a[i] + b[i]);
    OK("saxpy", SHAPE(3, 128), bits_of_float(2.5f), ADDRESS(a), ADDRESS(c), N);
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(c[i], fmaf(2.5f, a[i], a[i] + b[i]));
    OK("vadd4", SHAPE(5, 256), ADDRESS(a), ADDRESS(b), ADDRESS(c), N / 4);
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(c[i], a[i] + b[i]);
}

Test(interp_corpus, reductions)
{
    enum { N = 10000 };
    float  *a = floats(N), *out = rig_memory(&r, 64 * 4), *best = rig_memory(&r, 4);
    double *d = rig_memory(&r, N * 8), *dout = rig_memory(&r, 8 * 8), want = 0, got = 0;
    int    *index = rig_memory(&r, 4), top = 0;

    for (unsigned i = 0; i < N; i++) {
        want += (double)a[i];
        d[i] = (double)a[i];
        top = a[i] > a[top] ? (int)i : top;
    }
    rig_load_file(&r, "reduce.ptx");
    OK("reduce_interleaved", SHAPE(40, 256, .shared_bytes = 1024), ADDRESS(a), ADDRESS(out), N);
    for (unsigned i = 0; i < 40; i++)
        got += (double)out[i];
    cr_assert(near(got, want), "%f %f", got, want);
    got = 0;
    OK("reduce_seq", SHAPE(20, 256), ADDRESS(a), ADDRESS(out), N);
    for (unsigned i = 0; i < 20; i++)
        got += (double)out[i];
    cr_assert(near(got, want));
    OK("reduce_d256", SHAPE(4, 256), ADDRESS(d), ADDRESS(dout), N);
    cr_assert(near(dout[0] + dout[1] + dout[2] + dout[3], want));
    rig_load_file(&r, "reduce_shfl.ptx");
    out[0] = 0;
    OK("reduce_shfl", SHAPE(8, 256), ADDRESS(a), ADDRESS(out), N);
    cr_assert(near((double)out[0], want));
    OK("argmax", SHAPE(1, 256), ADDRESS(a), N, ADDRESS(best), ADDRESS(index));
    cr_assert_eq(*best, a[top]);
}

Test(interp_corpus, scans)
{
    enum { N = 512 };
    float *a = floats(N), *out = rig_memory(&r, N * 4), *sums = rig_memory(&r, 4);
    int   *in = rig_memory(&r, N * 4), *iout = rig_memory(&r, N * 4), sum = 0;
    double fsum = 0;

    for (unsigned i = 0; i < N; i++)
        in[i] = (int)i * 3 - 100;
    rig_load_file(&r, "scan.ptx");
    OK("scan_blelloch", SHAPE(1, N / 2, .shared_bytes = N * 4), ADDRESS(a), ADDRESS(out), ADDRESS(sums), N);
    for (unsigned i = 0; i < N; fsum += (double)a[i++])
        cr_assert(near((double)out[i], fsum), "%u", i);
    OK("scan_warp", SHAPE(1, N), ADDRESS(in), ADDRESS(iout), N);
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(iout[i], sum += in[i]);
}

Test(interp_corpus, transpose)
{
    enum { W = 70, H = 45 };
    float *in = floats(W * H), *out = rig_memory(&r, W * H * 4);

    rig_load_file(&r, "transpose.ptx");
    OK("transpose", SHAPE(3, 32, .grid_y = 2, .block_y = 8), ADDRESS(out), ADDRESS(in), W, H);
    for (unsigned y = 0; y < H; y++)
        for (unsigned x = 0; x < W; x++)
            cr_assert_eq(out[x * H + y], in[y * W + x]);
}

Test(interp_corpus, matmul)
{
    enum { N = 48 };
    float *a = floats(N * N), *b = floats(N * N), *c = rig_memory(&r, N * N * 4), *e = rig_memory(&r, N * N * 4);

    rig_load_file(&r, "matmul.ptx");
    OK("matmul", SHAPE(3, 16, .grid_y = 3, .block_y = 16), ADDRESS(a), ADDRESS(b), ADDRESS(c), N);
    OK("matmul_naive", SHAPE(4, 16, .grid_y = 4, .block_y = 16), ADDRESS(a), ADDRESS(b), ADDRESS(e), N, N, N);
    for (unsigned y = 0; y < N; y++) {
        for (unsigned x = 0; x < N; x++) {
            double want = 0;
            for (unsigned k = 0; k < N; k++)
                want += (double)a[y * N + k] * (double)b[k * N + x];
            cr_assert(fabs((double)c[y * N + x] - want) < 1e-3 && fabs((double)e[y * N + x] - want) < 1e-3, "%u %u", x, y);
        }
    }
}

Test(interp_corpus, histograms)
{
    enum { N = 20000 };
    unsigned char *in = rig_memory(&r, N);
    uint32_t      *h = rig_memory(&r, 1024), *s = rig_memory(&r, 1024), want[256] = {0};

    for (unsigned i = 0; i < N; i++)
        want[in[i] = (unsigned char)random_u32()]++;
    rig_load_file(&r, "histogram.ptx");
    OK("hist_global", SHAPE(16, 256), ADDRESS(in), ADDRESS(h), N);
    OK("hist_shared", SHAPE(16, 256), ADDRESS(in), ADDRESS(s), N);
    cr_assert_arr_eq(h, want, sizeof want);
    cr_assert_arr_eq(s, want, sizeof want);
}

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

Test(interp_corpus, bitonic_sorts)
{
    enum { N = 2048 };
    int      *v = rig_memory(&r, N * 4), want[N];
    uint32_t *keys = rig_memory(&r, 4096), *values = rig_memory(&r, 4096);

    for (unsigned i = 0; i < N; i++)
        want[i] = v[i] = (int)random_u32() - (1 << 23);
    qsort(want, N, 4, ascending);
    rig_load_file(&r, "sort.ptx");
    for (unsigned k = 2; k <= N; k *= 2)
        for (unsigned j = k / 2; j; j /= 2)
            OK("bitonic_step", SHAPE(N / 256, 256), ADDRESS(v), j, k);
    cr_assert_arr_eq(v, want, sizeof want);
    for (unsigned i = 0; i < 1024; i++) {
        keys[i] = random_u32();
        values[i] = keys[i] ^ 0x55;
    }
    OK("bitonic_shared", SHAPE(1, 512), ADDRESS(keys), ADDRESS(values), 1024, 1);
    for (unsigned i = 0; i < 1024; i++) {
        cr_assert_eq(values[i], keys[i] ^ 0x55);
        cr_assert(i == 0 || keys[i - 1] <= keys[i], "%u", i);
    }
}

static int escape(float cx, float cy, int most)
{
    float x = 0, y = 0;
    int   n = 0;

    while (fmaf(x, x, y * y) < 4.0f && n < most) {
        float t = fmaf(x, x, -(y * y)) + cx;
        y = fmaf(2.0f * x, y, cy);
        x = t;
        n++;
    }
    return n;
}

/* The compiler decides where to fuse, so a few pixels at the border may differ. */
Test(interp_corpus, mandelbrot)
{
    enum { W = 64, H = 48 };
    int     *out = rig_memory(&r, W * H * 4);
    unsigned differ = 0;

    rig_load_file(&r, "mandelbrot.ptx");
    OK("mandel", SHAPE(4, 16, .grid_y = 3, .block_y = 16), ADDRESS(out), W, H, bits_of_float(-2.0f), bits_of_float(-1.2f),
       bits_of_float(0.045f), bits_of_float(0.05f), 100);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            differ += out[y * W + x] != escape(fmaf((float)x, 0.045f, -2.0f), fmaf((float)y, 0.05f, -1.2f), 100);
    cr_assert_lt(differ, 30, "%u", differ);
}

Test(interp_corpus, softmax)
{
    enum { ROWS = 5, COLS = 300 };
    float *in = floats(ROWS * COLS), *out = rig_memory(&r, ROWS * COLS * 4);

    rig_load_file(&r, "softmax.ptx");
    OK("softmax", SHAPE(ROWS, 128, .shared_bytes = 512), ADDRESS(in), ADDRESS(out), COLS);
    for (unsigned row = 0; row < ROWS; row++) {
        double sum = 0;
        for (unsigned i = 0; i < COLS; i++)
            sum += exp((double)in[row * COLS + i]);
        for (unsigned i = 0; i < COLS; i++)
            cr_assert(fabs((double)out[row * COLS + i] - exp((double)in[row * COLS + i]) / sum) < 1e-6);
    }
}

static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

Test(interp_corpus, calls_direct_with_barriers_and_indirect)
{
    float *in = floats(256), *out = rig_memory(&r, 1024);
    int   *numbers = rig_memory(&r, 1024);
    double sum = 0;

    for (unsigned i = 0; i < 256; i++)
        sum += (double)in[i];
    rig_load_file(&r, "devfunc.ptx");
    OK("calls", SHAPE(2, 64), ADDRESS(in), ADDRESS(out), ADDRESS(numbers), 100);
    for (int i = 0; i < 100; i++) {
        float p = 0;
        for (int k = 0; k < 5; k++)
            p = fmaf(p, in[i], (float)k);
        cr_assert_eq(numbers[i], fib(i % 12));
        cr_assert(near((double)out[i], (double)(p + in[i])));
    }
    OK("calls_barrier", SHAPE(1, 256), ADDRESS(in), ADDRESS(out));
    cr_assert(near((double)out[17], 3 * sum), "%f %f", (double)out[17], 3 * sum);
    OK("indirect", SHAPE(1, 32), ADDRESS(in), ADDRESS(out));
    cr_assert(near((double)out[3], (double)(in[3] + 2)));
}

Test(interp_corpus, printf_assert_and_trap)
{
    struct buf text;
    int       *a = rig_memory(&r, 400);

    rig_load_file(&r, "printf_assert.ptx");
    OK("hello", SHAPE(1, 32), 2);
    buf_init(&text, 1000);
    cpu_engine_take_output(r.engine, &text);
    cr_assert_str_eq(text.data, "hello from block 0 thread 0: 0.000000 str 2199023255552\n"
                                "hello from block 0 thread 1: 1.500000 str 2199023255552\n");
    buf_finish(&text);
    OK("check", SHAPE(1, 64), ADDRESS(a), 50);
    a[7] = -1;
    FAULTS(710, "check", SHAPE(1, 64), ADDRESS(a), 50);
    SAYS("a[i] >= 0");
    SAYS("thread (7,0,0)");
    OK("trapper", SHAPE(1, 1), ADDRESS(a));
    a[0] = 42;
    FAULTS(719, "trapper", SHAPE(1, 1), ADDRESS(a));
}
