/* Modules, launches, streams, events and kernel output. */
#include "contract/contract.h"

#include <math.h>

struct vadd_params {
    uint64_t a, b, c;
    uint32_t n;
};

struct add_params {
    uint64_t p;
    uint32_t n, k;
};

static void check_params(struct bench *b, const struct kernel_desc *k, const uint32_t expected[][2], uint32_t count)
{
    CHECK(k->params_count == count, "%s has %u parameters", k->name, k->params_count);
    for (uint32_t i = 0; i < count; i++)
        CHECK(k->params[i].offset == expected[i][0] && k->params[i].size == expected[i][1], "%s parameter %u: offset %u size %u", k->name,
              i, k->params[i].offset, k->params[i].size);
    (void)b;
}

void case_kernel_table(struct bench *b)
{
    static const uint32_t      vadd[][2] = {{0, 8}, {8, 8}, {16, 8}, {24, 4}};
    static const uint32_t      layout[][2] = {{0, 1}, {8, 8}, {16, 24}, {40, 2}, {48, 8}, {56, 8}};
    struct device_module      *m = load(b, b->images->kernels);
    const struct kernel_table *t = b->ops->module_table(m);
    int                        v = kernel_table_find(t, span_of("vadd")), l = kernel_table_find(t, span_of("layout")),
        n = kernel_table_find(t, span_of("nothing"));

    CHECK(t->kernels_count == b->images->kernels_count, "%u kernels", t->kernels_count);
    CHECK(v >= 0 && l >= 0 && n >= 0, "a kernel is missing");
    check_params(b, &t->kernels[v], vadd, 4);
    CHECK(t->kernels[v].params_bytes == 28, "vadd takes %u bytes", t->kernels[v].params_bytes);
    check_params(b, &t->kernels[l], layout, 6);
    check_params(b, &t->kernels[n], NULL, 0);
    CHECK(t->kernels[v].max_threads >= 256, "max_threads %u", t->kernels[v].max_threads);
    if (is_cuda(b))
        CHECK(t->kernels[v].registers > 0, "registers");
    b->ops->module_unload(b->d, m);
    b->ops->module_unload(b->d, NULL);
}

static void refuse(struct bench *b, const char *image, size_t bytes, const char *what)
{
    struct device_module *m = NULL;
    enum status           st = b->ops->module_load(b->d, image, bytes, &m, &b->why);

    CHECK(st == STATUS_MODULE_INVALID && !m, "%s: %s", what, status_code(st));
    CHECK(b->why.status == st && b->why.detail[0], "%s: no reason given", what);
}

void case_bad_images(struct bench *b)
{
    static const char wrong[] =
        ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n    bogus.u32 %r1, %r2;\n    ret;\n}\n";
    static const char elf[64] = "\177ELF\2\1\1";
    char             *cut = calloc(1, b->images->kernels.bytes + 1);

    refuse(b, "", 0, "nothing");
    refuse(b, "this is no program", 18, "prose");
    refuse(b, elf, sizeof elf, "an empty ELF file");
    refuse(b, wrong, sizeof wrong - 1, "an unknown instruction");
    CHECK(is_vulkan(b) || is_hip(b) || strstr(b->why.detail, "line 6") || strstr(b->why.detail, ":6"), "the line is missing: %s",
          b->why.detail);
    fprintf(stderr, "    %s\n", b->why.detail);
    memcpy(cut, b->images->kernels.data, b->images->kernels.bytes / 2);
    refuse(b, cut, b->images->kernels.bytes / 2, "half a file");
    free(cut);
    b->ops->module_unload(b->d, load(b, b->images->kernels));
}

static void vadd(struct bench *b, struct device_module *m, uint32_t n, uint32_t block)
{
    size_t               bytes = n * sizeof(float);
    float               *x = malloc(bytes), *y = malloc(bytes), *z = calloc(1, bytes);
    uint64_t             dx = allocate(b, bytes), dy = allocate(b, bytes), dz = allocate(b, bytes);
    struct vadd_params   p = {dx, dy, dz, n};
    struct device_launch l = launch_of(b, m, "vadd", &p, 28, (n + block - 1) / block, block);

    for (uint32_t i = 0; i < n; i++) {
        x[i] = (float)sin(i * 0.37) * powf(2, (int)(i % 60) - 30);
        y[i] = (float)cos(i * 0.11) * powf(2, (int)(i % 37) - 18);
    }
    write_all(b, dx, x, bytes);
    write_all(b, dy, y, bytes);
    OK(b->ops->launch(b->d, NULL, &l, &b->why));
    memset(&p, 0xff, sizeof p); /* parameters were copied before launch() returned */
    read_all(b, z, dz, bytes);
    for (uint32_t i = 0; i < n; i++) {
        float sum = x[i] + y[i];
        CHECK(memcmp(&sum, &z[i], sizeof sum) == 0, "element %u: %a + %a = %a", i, (double)x[i], (double)y[i], (double)z[i]);
    }
    OK(b->ops->mem_free(b->d, dx));
    OK(b->ops->mem_free(b->d, dy));
    OK(b->ops->mem_free(b->d, dz));
    free(x);
    free(y);
    free(z);
}

