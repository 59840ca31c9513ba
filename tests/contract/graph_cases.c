/* The parts of batches: launches between events, streams that wait for each other, marks, and graphs. */
#include "contract/contract.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

struct add_params {
    uint64_t p;
    uint32_t n, k;
};

void case_launch_between_events(struct bench *b)
{
    enum { N = 1 << 18 };
    struct device_module *m = load(b, b->images->kernels);
    struct add_params     p = {allocate(b, N * 4), N, 1};
    struct device_launch  l = launch_of(b, m, "add", &p, sizeof p, N / 256, 256);
    float                 us = -1;

    OK(b->ops->mem_fill(b->d, NULL, p.p, 0, 4, N));
    OK(b->ops->event_create(b->d, &l.before));
    OK(b->ops->event_create(b->d, &l.after));
    for (int round = 0; round < 3; round++) {
        OK(b->ops->launch(b->d, NULL, &l, &b->why));
        OK(await(b, NULL));
        OK(b->ops->event_query(b->d, l.before, &b->why));
        OK(b->ops->event_query(b->d, l.after, &b->why));
        OK(b->ops->event_elapsed(b->d, l.before, l.after, &us));
        CHECK(us >= 0 && us < 1e7f, "%f us", (double)us);
    }
    b->ops->event_destroy(b->d, l.before);
    b->ops->event_destroy(b->d, l.after);
}

enum { WORDS = 1 << 18 };

static void expect_words(struct bench *b, uint64_t at, uint32_t expected)
{
    static uint32_t got[WORDS];

    read_all(b, got, at, sizeof got);
    for (int i = 0; i < WORDS; i++)
        CHECK(got[i] == expected, "element %d is %u, not %u", i, got[i], expected);
}

void case_launch_before_an_event(struct bench *b)
{
    struct device_module *m = load(b, b->images->kernels);
    struct add_params     p = {allocate(b, WORDS * 4), WORDS, 1};
    struct device_launch  l = launch_of(b, m, "add", &p, sizeof p, WORDS / 256, 256);
    enum status           st;

    OK(b->ops->mem_fill(b->d, NULL, p.p, 0, 4, WORDS));
    OK(b->ops->event_create(b->d, &l.after));
    for (int round = 0; round < 3; round++) { /* recording again re-arms */
        OK(b->ops->launch(b->d, NULL, &l, &b->why));
        while ((st = b->ops->event_query(b->d, l.after, &b->why)) == STATUS_PENDING)
            sched_yield();
        OK(st);
    }
    b->ops->event_destroy(b->d, l.after);
    expect_words(b, p.p, 7);
}

void case_stream_is_asked(struct bench *b)
{
    struct device_module *m;
    struct device_launch  l;
    struct add_params     p;
    enum status           st;

    if (!b->ops->stream_query)
        contract_skip("this backend records events");
    m = load(b, b->images->kernels);
    p = (struct add_params){allocate(b, WORDS * 4), WORDS, 1};
    l = launch_of(b, m, "add", &p, sizeof p, WORDS / 256, 256);
    OK(b->ops->mem_fill(b->d, NULL, p.p, 0, 4, WORDS));
    for (int round = 0; round < 3; round++) {
        OK(b->ops->launch(b->d, NULL, &l, &b->why));
        while ((st = b->ops->stream_query(b->d, NULL, &b->why)) == STATUS_PENDING)
            sched_yield();
        OK(st);
    }
    expect_words(b, p.p, 7);
}

