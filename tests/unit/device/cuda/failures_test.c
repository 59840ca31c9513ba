/* Every driver call fails once, in every way: the status is right, nothing is left behind, later calls are consistent. */
#include "device/cuda/driver.h"
#include "unit/device/cuda/fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct scene {
    struct device        *d;
    struct device_module *m;
    struct device_stream *s;
    struct device_event  *e[2];
    uint64_t              a, b;
    struct buf            output;
    char                  host[64];
};

static enum status run_kernels(struct scene *t)
{
    uint32_t             n = 5;
    struct device_launch hello = fixture_launch(t->m, "hello", &n, sizeof n, 1);
    struct problem       why;
    float                us;
    enum status          st;

    hello.shared_bytes = 60000;
    if ((st = ops->launch(t->d, t->s, &hello, &why)) || (st = ops->event_record(t->d, t->s, t->e[1])) ||
        (st = ops->event_query(t->d, t->e[1], &why)) || (st = ops->event_elapsed(t->d, t->e[0], t->e[1], &us)))
        return st;
    if ((st = ops->best_block(t->d, t->m, 0, 0, &n)))
        return st;
    return ops->take_output(t->d, t->s, &t->output);
}

/* A free under an endless kernel, so that the deferred path is used, too. */
static enum status free_late(struct scene *t)
{
    struct device_launch endless = fixture_launch(t->m, "endless", NULL, 0, 1);
    struct device_memory memory;
    enum status          st = ops->launch(t->d, t->s, &endless, NULL);

    if (!st)
        st = ops->mem_free(t->d, t->b);
    fixture_finish();
    return st ? st : ops->memory(t->d, &memory);
}

/* Exports and imports memory. */
static enum status share(struct scene *t, const struct device_info *info)
{
    static char          host[4096];
    struct device_shared shared;
    int                  fd;
    enum status          st;

    if (!info->sharing)
        return STATUS_OK;
    if ((st = ops->mem_alloc_shared(t->d, 100, -1, 0, &shared)) || (st = ops->mem_export(t->d, shared.address, &fd)))
        return st;
    close(fd);
    if ((st = ops->host_attach(t->d, host, sizeof host)))
        return st;
    ops->host_detach(t->d, host);
    return ops->mem_free(t->d, shared.address);
}

/* Stops at the first failure, and returns it. */
static enum status play(struct scene *t)
{
    static struct device_info info;
    struct problem            why;
    enum status               st;

    if ((st = ops->open(&t->d, 0, &why)) || (st = ops->info(t->d, &info)) || (st = ops->host_register(t->d, t->host, sizeof t->host)))
        return st;
    if ((st = ops->mem_alloc(t->d, 64, &t->a)) || (st = ops->mem_alloc(t->d, 64, &t->b)) || (st = ops->stream_create(t->d, &t->s)))
        return st;
    if ((st = ops->event_create(t->d, &t->e[0])) || (st = ops->event_create(t->d, &t->e[1])) ||
        (st = ops->event_record(t->d, t->s, t->e[0])))
        return st;
    if ((st = ops->mem_write(t->d, t->s, t->a, t->host, 64)) || (st = ops->mem_fill(t->d, t->s, t->a, 1, 1, 3)) ||
        (st = ops->mem_fill(t->d, t->s, t->a, 1, 2, 3)) || (st = ops->mem_fill(t->d, t->s, t->a, 1, 4, 3)) ||
        (st = ops->mem_fill(t->d, t->s, t->a, 1, 8, 3)) || (st = ops->mem_copy(t->d, t->s, t->b, t->a, 64)) ||
        (st = ops->mem_read(t->d, t->s, t->host, t->b, 64)))
        return st;
    if ((st = ops->module_load(t->d, kernels_ptx, strlen(kernels_ptx), &t->m, &why)))
        return st;
    if ((st = share(t, &info)) || (st = run_kernels(t)) || (st = free_late(t)) || (st = ops->mem_trim(t->d)) ||
        (st = ops->mem_keep(t->d, 0)))
        return st;
    return ops->mem_free(t->d, t->a);
}

static bool means_lost(enum status st)
{
    return st == STATUS_KERNEL_FAULT || st == STATUS_DEVICE_ERROR;
}

