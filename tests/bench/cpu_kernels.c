/* What kernels cost on the `cpu` device, on 1 and 2 threads, interpreted and compiled by libLLVM, beside plain C loops compiled into this
 * program. Without libLLVM the compiled columns are those of the interpreter.
 * cpu_kernels [--runs N] [--variant NAME] [--kernel NAME] [--format json]
 * Compiled code on one thread and plain C take turns for 100 ms: the 10th percentile of each. The other figures are the shortest of N runs.
 * cpu_kernels --turns N [--kernel NAME]: compiled code and plain C in turns on one thread, N times. Where others use the machine, too, a tenth of the
 * runs is fast enough to tell two builds apart by 2 %. */
#include "base/deadline.h"
#include "bench/percentile.h"
#include "bench/plain_loops.h"
#include "device/cpu/interp/variants.h"
#include "device/cpu/jit/jit.h"
#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_DEFAULT = 9, TURNS_MAX = 4096, TURNS_MS = 100, PTX_BYTES_MAX = 1 << 20 };

struct bench {
    struct cpu_memory        *memory;
    struct cpu_engine        *engine[2]; /* of 1 and 2 threads */
    const struct interpreter *by;
    unsigned                  runs, turns;
    bool                      json;      /* a line of it for each kernel */
    float                    *x, *y, *z; /* MILLION each: device memory, which is host memory here */
};

struct subject {
    const char *file, *kernel;
    unsigned    grid[2], block[2], shared_bytes;
    void (*params)(const struct bench *b, uint64_t values[8]);
    void (*plain)(const float *x, const float *y, float *z);
};

static void check(enum status st, const char *what, const struct problem *why)
{
    if (!st)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, status_code(st), why ? why->detail : "");
    exit(EXIT_FAILURE);
}