void case_vadd_bit_exact(struct bench *b)
{
    struct device_module *m = load(b, b->images->kernels);

    vadd(b, m, 1, 1);
    vadd(b, m, 1000, 37);
    vadd(b, m, 100003, 256);
}

void case_parameters_arrive(struct bench *b)
{
    struct {
        uint8_t  a;
        uint64_t b;
        uint64_t s[3];
        uint16_t c;
        double   d;
        uint64_t out;
    } p = {0xab, 0x123456789abcdef0, {1, UINT64_MAX, 3}, 0xbeef, -1.5e300, 0};
    struct device_module *m = load(b, b->images->kernels);
    uint64_t              got[7];
    struct device_launch  l;

    static_assert(sizeof p == 64, "as the kernel lays it out");
    p.out = allocate(b, sizeof got);
    l = launch_of(b, m, "layout", &p, sizeof p, 1, 1);
    OK(b->ops->launch(b->d, NULL, &l, &b->why));
    read_all(b, got, p.out, sizeof got);
    CHECK(got[0] == p.a && got[1] == p.b && memcmp(&got[2], p.s, sizeof p.s) == 0 && got[5] == p.c && memcmp(&got[6], &p.d, 8) == 0,
          "a parameter is wrong");
}

/* A register addresses them, as in a loop over an array that is a parameter. */
void case_large_parameters_arrive(struct bench *b)
{
    enum { WORDS = 8000, THREADS = 1000, STEP = 7 };
    static struct {
        uint64_t out;
        uint32_t words[WORDS];
    } p;
    static uint32_t       got[THREADS];
    struct device_module *m;
    struct device_launch  l;

    if (!b->images->large.bytes)
        contract_skip("this device takes no such parameters");
    m = load(b, b->images->large);
    CHECK(b->ops->module_table(m)->kernels[0].params_bytes == sizeof p, "%u bytes", b->ops->module_table(m)->kernels[0].params_bytes);
    p.out = allocate(b, sizeof got);
    for (uint32_t i = 0; i < WORDS; i++)
        p.words[i] = i * 2654435761u;
    l = launch_of(b, m, "pick", &p, sizeof p, 1, THREADS);
    OK(b->ops->launch(b->d, NULL, &l, &b->why));
    memset(p.words, 0, sizeof p.words); /* they were copied */
    read_all(b, got, p.out, sizeof got);
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(got[i] == STEP * i * 2654435761u, "element %u is %u", i, got[i]);
}

void case_stream_order(struct bench *b)
{
    enum { N = 10000, LAUNCHES = 20 };
    struct device_module *m = load(b, b->images->kernels);
    struct add_params     p = {allocate(b, N * 4), N, 0};
    static uint32_t       got[N];
    uint32_t              expected = 1;

    OK(b->ops->mem_fill(b->d, NULL, p.p, 1, 4, N));
    for (p.k = 0; p.k < LAUNCHES; p.k++) {
        struct device_launch l = launch_of(b, m, "add", &p, sizeof p, (N + 127) / 128, 128);

        OK(b->ops->launch(b->d, NULL, &l, &b->why));
        expected = expected * 2 + p.k;
    }
    read_all(b, got, p.p, sizeof got);
    for (int i = 0; i < N; i++)
        CHECK(got[i] == expected, "element %d is %u, not %u", i, got[i], expected);
}

