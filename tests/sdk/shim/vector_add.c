/* The calls of a first program for the driver: a device, a context, PTX, memory, a launch by pointers to its parameters, and back. */
#include "driver.h"

enum { N = 50000, BLOCK = 256 };

static float a[N], b[N], c[N];

int main(void)
{
    CUdevice    device;
    CUdeviceptr da, db, dc;
    CUmodule    module;
    CUcontext   context;
    int         count = 0, value = 0, n = N;
    char        name[64];
    size_t      bytes = 0;
    void       *args[] = {&da, &db, &dc, &n};

    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    CHECK(count >= 1);
    OK(cuDeviceGet(&device, 0));
    OK(cuDeviceGetName(name, sizeof name, device));
    OK(cuDeviceGetAttribute(&value, 1, device));
    CHECK(name[0] && value >= BLOCK);
    OK(cuDeviceTotalMem_v2(&bytes, device));
    CHECK(bytes > sizeof a);
    OK(cuCtxCreate_v4(&context, NULL, 0, device));
    OK(cuModuleLoadData(&module, kernels_ptx));
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = (float)(2 * i);
    }
    OK(cuMemAlloc_v2(&da, sizeof a));
    OK(cuMemAlloc_v2(&db, sizeof b));
    OK(cuMemAlloc_v2(&dc, sizeof c));
    OK(cuMemcpyHtoD_v2(da, a, sizeof a));
    OK(cuMemcpyHtoD_v2(db, b, sizeof b));
    OK(cuLaunchKernel(kernel(module, "vecadd"), (N + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, args, NULL));
    OK(cuMemcpyDtoH_v2(c, dc, sizeof c));
    for (int i = 0; i < N; i++)
        CHECK(c[i] == a[i] + b[i]);
    OK(cuMemFree_v2(da));
    OK(cuMemFree_v2(db));
    OK(cuMemFree_v2(dc));
    OK(cuCtxDestroy_v2(context));
    puts("Result = PASS");
    return 0;
}