/* Steps of an allocation, which are retried when memory is short. */
static bool allocates(const char *function)
{
    static const char *const names[] = {"cuMemAllocFromPoolAsync", "cuMemAddressReserve", "cuMemCreate",        "cuMemMap",
                                        "cuMemSetAccess",          "cuMemsetD8Async",     "cuStreamSynchronize"};
    bool                     found = false;

    for (size_t i = 0; i < COUNT(names); i++)
        found = found || strcmp(function, names[i]) == 0;
    return found;
}

/* Other statuses that a failure of the function may lead to. */
static bool tolerated(const char *function, cuda_result r, enum status st)
{
    enum status own = cuda_status(r);

    if (st == own)
        return true;
    if (strncmp(function, "cuModule", 8) == 0 && own == STATUS_INTERNAL && st == STATUS_MODULE_INVALID)
        return true;
    if (strcmp(function, "cuLaunchKernel") == 0 && own == STATUS_INTERNAL && st == STATUS_LAUNCH_CONFIG_INVALID)
        return true;
    if (strcmp(function, "cuFuncGetParamInfo") == 0) /* its failure marks the end of a kernel's parameters */
        return st == STATUS_ARGUMENT_MISMATCH || st == STATUS_OK;
    if (strcmp(function, "cuFuncGetAttribute") == 0)
        return st == STATUS_OK || st == STATUS_LAUNCH_CONFIG_INVALID;
    if (strcmp(function, "cuDeviceGetAttribute") == 0 && st == STATUS_LAUNCH_CONFIG_INVALID)
        return true; /* without the opt-in limit less shared memory is allowed */
    if (strcmp(function, "cuMemGetAllocationGranularity") == 0 || strcmp(function, "cuMemHostUnregister") == 0)
        return st == STATUS_OK;                                /* without it nothing is shared; no error is reported */
    if (strcmp(function, "cuMemHostGetDevicePointer_v2") == 0) /* without that address the device does not mark progress */
        return st == STATUS_OK;
    if (strcmp(function, "cuStreamQuery") == 0) /* a stream that cannot be queried counts as busy */
        return st == STATUS_OK && !means_lost(own);
    /* Purely descriptive results; and OUT_OF_MEMORY, which allocation tries to resolve. */
    return st == STATUS_OK && (strncmp(function, "cuDeviceGet", 11) == 0 || strcmp(function, "cuDriverGetVersion") == 0 ||
                               strncmp(function, "cuGetError", 10) == 0 || strcmp(function, "cuModuleGetGlobal_v2") == 0 ||
                               (allocates(function) && own == STATUS_DEVICE_MEMORY_EXHAUSTED));
}

/* Fails the nth call of the function; false when there was none. */
static bool fail_call(const char *function, int nth, cuda_result r)
{
    struct scene t = {0};
    char         script[128];
    uint64_t     address;
    enum status  st;
    bool         reached;

    fixture_reset();
    buf_init(&t.output, 4096);
    snprintf(script, sizeof script, "%s:%d:%u", function, nth, r);
    setenv("FAKE_CUDA_FAIL", script, 1);
    st = play(&t);
    reached = fixture_calls(function) >= nth;
    if (reached)
        cr_expect(tolerated(function, r, st), "%s -> %s", script, status_code(st));
    else
        cr_expect_eq(st, STATUS_OK, "%s -> %s", script, status_code(st));
    if (t.d && means_lost(st))
        cr_expect_eq(ops->mem_alloc(t.d, 1, &address), st, "%s", script);
    if (t.d)
        ops->close(t.d);
    reached = fixture_calls(function) >= nth; /* includes closing calls */
    cr_expect_eq(fixture_live(), 0, "%s leaves %ld", script, fixture_live());
    buf_finish(&t.output);
    return reached;
}

Test(cuda_failures, every_call_may_fail_once)
{
    static const char *const functions[] = {
#define DRIVER(name, need, arguments) #name,
#include "device/cuda/driver.def"
#undef DRIVER
    };
    static const cuda_result results[] = {1, 2, 214, 700, 999};
    unsigned                 failed = 0;

    fixture_load();
    for (size_t f = 0; f < COUNT(functions); f++)
        for (size_t r = 0; r < COUNT(results); r++)
            for (int nth = 1; nth <= 40 && fail_call(functions[f], nth, results[r]); nth++)
                failed++;
    cr_assert_gt(failed, 5 * COUNT(functions) / 2);
}
