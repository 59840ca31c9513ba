/* Loads the fake libraries into this process. */
#include "unit/device/cuda/vendor/fixture.h"

#include <criterion/criterion.h>
#include <dlfcn.h>

static void *symbol(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *s = handle ? dlsym(handle, name) : NULL;

    cr_assert_not_null(s, "%s of %s", name, library);
    return s;
}

long vendor_live(void)
{
    return ((long (*)(void))symbol(FAKE_CUBLASLT, "fake_cublaslt_live"))() + ((long (*)(void))symbol(FAKE_CUFFT, "fake_cufft_live"))() +
           ((long (*)(void))symbol(FAKE_CUSOLVER, "fake_cusolver_live"))();
}

void vendor_reset(void)
{
    ((void (*)(void))symbol(FAKE_CUBLASLT, "fake_cublaslt_reset"))();
    ((void (*)(void))symbol(FAKE_CUFFT, "fake_cufft_reset"))();
    ((void (*)(void))symbol(FAKE_CUSOLVER, "fake_cusolver_reset"))();
}

struct device *vendor_open(void)
{
    device_set(SPAN_LITERAL("cublaslt"), FAKE_CUBLASLT);
    device_set(SPAN_LITERAL("cufft"), FAKE_CUFFT);
    device_set(SPAN_LITERAL("cusolver"), FAKE_CUSOLVER);
    return fixture_open();
}

enum status vendor_launch(struct device *d, struct device_module *m, const void *params, uint32_t bytes, struct problem *why)
{
    struct device_launch l = {.module = m, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = params, .params_bytes = bytes};

    return device_cuda.launch(d, NULL, &l, why);
}

struct vendor_plan vendor_dense(enum vendor_number number, uint64_t m, uint64_t n, uint64_t k, uint64_t batch)
{
    return (struct vendor_plan){.operation = VENDOR_MATMUL,
                                .number = (uint32_t)number,
                                .batch = batch,
                                .workspace_max = 1 << 20,
                                .m = m,
                                .n = n,
                                .k = k,
                                .a = {k, m * k, 256},
                                .b = {n, k * n, 256},
                                .out = {n, m * n, 256}};
}

struct vendor_plan vendor_square(enum vendor_operation operation, enum vendor_number number, uint64_t n, uint64_t batch)
{
    return (struct vendor_plan){
        .operation = (uint32_t)operation, .number = (uint32_t)number, .batch = batch, .m = n, .n = n, .k = n, .lefts = 1, .rights = n};
}

struct vendor_plan vendor_transform(enum vendor_number number, uint64_t n, uint64_t batch, bool inverse)
{
    return (struct vendor_plan){.operation = VENDOR_FFT,
                                .number = (uint32_t)number,
                                .batch = batch,
                                .length = n,
                                .stride = 1,
                                .distance = n,
                                .repeats = 1,
                                .inverse = inverse};
}