/* Two streams in turn on the same memory: only the events between them give the result of this order. */
void case_streams_wait_for_events(struct bench *b)
{
    enum { N = 20000, ROUNDS = 12 };
    struct device_module *m = load(b, b->images->kernels);
    struct add_params     p = {allocate(b, N * 4), N, 0};
    struct device_stream *s[2];
    struct device_event  *e;
    static uint32_t       got[N];
    uint32_t              expected = 1;

    OK(b->ops->stream_create(b->d, &s[0]));
    OK(b->ops->stream_create(b->d, &s[1]));
    OK(b->ops->event_create(b->d, &e));
    OK(b->ops->mem_fill(b->d, s[1], p.p, 1, 4, N));
    for (p.k = 0; p.k < ROUNDS; p.k++) {
        struct device_launch l = launch_of(b, m, "add", &p, sizeof p, (N + 127) / 128, 128);

        OK(b->ops->event_record(b->d, s[(p.k + 1) % 2], e));
        OK(b->ops->stream_wait(b->d, s[p.k % 2], e));
        OK(b->ops->launch(b->d, s[p.k % 2], &l, &b->why));
        expected = expected * 2 + p.k;
    }
    OK(b->ops->event_record(b->d, s[(ROUNDS - 1) % 2], e));
    OK(b->ops->stream_wait(b->d, NULL, e));
    read_all(b, got, p.p, sizeof got);
    CHECK(got[0] == expected && got[N - 1] == expected, "%u and %u, not %u", got[0], got[N - 1], expected);
    b->ops->event_destroy(b->d, e);
    b->ops->stream_destroy(b->d, s[0]);
    b->ops->stream_destroy(b->d, s[1]);
}

/* Queues three launches and a faulty one, each with an event, and waits for the fault. */
static void run_into_fault(struct bench *b, _Atomic uint32_t *word, struct device_event *e[4])
{
    struct device_module *m = load(b, b->images->kernels);
    struct device_module *faults = load(b, b->images->faults);
    uint64_t              nowhere = 0x10;
    struct device_launch  bad = launch_of(b, faults, "illegal", &nowhere, sizeof nowhere, 1, 32);
    struct device_launch  good = launch_of(b, m, "nothing", NULL, 0, 1, 32);
    enum status           st = STATUS_OK;

    OK(await(b, NULL));
    for (uint32_t i = 0; i < 4 && !st; i++) {
        OK(b->ops->event_create(b->d, &e[i]));
        good.mark = bad.mark = (struct device_mark){word, i + 1};
        st = b->ops->launch(b->d, NULL, i == 3 ? &bad : &good, &b->why);
        if (!st)
            st = b->ops->event_record(b->d, NULL, e[i]);
    }
    while (!st || st == STATUS_PENDING) {
        sched_yield();
        st = b->ops->event_query(b->d, e[3], &b->why);
    }
    CHECK(st == STATUS_KERNEL_FAULT, "%s", status_code(st));
}

void case_marks_outlive_a_fault(struct bench *b)
{
    size_t               page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char       *memory = aligned_alloc(page, page);
    _Atomic uint32_t    *word = (_Atomic uint32_t *)(void *)(memory + 64);
    struct device_event *e[4];

    atomic_store(word, 99);
    if (is_hip(b))
        contract_skip("a fault ends the process");
    if (is_vulkan(b))
        contract_skip("a lost device does not tell what was done before");
    if (!b->ops->mark) {
        run_into_fault(b, NULL, e);
        for (int i = 0; i < 3; i++)
            CHECK(b->ops->event_query(b->d, e[i], &b->why) == STATUS_OK, "an event before the fault is not done any more");
        _exit(EXIT_SUCCESS);
    }
    CHECK(b->ops->mark(b->d, NULL, (struct device_mark){word, 7}) == STATUS_NOT_IMPLEMENTED, "a mark outside registered memory");
    OK(b->ops->host_register(b->d, memory, page));
    OK(b->ops->mark(b->d, NULL, (struct device_mark){word, 7}));
    OK(await(b, NULL));
    CHECK(atomic_load(word) == 7, "%u", atomic_load(word));
    run_into_fault(b, word, e);
    CHECK(atomic_load(word) == 3, "%u launches are marked as done, not 3", atomic_load(word));
    _exit(EXIT_SUCCESS);
}