void case_several_streams(struct bench *b)
{
    enum { STREAMS = 8, N = 5000 };
    struct device_module *m = load(b, b->images->kernels);
    struct device_stream *s[STREAMS];
    struct add_params     p[STREAMS];
    static uint32_t       got[STREAMS][N];

    for (uint32_t i = 0; i < STREAMS; i++) {
        OK(b->ops->stream_create(b->d, &s[i]));
        p[i] = (struct add_params){allocate(b, N * 4), N, i};
        OK(b->ops->mem_fill(b->d, s[i], p[i].p, i, 4, N));
    }
    for (int round = 0; round < 10; round++)
        for (uint32_t i = 0; i < STREAMS; i++) {
            struct device_launch l = launch_of(b, m, "add", &p[i], sizeof p[i], (N + 127) / 128, 128);
            OK(b->ops->launch(b->d, s[i], &l, &b->why));
        }
    for (uint32_t i = 0; i < STREAMS; i++) {
        OK(b->ops->mem_read(b->d, s[i], got[i], p[i].p, N * 4));
        OK(await(b, s[i]));
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        uint32_t expected = i;

        for (int round = 0; round < 10; round++)
            expected = expected * 2 + i;
        CHECK(got[i][0] == expected && got[i][N - 1] == expected, "stream %u", i);
        b->ops->stream_destroy(b->d, s[i]);
    }
}

void case_events_and_elapsed(struct bench *b)
{
    enum { N = 1 << 20 };
    struct device_module *m = load(b, b->images->kernels);
    struct add_params     p = {allocate(b, N * 4), N, 1};
    struct device_launch  l = launch_of(b, m, "add", &p, sizeof p, N / 256, 256);
    struct device_event  *from, *to;
    float                 us = -1;

    OK(b->ops->mem_fill(b->d, NULL, p.p, 0, 4, N));
    OK(b->ops->event_create(b->d, &from));
    OK(b->ops->event_create(b->d, &to));
    for (int round = 0; round < 3; round++) { /* recording again re-arms */
        OK(b->ops->event_record(b->d, NULL, from));
        OK(b->ops->launch(b->d, NULL, &l, &b->why));
        OK(b->ops->event_record(b->d, NULL, to));
        OK(await(b, NULL));
        OK(b->ops->event_query(b->d, from, &b->why));
        OK(b->ops->event_query(b->d, to, &b->why));
        OK(b->ops->event_elapsed(b->d, from, to, &us));
        CHECK(us > 0 && us < 1e7f, "%f us", (double)us);
    }
    b->ops->event_destroy(b->d, from);
    b->ops->event_destroy(b->d, to);
    b->ops->event_destroy(b->d, NULL);
}

void case_grid_and_block_corners(struct bench *b)
{
    static const uint32_t shapes[][6] = {{1, 1, 1, 1, 1, 1}, {3, 5, 7, 8, 4, 2}, {65, 1, 3, 1, 16, 16}, {2, 300, 2, 33, 1, 1}};
    struct device_module *m = load(b, b->images->kernels);
    uint64_t              out = allocate(b, 8);

    for (size_t i = 0; i < COUNT(shapes); i++) {
        struct device_launch l = launch_of(b, m, "corners", &out, sizeof out, 1, 1);
        const uint32_t      *n = shapes[i];
        uint32_t             got[2];

        memcpy(l.grid, n, sizeof l.grid);
        memcpy(l.block, n + 3, sizeof l.block);
        OK(b->ops->mem_fill(b->d, NULL, out, 0, 4, 2));
        OK(b->ops->launch(b->d, NULL, &l, &b->why));
        read_all(b, got, out, sizeof got);
        CHECK(got[0] == n[3] * n[4], "shape %zu: the last corner has %u threads", i, got[0]);
        CHECK(got[1] == n[0] * n[1] * n[2] * n[3] * n[4] * n[5], "shape %zu: %u threads", i, got[1]);
    }
}

static void reverse(struct bench *b, struct device_module *m, uint32_t words)
{
    struct {
        uint64_t out;
        uint32_t n;
    } p = {allocate(b, words * 4), words};
    struct device_launch l = launch_of(b, m, "reverse", &p, 12, 1, 128);
    uint32_t            *got = malloc(words * 4);

    l.shared_bytes = words * 4;
    OK(b->ops->launch(b->d, NULL, &l, &b->why));
    read_all(b, got, p.out, words * 4);
    for (uint32_t i = 0; i < words; i++)
        CHECK(got[i] == words - 1 - i, "word %u of %u", i, words);
    free(got);
}

void case_dynamic_shared(struct bench *b)
{
    struct device_module      *m;
    const struct kernel_table *t;
    uint32_t                   most;

    need(b, "dynamic_shared_memory");
    m = load(b, b->images->kernels);
    t = b->ops->module_table(m);
    most = t->kernels[kernel_table_find(t, span_of("reverse"))].max_dynamic_shared_bytes;
    CHECK(most >= 48 * 1024, "at most %u bytes", most);
    reverse(b, m, 32);
    reverse(b, m, 48 * 1024 / 4);
    reverse(b, m, most / 4); /* more than 48 KiB must be requested from some devices */
    reverse(b, m, 1000);
}

