/* Loads the fake driver into this process. */
#include "unit/device/cuda/fixture.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

const char kernels_ptx[] = ".version 6.4\n"
                           ".target sm_75\n"
                           ".address_size 64\n"
                           ".visible .entry vadd(\n"
                           "    .param .u64 a,\n"
                           "    .param .u64 b,\n"
                           "    .param .u64 c,\n"
                           "    .param .u32 n\n"
                           ")\n{ ret; }\n"
                           ".visible .entry add(.param .u64 p, .param .u32 n, .param .u32 k)\n{ ret; }\n"
                           ".visible .entry layout(.param .u8 a, .param .u64 b, .param .align 8 .b8 s[24], .param .u16 c)\n{ ret; }\n"
                           ".visible .entry illegal()\n{ ret; }\n"
                           ".visible .entry trap()\n{ trap; }\n"
                           ".visible .entry misaligned()\n{ ret; }\n"
                           ".visible .entry endless()\n{ ret; }\n"
                           ".visible .entry unknown()\n{ ret; }\n"
                           ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
                           ".visible .entry hello(.param .u32 n)\n{ ret; }\n";

static void *library;

static void *symbol(const char *name)
{
    void *s;

    if (!library)
        library = dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library);
    s = dlsym(library, name);
    cr_assert_not_null(s);
    return s;
}

struct span fixture_file(const char *path)
{
    FILE  *f = fopen(path, "rb");
    char  *data;
    size_t bytes;

    cr_assert_not_null(f);
    fseek(f, 0, SEEK_END);
    bytes = (size_t)ftell(f);
    rewind(f);
    data = malloc(bytes);
    cr_assert_eq(fread(data, 1, bytes, f), bytes);
    fclose(f);
    return (struct span){data, bytes};
}

long fixture_live(void)
{
    return ((long (*)(void))symbol("fake_cuda_live"))();
}

long fixture_calls(const char *function)
{
    return ((long (*)(const char *))symbol("fake_cuda_calls"))(function);
}

unsigned fixture_sampling(void)
{
    return ((unsigned (*)(void))symbol("fake_cuda_sampling"))();
}

void fixture_finish(void)
{
    ((void (*)(void))symbol("fake_cuda_finish"))();
}

void fixture_reset(void)
{
    ((void (*)(void))symbol("fake_cuda_reset"))();
}

void fixture_load(void)
{
    struct problem why = {0};

    device_set(SPAN_LITERAL("libcuda"), FAKE_CUDA);
    cr_assert_eq(device_cuda.count(&why), 1, "%s", why.detail);
    fixture_reset();
}

struct device *fixture_open(void)
{
    struct device *d = NULL;
    struct problem why = {0};

    fixture_load();
    cr_assert_eq(device_cuda.open(&d, 0, &why), STATUS_OK, "%s", why.detail);
    return d;
}

struct device_module *fixture_module(struct device *d)
{
    struct device_module *m = NULL;
    struct problem        why = {0};

    cr_assert_eq(device_cuda.module_load(d, kernels_ptx, sizeof kernels_ptx - 1, &m, &why), STATUS_OK, "%s", why.detail);
    return m;
}

uint64_t fixture_memory(struct device *d, uint64_t bytes)
{
    uint64_t address = 0;

    cr_assert_eq(device_cuda.mem_alloc(d, bytes, &address), STATUS_OK);
    return address;
}

struct device_launch fixture_launch(const struct device_module *m, const char *kernel, const void *params, uint32_t bytes, uint32_t threads)
{
    int k = kernel_table_find(device_cuda.module_table(m), span_of(kernel));

    cr_assert_geq(k, 0);
    return (struct device_launch){.module = m,
                                  .kernel = (unsigned)k,
                                  .grid = {1, 1, 1},
                                  .block = {threads, 1, 1},
                                  .params = params,
                                  .params_bytes = bytes,
                                  .deadline_ms = 60000};
}