/* Round by round with another module, stream, grid, kernel and argument; half-way one of the modules goes. */
void case_launches_with_marks(struct bench *b)
{
    enum { ROUNDS = 40, N = 1000, PAGE = 65536 };
    static _Alignas(PAGE) _Atomic uint32_t words[PAGE / sizeof(uint32_t)]; /* at least a page, as long as the device is open */
    struct device_module                  *m[2] = {load(b, b->images->kernels), load(b, b->images->kernels)};
    struct device_stream                  *s[2] = {NULL};
    struct add_params                      p = {allocate(b, N * 4), N, 1};
    struct device_launch                   l = launch_of(b, m[0], "nothing", NULL, 0, 1, 32);
    uint32_t                               got[N], sum = 0;

    if (!b->ops->mark)
        contract_skip("the device writes no marks");
    l.mark = (struct device_mark){words, 1};
    CHECK(b->ops->launch(b->d, NULL, &l, &b->why) == STATUS_NOT_IMPLEMENTED, "a mark outside registered memory");
    OK(b->ops->host_register(b->d, words, sizeof words));
    OK(b->ops->stream_create(b->d, &s[1]));
    OK(b->ops->mem_fill(b->d, NULL, p.p, 0, 4, N));
    for (uint32_t i = 0; i < ROUNDS; i++) {
        bool adds = i % 5 != 0;

        if (i == ROUNDS / 2)
            b->ops->module_unload(b->d, m[0]);
        p.k = i;
        l = launch_of(b, m[i < ROUNDS / 2 ? i / 2 % 2 : 1], adds ? "add" : "nothing", adds ? &p : NULL, adds ? sizeof p : 0, N / 32 + 1 + i,
                      32);
        l.mark = (struct device_mark){&words[i % 2], i + 1};
        OK(b->ops->launch(b->d, s[i % 2], &l, &b->why));
        while (atomic_load(&words[i % 2]) != i + 1)
            sched_yield();
        sum = adds ? sum * 2 + i : sum;
        read_all(b, got, p.p, sizeof got);
        CHECK(got[0] == sum && got[N - 1] == sum, "round %u: %u and %u, not %u", i, got[0], got[N - 1], sum);
    }
    b->ops->stream_destroy(b->d, s[1]);
}

enum { GRAPH_N = 4000, GRAPH_LAUNCHES = 10 };

static struct device_launch add_of(struct bench *b, struct device_module *m, const struct add_params *p)
{
    return launch_of(b, m, "add", p, sizeof *p, (GRAPH_N + 127) / 128, 128);
}

/* p[i] has k = i. */
static struct device_graph *adds(struct bench *b, struct device_module *m, struct add_params p[GRAPH_LAUNCHES], uint64_t at)
{
    struct device_launch l[GRAPH_LAUNCHES];
    struct device_graph *g = NULL;

    for (uint32_t i = 0; i < GRAPH_LAUNCHES; i++) {
        p[i] = (struct add_params){at, GRAPH_N, i};
        l[i] = add_of(b, m, &p[i]);
    }
    OK(b->ops->graph_create(b->d, l, GRAPH_LAUNCHES, &g, &b->why));
    return g;
}

static void expect_all(struct bench *b, uint64_t at, uint32_t expected)
{
    static uint32_t got[GRAPH_N];

    read_all(b, got, at, sizeof got);
    for (int i = 0; i < GRAPH_N; i++)
        CHECK(got[i] == expected, "element %d is %u, not %u", i, got[i], expected);
}

void case_graph_runs_in_order(struct bench *b)
{
    struct device_module *m = load(b, b->images->kernels);
    struct add_params     p[GRAPH_LAUNCHES];
    uint64_t              at = allocate(b, GRAPH_N * 4);
    struct device_graph  *g = adds(b, m, p, at);
    uint32_t              expected = 1;

    memset(p, 0xee, sizeof p); /* they were copied */
    OK(b->ops->mem_fill(b->d, NULL, at, 1, 4, GRAPH_N));
    for (int run = 0; run < 3; run++) {
        OK(b->ops->graph_run(b->d, NULL, g, &b->why));
        for (uint32_t i = 0; i < GRAPH_LAUNCHES; i++)
            expected = expected * 2 + i;
    }
    expect_all(b, at, expected);
    b->ops->graph_destroy(b->d, g);
    b->ops->graph_destroy(b->d, NULL);
}