void case_module_globals_persist(struct bench *b)
{
    struct device_module *m, *other;
    uint64_t              out = allocate(b, 4);
    uint32_t              got;

    need(b, "globals");
    m = load(b, b->images->kernels);
    other = load(b, b->images->kernels);
    for (uint32_t i = 0; i < 3; i++) {
        struct device_launch l = launch_of(b, m, "count", &out, sizeof out, 1, 1);
        OK(b->ops->launch(b->d, NULL, &l, &b->why));
        read_all(b, &got, out, sizeof got);
        CHECK(got == i, "the counter stood at %u, not %u", got, i);
    }
    struct device_launch l = launch_of(b, other, "count", &out, sizeof out, 1, 1);
    OK(b->ops->launch(b->d, NULL, &l, &b->why));
    read_all(b, &got, out, sizeof got);
    CHECK(got == 0, "two modules share a variable");
}

static void refuse_launch(struct bench *b, struct device_launch l, enum status expected, const char *what)
{
    enum status st = b->ops->launch(b->d, NULL, &l, &b->why);

    CHECK(st == expected, "%s: %s", what, status_code(st));
    CHECK(b->why.status == expected && b->why.detail[0], "%s: no reason given", what);
}

void case_launch_limits(struct bench *b)
{
    static struct device_info info;
    struct device_module     *m = load(b, b->images->kernels);
    uint64_t                  out = allocate(b, 8);
    struct device_launch      good = launch_of(b, m, "corners", &out, sizeof out, 1, 32), l;

    OK(b->ops->info(b->d, &info));
    for (int i = 0; i < 3; i++) {
        l = good, l.grid[i] = 0;
        refuse_launch(b, l, STATUS_LAUNCH_CONFIG_INVALID, "an empty grid");
        l = good, l.block[i] = 0;
        refuse_launch(b, l, STATUS_LAUNCH_CONFIG_INVALID, "an empty block");
        if (info.max_grid[i] < UINT32_MAX) {
            l = good, l.grid[i] = info.max_grid[i] + 1;
            refuse_launch(b, l, STATUS_LAUNCH_CONFIG_INVALID, "a grid that is too long");
        }
        l = good, l.block[i] = info.max_block[i] + 1;
        refuse_launch(b, l, STATUS_LAUNCH_CONFIG_INVALID, "a block that is too long");
    }
    l = good, l.block[0] = info.max_threads_per_block, l.block[1] = 2;
    refuse_launch(b, l, STATUS_LAUNCH_CONFIG_INVALID, "too many threads");
    l = good, l.shared_bytes = UINT32_MAX / 2;
    refuse_launch(b, l, STATUS_LAUNCH_CONFIG_INVALID, "too much shared memory");
    OK(b->ops->mem_fill(b->d, NULL, out, 0, 4, 2));
    OK(b->ops->launch(b->d, NULL, &good, &b->why)); /* the context is still usable */
    OK(await(b, NULL));
}

void case_best_block(struct bench *b)
{
    struct device_module      *m = load(b, b->images->kernels);
    const struct kernel_table *t = b->ops->module_table(m);

    for (unsigned k = 0; k < t->kernels_count; k++) {
        uint32_t threads = 0;

        OK(b->ops->best_block(b->d, m, k, 0, &threads));
        CHECK(threads >= 1 && threads <= t->kernels[k].max_threads, "%u threads", threads);
    }
}

void case_printf_is_captured(struct bench *b)
{
    struct device_module *m;
    struct device_stream *s;
    struct buf            out;

    need(b, "printf");
    m = load(b, b->images->print);
    buf_init(&out, 1000);
    OK(b->ops->stream_create(b->d, &s));
    for (uint32_t n = 41; n < 43; n++) {
        struct device_launch l = launch_of(b, m, "hello", &n, sizeof n, 1, 64);
        OK(b->ops->launch(b->d, s, &l, &b->why));
    }
    OK(await(b, s));
    OK(b->ops->take_output(b->d, s, &out));
    CHECK(out.data && strcmp(out.data, "hello 41\nhello 42\n") == 0, "got \"%s\"", out.data ? out.data : "");
    OK(b->ops->take_output(b->d, s, &out));
    CHECK(out.bytes == 18, "given twice");
    buf_finish(&out);
}