static uint64_t at(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static uint64_t bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static void three_arrays(const struct bench *b, uint64_t v[8])
{
    v[0] = at(b->x), v[1] = at(b->y), v[2] = at(b->z), v[3] = MILLION;
}

static void saxpy_params(const struct bench *b, uint64_t v[8])
{
    v[0] = bits(2.5f), v[1] = at(b->x), v[2] = at(b->z), v[3] = MILLION;
}

static void matrices(const struct bench *b, uint64_t v[8])
{
    v[0] = at(b->x), v[1] = at(b->y), v[2] = at(b->z), v[3] = v[4] = v[5] = MATRIX;
}

static void two_arrays(const struct bench *b, uint64_t v[8])
{
    v[0] = at(b->x), v[1] = at(b->z), v[2] = MILLION;
}

static void rows(const struct bench *b, uint64_t v[8])
{
    v[0] = at(b->x), v[1] = at(b->z), v[2] = IMAGE;
}

static void image(const struct bench *b, uint64_t v[8])
{
    v[0] = at(b->z), v[1] = v[2] = IMAGE, v[3] = bits(-2.0f), v[4] = bits(-1.5f);
    v[5] = v[6] = bits(3.0f / IMAGE), v[7] = ESCAPE_ROUNDS;
}

static void heat(const struct bench *b, uint64_t v[8])
{
    v[0] = at(b->x), v[1] = at(b->z), v[2] = v[3] = IMAGE, v[4] = bits(0.2f);
}

static const struct subject subjects[] = {
    {"vadd.ptx", "vadd", {MILLION / 256, 1}, {256, 1}, 0, three_arrays, plain_vadd},
    {"vadd.ptx", "saxpy", {128, 1}, {256, 1}, 0, saxpy_params, plain_saxpy},
    {"matmul.ptx", "matmul", {32, 32}, {16, 16}, 0, matrices, plain_matmul},
    {"matmul.ptx", "matmul_naive", {32, 32}, {16, 16}, 0, matrices, plain_matmul},
    {"reduce_shfl.ptx", "reduce_shfl", {256, 1}, {256, 1}, 0, two_arrays, plain_sum},
    {"reduce.ptx", "reduce_interleaved", {MILLION / 256, 1}, {256, 1}, 1024, two_arrays, plain_sum},
    {"reduce.ptx", "reduce_seq", {MILLION / 512, 1}, {256, 1}, 0, two_arrays, plain_sum},
    {"softmax.ptx", "softmax", {IMAGE, 1}, {256, 1}, 1024, rows, plain_softmax},
    {"histogram.ptx", "hist_shared", {64, 1}, {256, 1}, 0, two_arrays, plain_histogram},
    {"histogram.ptx", "hist_global", {64, 1}, {256, 1}, 0, two_arrays, plain_histogram},
    {"mandelbrot.ptx", "mandel", {IMAGE / 16, IMAGE / 16}, {16, 16}, 0, image, plain_mandelbrot},
    {"stencil.ptx", "heat2d", {IMAGE / 16, IMAGE / 16}, {16, 16}, 0, heat, plain_heat},
    {"vadd.ptx", "vadd", {1, 1}, {256, 1}, 0, three_arrays, NULL}, /* what a launch costs */
};

static void start(struct bench *b)
{
    uint64_t address;

    check(cpu_memory_create(1ull << 28, &b->memory), "memory", NULL);
    for (unsigned k = 0; k < 2; k++)
        check(cpu_engine_create(b->memory, k + 1, &b->engine[k]), "engine", NULL);
    for (unsigned k = 0; k < 3; k++) {
        float *f;
        check(cpu_memory_alloc(b->memory, MILLION * sizeof *f, &address), "memory", NULL);
        f = (float *)(uintptr_t)address;
        for (int i = 0; i < MILLION; i++)
            f[i] = (float)(i % 1000) / 500.0f - 1.0f;
        *(k == 0 ? &b->x : k == 1 ? &b->y : &b->z) = f;
    }
}

static struct ptx_module *load(const struct bench *b, const char *name)
{
    static char        text[PTX_BYTES_MAX];
    char               path[512];
    struct ptx_module *m;
    struct problem     why;
    size_t             n;
    FILE              *f;

    snprintf(path, sizeof path, "%s/%s", PTX_FOLDER, name);
    f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    check(ptx_parse((struct span){text, n}, &m, &why), name, &why);
    check(cpu_code_load_as(m, b->by, false, &why), name, &why);
    return m;
}

/* One thread is measured by its CPU time, which other programs on the machine disturb least. */
static uint64_t clock_of(unsigned engine)
{
    return clock_ns(engine == 0 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC);
}

/* The shortest of some runs, in milliseconds. */
static double kernel_ms(const struct bench *b, const struct subject *s, const struct ptx_module *m, unsigned engine)
{
    const struct ptx_function *f = &m->functions[ptx_find_function(m, span_of(s->kernel))];
    _Alignas(16) unsigned char block[128] = {0};
    uint64_t                   values[8] = {0}, best = UINT64_MAX;
    struct problem             why;
    struct cpu_launch          l = {.module = m,
                                    .kernel = f,
                                    .grid = {s->grid[0], s->grid[1], 1},
                                    .block = {s->block[0], s->block[1], 1},
                                    .shared_bytes = s->shared_bytes,
                                    .params = block,
                                    .params_bytes = f->params_bytes,
                                    .deadline_ms = 60000};

    s->params(b, values);
    for (unsigned i = 0; i < f->signature.params_count; i++)
        memcpy(block + f->signature.params[i].offset, &values[i], f->signature.params[i].bytes);
    for (unsigned i = 0; i < b->runs; i++) {
        uint64_t from = clock_of(engine), took;
        check(cpu_engine_run(b->engine[engine], &l, &why), s->kernel, &why);
        took = clock_of(engine) - from;
        best = took < best ? took : best;
    }
    return (double)best / 1e6;
}

/* 0: there is none. */
static double plain_ms(const struct bench *b, const struct subject *s)
{
    uint64_t from = clock_of(0);

    if (!s->plain)
        return 0;
    s->plain(b->x, b->y, b->z);
    return (double)(clock_of(0) - from) / 1e6;
}

struct figures {
    double one, two; /* interpreted, on 1 and 2 threads: milliseconds */
    double compiled_one, compiled_two;
    double compiling;
    double plain;
};

static void say(const struct subject *s, const struct figures *f)
{
    printf("%-18s %6u blocks  interpreted %9.4f %9.4f ms  compiled %9.4f %9.4f ms (%6.2f times; made in %3.0f ms)", s->kernel,
           s->grid[0] * s->grid[1], f->one, f->two, f->compiled_one, f->compiled_two, f->one / f->compiled_one, f->compiling);
    if (s->plain)
        printf("  plain C %9.4f ms  ratio %6.2f %6.2f", f->plain, f->one / f->plain, f->compiled_one / f->plain);
    printf("\n");
}

static void say_json(const struct subject *s, const struct figures *f)
{
    printf("{\"kernel\":\"%s\",\"blocks\":%u,\"one_ms\":%.5f,\"two_ms\":%.5f,\"compiled_one_ms\":%.5f,\"compiled_two_ms\":%.5f,"
           "\"compiling_ms\":%.1f,\"plain_ms\":%.5f}\n",
           s->kernel, s->grid[0] * s->grid[1], f->one, f->two, f->compiled_one, f->compiled_two, f->compiling, f->plain);
}

struct turns {
    unsigned count;
    double   compiled, plain; /* the 10th percentile, in milliseconds */
    double   compiled_middle, plain_middle;
};

/* Compiled code and plain C in turns on one thread, so that both meet the memory in the same state: at least so many times, and for a while. */
static struct turns take_turns(const struct bench *b, const struct subject *s, const struct ptx_module *m, unsigned least, uint64_t ns)
{
    static uint64_t compiled[TURNS_MAX], plain[TURNS_MAX];
    struct bench    once = *b;
    uint64_t        end = clock_of(0) + ns;
    unsigned        n = 0;

    once.runs = 1;
    for (; n < TURNS_MAX && (n < least || clock_of(0) < end); n++) {
        compiled[n] = (uint64_t)(kernel_ms(&once, s, m, 0) * 1e6);
        plain[n] = (uint64_t)(plain_ms(b, s) * 1e6);
    }
    return (struct turns){n, percentile_us(compiled, n, 10) / 1e3, percentile_us(plain, n, 10) / 1e3, percentile_us(compiled, n, 50) / 1e3,
                          percentile_us(plain, n, 50) / 1e3};
}

static void measure(const struct bench *b, const struct subject *s)
{
    struct ptx_module *m = load(b, s->file);
    struct bench       once = *b;
    struct figures     f;
    struct turns       t;
    uint64_t           from;

    once.runs = 1;
    jit_choose(JIT_OFF);
    f.one = kernel_ms(b, s, m, 0);
    f.two = kernel_ms(b, s, m, 1);
    jit_choose(JIT_NOW);
    from = clock_of(0);
    kernel_ms(&once, s, m, 0);
    f.compiling = (double)(clock_of(0) - from) / 1e6;
    t = take_turns(b, s, m, b->runs, TURNS_MS * NS_PER_MS);
    f.compiled_one = t.compiled;
    f.compiled_two = kernel_ms(b, s, m, 1);
    f.compiling -= f.compiling > f.compiled_one ? f.compiled_one : f.compiling;
    f.plain = t.plain;
    if (b->json)
        say_json(s, &f);
    else
        say(s, &f);
    cpu_code_unload(m);
    ptx_module_destroy(m);
}

static void in_turns(const struct bench *b, const struct subject *s)
{
    struct ptx_module *m = load(b, s->file);
    struct bench       once = *b;
    struct turns       t;

    once.runs = 1;
    jit_choose(JIT_NOW);
    kernel_ms(&once, s, m, 0);
    t = take_turns(b, s, m, b->turns, 0);
    printf("%-18s of %u runs each, the 10th percentile: compiled %9.4f ms  plain C %9.4f ms  ratio %6.3f; the median: %9.4f %9.4f ms\n",
           s->kernel, t.count, t.compiled, t.plain, t.compiled / t.plain, t.compiled_middle, t.plain_middle);
    cpu_code_unload(m);
    ptx_module_destroy(m);
}

/* NULL: no such name, or the host cannot run it. */
static const struct interpreter *find_variant(const char *name)
{
    unsigned i = 0;

    while (interpreter_at(i) && strcmp(interpreter_at(i)->name, name) != 0)
        i++;
    return interpreter_at(i);
}

int main(int argc, char **argv)
{
    struct bench b = {.runs = RUNS_DEFAULT, .by = interpreter_best()};
    const char  *only = NULL;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--runs") == 0)
            b.runs = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--turns") == 0)
            b.turns = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--variant") == 0)
            b.by = find_variant(argv[i + 1]);
        else if (strcmp(argv[i], "--format") == 0)
            b.json = strcmp(argv[i + 1], "json") == 0;
        else
            only = argv[i + 1];
    }
    if (!b.by || !b.runs || b.turns > TURNS_MAX) {
        fprintf(stderr, "no such variant on this host, no runs, or more than %d turns\n", TURNS_MAX);
        return EXIT_FAILURE;
    }
    start(&b);
    if (!b.json)
        printf("variant %s\n", b.by->name);
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        if (only && strcmp(only, subjects[i].kernel) != 0)
            continue;
        if (!b.turns)
            measure(&b, &subjects[i]);
        else if (subjects[i].plain)
            in_turns(&b, &subjects[i]);
    }
    cpu_engine_destroy(b.engine[0]);
    cpu_engine_destroy(b.engine[1]);
    cpu_memory_destroy(b.memory);
    return EXIT_SUCCESS;
}