/* Changes apply to later runs, and leave the other launches unchanged. */
void case_graph_with_changed_launches(struct bench *b)
{
    struct device_module *m = load(b, b->images->kernels);
    struct add_params     p[GRAPH_LAUNCHES];
    uint64_t              at = allocate(b, GRAPH_N * 4);
    struct device_graph  *g = adds(b, m, p, at);
    uint32_t              expected = 1;

    OK(b->ops->mem_fill(b->d, NULL, at, 1, 4, GRAPH_N));
    for (uint32_t run = 0; run < 3; run++) {
        struct add_params    other = {at, GRAPH_N, 100 + run};
        struct device_launch l = add_of(b, m, &other);

        OK(b->ops->graph_run(b->d, NULL, g, &b->why));
        OK(b->ops->graph_set(b->d, g, 4, &l, &b->why));
        for (uint32_t i = 0; i < GRAPH_LAUNCHES; i++)
            expected = expected * 2 + (i == 4 && run ? 99 + run : i);
    }
    expect_all(b, at, expected);
    b->ops->graph_destroy(b->d, g);
}

void case_graph_refuses_what_a_launch_may_not(struct bench *b)
{
    struct device_module *m = load(b, b->images->kernels);
    struct add_params     p[GRAPH_LAUNCHES], one = {allocate(b, GRAPH_N * 4), GRAPH_N, 5};
    struct device_graph  *g = adds(b, m, p, one.p), *none = NULL;
    struct device_launch  l[2] = {add_of(b, m, &one), add_of(b, m, &one)};
    uint32_t              expected = 1;

    l[1].block[0] = 4096;
    CHECK(b->ops->graph_create(b->d, l, 2, &none, &b->why) == STATUS_LAUNCH_CONFIG_INVALID && !none, "a block that is too large");
    CHECK(b->ops->graph_set(b->d, g, 0, &l[1], &b->why) == STATUS_LAUNCH_CONFIG_INVALID, "a block that is too large");
    l[1] = l[0];
    l[1].params_bytes -= 4;
    CHECK(b->ops->graph_set(b->d, g, 0, &l[1], &b->why) == STATUS_ARGUMENT_MISMATCH, "parameters that are too short");
    CHECK(b->ops->graph_set(b->d, g, GRAPH_LAUNCHES, &l[0], &b->why), "a place that is not there");
    OK(b->ops->mem_fill(b->d, NULL, one.p, 1, 4, GRAPH_N));
    OK(b->ops->graph_run(b->d, NULL, g, &b->why));
    for (uint32_t i = 0; i < GRAPH_LAUNCHES; i++)
        expected = expected * 2 + i;
    expect_all(b, one.p, expected);
}

void case_graph_fault(struct bench *b)
{
    struct device_module *m = load(b, b->images->kernels);
    struct device_module *faults = load(b, b->images->faults);
    uint64_t              nowhere = 0x10;
    struct device_launch  l[2] = {launch_of(b, m, "nothing", NULL, 0, 1, 32),
                                  launch_of(b, faults, "illegal", &nowhere, sizeof nowhere, 1, 32)};
    struct device_graph  *g = NULL;
    enum status           st;

    OK(await(b, NULL));
    expect_end(b);
    OK(b->ops->graph_create(b->d, l, 2, &g, &b->why));
    st = b->ops->graph_run(b->d, NULL, g, &b->why);
    st = st ? st : await(b, NULL);
    CHECK(st == STATUS_KERNEL_FAULT && b->why.detail[0], "%s %s", status_code(st), b->why.detail);
    CHECK(b->ops->graph_run(b->d, NULL, g, &b->why) == st, "a graph runs in a lost context");
    _exit(EXIT_SUCCESS);
}
