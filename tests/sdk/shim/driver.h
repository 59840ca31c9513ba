/* For programs that use the driver's interface as any program does: its functions, and a check that says where a call failed. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "types.h"

#define SUPPORTED(symbol, name, version, needs, parameters, names) CUresult symbol parameters;
#define REFUSED(symbol, name, version, needs, parameters, names)   CUresult symbol(void);
#define SAME(symbol, name, version, other)
#include "driver.def"
#undef SUPPORTED
#undef REFUSED
#undef SAME

static inline void expect_at(int line, const char *call, CUresult wanted, CUresult result)
{
    const char *name = "?";

    if (result == wanted)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "line %d: %s = %d (%s), expected %d\n", line, call, result, name ? name : "?", wanted);
    exit(1);
}
#define EXPECT(wanted, call) expect_at(__LINE__, #call, wanted, call)
#define OK(call)             EXPECT(CUDA_SUCCESS, call)
#define CHECK(condition)                                                                                                                   \
    do                                                                                                                                     \
        if (!(condition)) {                                                                                                                \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);                                                                \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    while (0)

static inline CUcontext context_of_first_device(void)
{
    CUcontext c;

    OK(cuInit(0));
    OK(cuCtxCreate_v2(&c, 0, 0));
    return c;
}

static inline CUfunction kernel(CUmodule m, const char *name)
{
    CUfunction f;

    OK(cuModuleGetFunction(&f, m, name));
    return f;
}
