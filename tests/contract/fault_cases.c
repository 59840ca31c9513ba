/* Kernels that fail: what is reported, and that nobody else notices. Each case ends by leaving the process, as a worker does. */
#include "base/deadline.h"
#include "contract/contract.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

static void ended(int signal)
{
    (void)signal;
    _exit(EXIT_SUCCESS);
}

/* Kernels that are code of this process may end it: a worker's end is how its session learns of the fault. */
void expect_end(struct bench *b)
{
    static struct device_info info;

    OK(b->ops->info(b->d, &info));
    if (is_vulkan(b) && info.on_host)
        signal(SIGSEGV, ended);
}

static enum status run_fault(struct bench *b, const char *kernel, uint64_t argument)
{
    struct device_module *m = load(b, b->images->faults);
    struct device_launch  l = launch_of(b, m, kernel, &argument, sizeof argument, 1, 32);
    enum status           st;

    OK(await(b, NULL)); /* its event must exist before the context is lost */
    expect_end(b);
    st = b->ops->launch(b->d, NULL, &l, &b->why);
    return st ? st : await(b, NULL);
}

/* The codes of cuda; a backend without such codes reports 0. */
static void expect_fault(struct bench *b, const char *kernel, uint64_t argument, int code, int other_code)
{
    enum status st = run_fault(b, kernel, argument);

    fprintf(stderr, "    %s: %s %d %s\n", kernel, status_code(st), b->why.cuda_result, b->why.cuda_name);
    CHECK(st == STATUS_KERNEL_FAULT, "%s %s", status_code(st), b->why.detail);
    CHECK(b->why.status == STATUS_KERNEL_FAULT && b->why.detail[0], "no reason given");
    CHECK(!is_cuda(b) || b->why.cuda_result == code || b->why.cuda_result == other_code, "code %d", b->why.cuda_result);
    CHECK(!is_cuda(b) || strncmp(b->why.cuda_name, "CUDA_ERROR_", 11) == 0, "name %s", b->why.cuda_name);
    _exit(EXIT_SUCCESS);
}

void case_fault_illegal_address(struct bench *b)
{
    expect_fault(b, "illegal", 0x10, 700, 700);
}

void case_fault_misaligned(struct bench *b)
{
    if (is_vulkan(b))
        contract_skip("what a misaligned address does is not said");
    expect_fault(b, "illegal", allocate(b, 64) + 2, 716, 716);
}

void case_fault_trap(struct bench *b)
{
    if (is_vulkan(b))
        contract_skip("there is no trap");
    expect_fault(b, "trap", 0, 719, 715);
}

void case_fault_is_sticky(struct bench *b)
{
    enum status          st = run_fault(b, "illegal", 0x10);
    struct device_event *e = b->done;
    struct device_memory m;
    struct device_launch l = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    struct buf           out;
    uint64_t             a;

    CHECK(st == STATUS_KERNEL_FAULT, "%s", status_code(st));
    CHECK(b->ops->event_query(b->d, e, &b->why) == st, "event_query");
    CHECK(b->ops->mem_alloc(b->d, 16, &a) == st, "mem_alloc");
    CHECK(b->ops->memory(b->d, &m) == st, "memory");
    CHECK(b->ops->mem_fill(b->d, NULL, 256, 0, 1, 1) == st, "mem_fill");
    CHECK(b->ops->event_record(b->d, NULL, e) == st, "event_record");
    CHECK(b->ops->event_query(b->d, e, &b->why) == st && b->why.detail[0], "an event that was not recorded is not the one before");
    (void)l;
    buf_init(&out, 100);
    CHECK(b->ops->take_output(b->d, NULL, &out) == st || is_cuda(b) == false, "take_output");
    _exit(EXIT_SUCCESS);
}

void case_fault_shows_on_the_stream(struct bench *b)
{
    struct device_module *m;
    struct device_launch  l;
    uint64_t              argument = 0x10;
    enum status           st;

    if (!b->ops->stream_query)
        contract_skip("this backend records events");
    m = load(b, b->images->faults);
    l = launch_of(b, m, "illegal", &argument, sizeof argument, 1, 32);
    st = b->ops->launch(b->d, NULL, &l, &b->why);
    while (!st && (st = b->ops->stream_query(b->d, NULL, &b->why)) == STATUS_PENDING)
        st = STATUS_OK;
    CHECK(st == STATUS_KERNEL_FAULT && b->why.cuda_result == 700, "%s %s", status_code(st), b->why.detail);
    _exit(EXIT_SUCCESS);
}

/* A backend that can stop a kernel does so at its deadline. Processes of other backends are killed, so leaving must work at once. */
void case_endless_is_stopped(struct bench *b)
{
    bool                  goes_on = is_cuda(b) || is_vulkan(b) || is_hip(b);
    struct device_module *m = load(b, b->images->faults);
    uint64_t              argument = 0;
    struct device_launch  l = launch_of(b, m, "endless", &argument, sizeof argument, 1, 1);
    uint64_t              deadline = deadline_after_ms(goes_on ? 3000 : 60000);
    struct device_event  *e;
    enum status           st;

    if (is_vulkan(b)) /* a driver may end each thread's loop after some turns */
        l.grid[0] = l.grid[1] = 65535;
    l.deadline_ms = 300;
    OK(b->ops->event_create(b->d, &e));
    OK(b->ops->launch(b->d, NULL, &l, &b->why));
    OK(b->ops->event_record(b->d, NULL, e));
    while ((st = b->ops->event_query(b->d, e, &b->why)) == STATUS_PENDING && deadline_left_ns(deadline))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    fprintf(stderr, "    in the end: %s\n", status_code(st));
    CHECK(goes_on ? st == STATUS_PENDING : st == STATUS_EXECUTION_TIMEOUT, "%s", status_code(st));
    if (goes_on) { /* other backends may go on: nothing here may wait for that kernel */
        struct device_memory now;
        uint64_t             a = allocate(b, 1 << 20);

        OK(b->ops->memory(b->d, &now));
        OK(b->ops->mem_free(b->d, a));
    }
    _exit(EXIT_SUCCESS);
}

/* This process goes on computing while others fault and hang. */
void case_neighbour_survives_fault(struct bench *b)
{
    static const char *const disturbances[] = {"fault_illegal_address", "fault_misaligned", "fault_trap", "endless_is_stopped"};
    enum { N = 100000 };
    struct device_module *m = load(b, b->images->kernels);
    static uint32_t       got[N];
    int                   code;
    struct {
        uint64_t p;
        uint32_t n, k;
    } p = {allocate(b, N * 4), N, 3};

    for (size_t i = 0; i < COUNT(disturbances); i++) {
        struct device_launch l = launch_of(b, m, "add", &p, sizeof p, (N + 255) / 256, 256);

        OK(b->ops->mem_fill(b->d, NULL, p.p, (uint64_t)i, 4, N));
        code = run_case(b, disturbances[i]);
        CHECK(code == 0 || code == EXIT_SKIPPED, "the other process failed");
        OK(b->ops->launch(b->d, NULL, &l, &b->why));
        read_all(b, got, p.p, sizeof got);
        for (int k = 0; k < N; k++)
            CHECK(got[k] == 2 * i + 3, "wrong result beside %s", disturbances[i]);
    }
}