void case_reload_many_times(struct bench *b)
{
    for (int i = 0; i < 10; i++) {
        struct device_module *m = load(b, b->images->kernels);

        vadd(b, m, 100, 32);
        b->ops->module_unload(b->d, m);
    }
}

/* Buffers that are bound: by binding, within their bounds, and only where there is memory. */
void case_bound_buffers(struct bench *b)
{
    enum { N = 100, BEYOND = 28, THREADS = 32 };
    struct {
        uint64_t from, to;
        uint32_t k;
    } p = {allocate(b, 4 * N), allocate(b, 4 * N), 5};
    struct device_module *m;
    struct device_launch  l;
    uint32_t              words[N], behind = allocate(b, 256) != 0;

    if (!is_vulkan(b))
        contract_skip("kernels of this device take addresses");
    m = load(b, b->images->kernels);
    l = launch_of(b, m, "bound", &p, 20, (N + BEYOND) / THREADS, THREADS);
    for (uint32_t i = 0; i < N; i++)
        words[i] = i * i;
    write_all(b, p.from, words, sizeof words);
    OK(b->ops->mem_fill(b->d, NULL, p.to, 0, 4, N));
    OK(b->ops->launch(b->d, NULL, &l, &b->why)); /* the last threads write behind the buffer */
    read_all(b, words, p.to, sizeof words);
    for (uint32_t i = 0; i < N; i++)
        CHECK(words[i] == i * i + 5 + (i == 0 ? N : 0) && behind, "element %u is %u", i, words[i]);
    p.from += 4; /* not aligned */
    refuse_launch(b, l, STATUS_ARGUMENT_MISMATCH, "a buffer that begins where none may");
    p.from = 0x10;
    refuse_launch(b, l, STATUS_ARGUMENT_MISMATCH, "no buffer");
    p.from = p.to + 4 * N;
    refuse_launch(b, l, STATUS_ARGUMENT_MISMATCH, "an address behind a buffer");
    p.from = p.to;
    l.params_bytes -= 4;
    refuse_launch(b, l, STATUS_ARGUMENT_MISMATCH, "parameters that are too short");
}

/* More sizes of a workgroup than a backend keeps code for, one after the other and in a graph. */
void case_many_block_sizes(struct bench *b)
{
    enum { SIZES = 40 };
    struct device_module *m = load(b, b->images->kernels);
    uint64_t              out = allocate(b, 8);
    struct device_launch  l[SIZES];
    struct device_graph  *g;
    uint32_t              got[2], threads = 0;

    OK(b->ops->mem_fill(b->d, NULL, out, 0, 4, 2));
    for (uint32_t i = 0; i < SIZES; i++) {
        l[i] = launch_of(b, m, "corners", &out, sizeof out, 3, i + 1);
        OK(b->ops->launch(b->d, NULL, &l[i], &b->why));
        threads += 3 * (i + 1);
    }
    OK(b->ops->graph_create(b->d, l, SIZES, &g, &b->why));
    for (int run = 0; run < 3; run++)
        OK(b->ops->graph_run(b->d, NULL, g, &b->why));
    read_all(b, got, out, sizeof got);
    CHECK(got[1] == 4 * threads, "%u threads, not %u", got[1], 4 * threads);
    b->ops->graph_destroy(b->d, g);
}

/* Loops take as many turns as they say. */
void case_long_loops(struct bench *b)
{
    static const uint32_t turns[][2] = {{1, 60000}, {1, 200000}, {300, 300}, {1000, 1000}};
    struct {
        uint64_t p;
        uint32_t n, m;
    } p = {allocate(b, 8), 0, 0};
    struct device_module *m;
    uint32_t              got;

    if (!is_vulkan(b))
        contract_skip("this is about drivers that end loops early");
    m = load(b, b->images->kernels);
    for (size_t i = 0; i < (can(b, "long_loops") ? COUNT(turns) : 1); i++) {
        struct device_launch l = launch_of(b, m, "loops", &p, sizeof p, 1, 1);

        p.n = turns[i][0];
        p.m = turns[i][1];
        OK(b->ops->mem_fill(b->d, NULL, p.p, 1, 4, 2));
        OK(b->ops->launch(b->d, NULL, &l, &b->why));
        read_all(b, &got, p.p, sizeof got);
        CHECK(got == p.n * p.m, "%u turns of %u", got, p.n * p.m);
    }
}
