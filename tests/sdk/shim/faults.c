/* A fault sticks to the device until its primary context is reset, and a child of fork() has no driver. */
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

static void in_child(void)
{
    pid_t id = fork();
    int   status;

    if (id == 0) {
        CUdeviceptr p;
        CUcontext   c;
        int         count;
        bool        none = cuMemAlloc_v2(&p, 4) == CUDA_ERROR_NOT_INITIALIZED && cuCtxGetCurrent(&c) == CUDA_ERROR_NOT_INITIALIZED &&
                    cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED;

        _exit(none ? 0 : 1);
    }
    CHECK(waitpid(id, &status, 0) == id && status == 0);
}

enum { FRAME = 256, BUSY = 1024, MANY = FRAME + 2 * BUSY + 7 };

/* Full frames are not waited for: an event behind them is, and their order holds. */
static void in_frames_under_way(CUmodule m)
{
    CUdeviceptr sum, one;
    CUevent     event;
    int         n = 1;
    float       value = 0;
    void       *args[] = {&sum, &one, &sum, &n};

    OK(cuMemAlloc_v2(&sum, 4));
    OK(cuMemAlloc_v2(&one, 4));
    OK(cuMemsetD32_v2(sum, 0, 1));
    OK(cuMemsetD32_v2(one, 0x3f800000, 1)); /* 1.0f */
    OK(cuEventCreate(&event, 2 /* untimed */));
    for (int i = 0; i < MANY; i++)
        OK(cuLaunchKernel(kernel(m, "vecadd"), 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    OK(cuEventRecord(event, NULL));
    OK(cuEventSynchronize(event));
    OK(cuMemcpyDtoH_v2(&value, sum, 4));
    CHECK(value == MANY);
    OK(cuEventDestroy_v2(event));
    OK(cuMemFree_v2(sum));
    OK(cuMemFree_v2(one));
}

/* A frame that fills behind another one holds no more copies than any. */
static void copies_behind_a_frame_under_way(CUmodule m)
{
    static int  host[BUSY], back[BUSY];
    CUdeviceptr p, x;
    float       factor = 1;
    int         n = 1;
    void       *args[] = {&x, &factor, &n};

    OK(cuMemAlloc_v2(&p, sizeof host));
    OK(cuMemAlloc_v2(&x, 4));
    OK(cuMemsetD32_v2(x, 0, 1));
    for (int i = 0; i < FRAME; i++)
        OK(cuLaunchKernel(kernel(m, "scale"), 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    for (int i = 0; i < BUSY; i++) {
        host[i] = i;
        OK(cuMemcpyHtoD_v2(p + (CUdeviceptr)i * sizeof host[0], &host[i], sizeof host[0]));
    }
    OK(cuMemcpyDtoH_v2(back, p, sizeof back));
    CHECK(memcmp(host, back, sizeof host) == 0);
    OK(cuMemFree_v2(p));
    OK(cuMemFree_v2(x));
}

/* A fault in a full frame shows when the program waits, or at a call before. */
static void fault_in_a_frame_under_way(CUmodule m)
{
    CUfunction f = kernel(m, "fault");
    CUresult   r = CUDA_SUCCESS;

    for (int i = 0; i < MANY && !r; i++)
        r = cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

int main(void)
{
    CUcontext   c, current, again;
    CUmodule    m;
    CUdeviceptr p, q;
    CUfunction  f;
    int         value = 0;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == NULL); /* retaining makes nothing current */
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuModuleLoadData(&m, kernels_ptx));
    OK(cuCtxPushCurrent_v2(c));
    in_child();
    OK(cuModuleLoadData(&m, kernels_ptx));
    OK(cuMemAlloc_v2(&p, 4));
    f = kernel(m, "fault");
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuMemsetD32_v2(p, 5, 1)); /* queued behind it */
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH_v2(&value, p, 4));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&q, 4));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuCtxGetCurrent(&current)); /* asks for nothing of the device */
    OK(cuDevicePrimaryCtxReset_v2(0));
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&q, 4)); /* the current one is gone */
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(again == c); /* its handle is the device's for good */
    OK(cuCtxSetCurrent(c));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    OK(cuMemAlloc_v2(&q, 4));
    OK(cuMemsetD32_v2(q, 5, 1));
    OK(cuMemcpyDtoH_v2(&value, q, 4));
    CHECK(value == 5);
    OK(cuDevicePrimaryCtxRelease_v2(0)); /* a reset releases nothing */
    OK(cuMemFree_v2(q));
    OK(cuModuleLoadData(&m, kernels_ptx));
    in_frames_under_way(m);
    copies_behind_a_frame_under_way(m);
    fault_in_a_frame_under_way(m);
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuCtxSetCurrent(c));
    OK(cuModuleLoadData(&m, kernels_ptx));
    OK(cuCtxSetCurrent(NULL));
    OK(cuModuleUnload(m)); /* needs no current context */
    OK(cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    puts("PASS");
    return 0;
}
