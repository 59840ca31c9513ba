/* Runs every case on every backend that is present, each in a new process, since some lose the context.
 * contract_device [--libcuda PATH] [--libhip PATH of the fake one] [--backend NAME] [--case NAME] */
#include "base/deadline.h"
#include "contract/contract.h"
#include "support/code_object.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name;
    void (*run)(struct bench *b);
} cases[] = {
#define CASE(name) {#name, case_##name},
#include "contract/cases.def"
#undef CASE
};

static const char *libcuda, *libhip;

/* Code objects without code: the fake library knows its kernels by name. */
static const struct code_object_kernel hip_kernels[] = {
#define KERNEL(name, ...) {#name, {__VA_ARGS__}, NULL},
#include "contract/hip/kernels.def"
#undef KERNEL
};
static const struct code_object_kernel hip_faults[] = {
#define KERNEL(name, ...) {#name, {__VA_ARGS__}, NULL},
#include "contract/hip/faults.def"
#undef KERNEL
};

static struct span make_image(const struct code_object_kernel *kernels, size_t count)
{
    char *bytes = calloc(1, CODE_OBJECT_BYTES_MAX);

    return (struct span){bytes, code_object_make("gfx90a", kernels, count, bytes, CODE_OBJECT_BYTES_MAX)};
}

/* The rows of images.def, chosen by what the backend loads. */
static void choose_images(struct bench *b)
{
    static struct images ptx, spirv, amd;

    ptx = (struct images){image_kernels_ptx, image_faults_ptx, image_print_ptx, image_large_ptx, image_textures_ptx, 7};
    spirv = (struct images){.kernels = image_kernels_spv, .faults = image_faults_spv, .kernels_count = 7};
    if (is_hip(b) && libhip)
        amd = (struct images){.kernels = make_image(hip_kernels, COUNT(hip_kernels)),
                              .faults = make_image(hip_faults, COUNT(hip_faults)),
                              .kernels_count = COUNT(hip_kernels)};
    b->images = is_vulkan(b) ? &spirv : is_hip(b) ? &amd : &ptx;
}

/* A device uses standard output while it is open. */
void contract_fail(const char *file, int line, const char *what, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "    %s:%d: %s: ", strrchr(file, '/') ? strrchr(file, '/') + 1 : file, line, what);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(EXIT_FAILURE);
}

void contract_skip(const char *reason)
{
    fprintf(stderr, "    %s\n", reason);
    _exit(EXIT_SKIPPED);
}

enum status await(struct bench *b, struct device_stream *s)
{
    uint64_t    deadline = deadline_after_ms(CONTRACT_WAIT_MS);
    enum status st = b->done ? STATUS_OK : b->ops->event_create(b->d, &b->done);

    if (!st)
        st = b->ops->event_record(b->d, s, b->done);
    if (st && b->done)
        b->ops->event_query(b->d, b->done, &b->why); /* reports how the context was lost */
    while (!st && (st = b->ops->event_query(b->d, b->done, &b->why)) == STATUS_PENDING && deadline_left_ns(deadline)) {
        st = STATUS_OK;
        sched_yield();
    }
    return st;
}

uint64_t allocate(struct bench *b, uint64_t bytes)
{
    uint64_t address = 0;

    OK(b->ops->mem_alloc(b->d, bytes, &address));
    CHECK(address % 256 == 0, "an allocation is not aligned");
    return address;
}

struct device_module *load(struct bench *b, struct span image)
{
    struct device_module *m = NULL;

    OK(b->ops->module_load(b->d, image.data, image.bytes, &m, &b->why));
    return m;
}

bool can(struct bench *b, const char *word)
{
    static struct device_info info;
    struct span               rest;

    OK(b->ops->info(b->d, &info));
    rest = span_of(info.unsupported);
    while (rest.bytes)
        if (span_is(span_cut(&rest, ','), word))
            return false;
    return true;
}

void need(struct bench *b, const char *word)
{
    if (!can(b, word))
        contract_skip("the device says that it has none of this");
}

struct device_launch launch_of(struct bench *b, const struct device_module *m, const char *kernel, const void *params,
                               uint32_t params_bytes, uint32_t grid, uint32_t block)
{
    int k = kernel_table_find(b->ops->module_table(m), span_of(kernel));

    CHECK(k >= 0, "no kernel %s", kernel);
    return (struct device_launch){.module = m,
                                  .kernel = (unsigned)k,
                                  .grid = {grid, 1, 1},
                                  .block = {block, 1, 1},
                                  .params = params,
                                  .params_bytes = params_bytes,
                                  .deadline_ms = CONTRACT_WAIT_MS};
}

void write_all(struct bench *b, uint64_t to, const void *from, size_t bytes)
{
    OK(b->ops->mem_write(b->d, NULL, to, from, bytes));
    OK(await(b, NULL));
}

void read_all(struct bench *b, void *to, uint64_t from, size_t bytes)
{
    OK(b->ops->mem_read(b->d, NULL, to, from, bytes));
    OK(await(b, NULL));
}

bool is_cuda(const struct bench *b)
{
    return strcmp(b->ops->name, "cuda") == 0;
}

bool is_vulkan(const struct bench *b)
{
    return strcmp(b->ops->name, "vulkan") == 0;
}

bool is_hip(const struct bench *b)
{
    return strcmp(b->ops->name, "hip") == 0;
}

/* -1: it did not end in time, or ended by a signal. */
static int wait_for(pid_t child)
{
    uint64_t deadline = deadline_after_ms(CONTRACT_CASE_S * 1000ull);
    int      status = 0;
    pid_t    got;

    while ((got = waitpid(child, &status, WNOHANG)) == 0 && deadline_left_ns(deadline))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    if (got == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return -1;
    }
    return got == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int run_case(const struct bench *b, const char *name)
{
    char *argv[] = {(char *)(uintptr_t)b->self,
                    (char *)(uintptr_t) "--child",
                    (char *)(uintptr_t)b->ops->name,
                    (char *)(uintptr_t)name,
                    (char *)(uintptr_t)(libcuda ? libcuda : ""),
                    (char *)(uintptr_t)(libhip ? libhip : ""),
                    NULL};
    pid_t child = fork();

    if (child == 0) {
        execv(b->self, argv);
        _exit(126);
    }
    return child > 0 ? wait_for(child) : -1;
}

static int run_here(struct bench *b, const char *name)
{
    for (size_t i = 0; i < COUNT(cases); i++)
        if (strcmp(cases[i].name, name) == 0) {
            choose_images(b);
            if (b->ops->prepare)
                b->ops->prepare(true);
            OK(b->ops->open(&b->d, 0, &b->why));
            cases[i].run(b);
            if (b->done)
                b->ops->event_destroy(b->d, b->done);
            b->ops->close(b->d);
            return EXIT_SUCCESS;
        }
    return EXIT_FAILURE;
}

struct tally {
    unsigned passed, failed, skipped;
};

static void run_backend(const struct device_ops *ops, const char *only, const char *self, struct tally *t)
{
    struct bench b = {.ops = ops, .self = self};

    choose_images(&b);
    if (!b.images->kernels.bytes) {
        printf("SKIP %s: the suite has no kernels for it: it was built without their compiler, or has none for real AMD GPUs\n", ops->name);
        t->skipped++;
        return;
    }
    if (ops->count(&b.why) == 0) {
        printf("SKIP %s: %s\n", ops->name, b.why.detail);
        t->skipped++;
        return;
    }
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t began = now_ns();
        int      code;

        if (only && strcmp(only, cases[i].name) != 0)
            continue;
        fflush(stdout);
        code = run_case(&b, cases[i].name);
        printf("%s %s.%s (%.2f s)\n",
               code == 0              ? "PASS"
               : code == EXIT_SKIPPED ? "SKIP"
                                      : "FAIL",
               ops->name, cases[i].name, (double)(now_ns() - began) / 1e9);
        *(code == 0 ? &t->passed : code == EXIT_SKIPPED ? &t->skipped : &t->failed) += 1;
    }
}

static int run_all(const char *backend, const char *only, const char *self)
{
    struct tally             t = {0};
    const struct device_ops *ops;

    for (unsigned i = 0; (ops = device_ops_at(i)); i++)
        if (!backend || strcmp(backend, ops->name) == 0)
            run_backend(ops, only, self, &t);
    printf("%u passed, %u failed, %u skipped\n", t.passed, t.failed, t.skipped);
    return t.failed || !t.passed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static char self[4096];
    const char *backend = NULL;
    const char *only = NULL;
    ssize_t     length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (length <= 0)
        return EXIT_FAILURE;
    if (argc == 6 && strcmp(argv[1], "--child") == 0) {
        struct bench b = {.self = self};

        libcuda = argv[4];
        device_set(SPAN_LITERAL("libcuda"), libcuda);
        libhip = argv[5][0] ? argv[5] : NULL;
        device_set(SPAN_LITERAL("libamdhip64"), libhip);
        b.ops = device_ops_find(span_of(argv[2]));
        return b.ops ? run_here(&b, argv[3]) : EXIT_FAILURE;
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--libcuda") == 0)
            libcuda = argv[i + 1];
        else if (strcmp(argv[i], "--libhip") == 0)
            libhip = argv[i + 1];
        else if (strcmp(argv[i], "--backend") == 0)
            backend = argv[i + 1];
        else if (strcmp(argv[i], "--case") == 0)
            only = argv[i + 1];
    }
    device_set(SPAN_LITERAL("libcuda"), libcuda);
    device_set(SPAN_LITERAL("libamdhip64"), libhip);
    return run_all(backend, only, self);
}
