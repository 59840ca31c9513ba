/* Says where it is, and goes on when a line comes in: the test ends the service meanwhile. Then every call fails, and none hangs. */
#include "driver.h"

static void stop_at(const char *where)
{
    char line[16];

    puts(where);
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin));
}

int main(void)
{
    CUcontext   c = context_of_first_device();
    CUdeviceptr p, q;
    CUmodule    m;
    CUresult    first;
    int         value = 3, count = 0;
    const char *text;

    OK(cuMemAlloc_v2(&p, 4));
    OK(cuModuleLoadData(&m, kernels_ptx));
    for (int i = 0; i < 300; i++)
        OK(cuMemsetD32_v2(p, 1, 1)); /* a full frame under way, and one that is queued */
    stop_at("allocated");
    first = cuMemcpyDtoH_v2(&value, p, 4);
    CHECK(first != CUDA_SUCCESS && value == 3);
    EXPECT(first, cuMemAlloc_v2(&q, 4));
    EXPECT(first, cuModuleLoadData(&m, kernels_ptx));
    EXPECT(first, cuCtxSynchronize());
    EXPECT(first, cuMemFree_v2(p));
    OK(cuGetErrorString(first, &text));
    OK(cuDeviceGetCount(&count)); /* was read before */
    CHECK(count >= 1);
    EXPECT(CUDA_SUCCESS, cuCtxDestroy_v2(c));
    stop_at("ended");
    CHECK(cuCtxCreate_v2(&c, 0, 0) != CUDA_SUCCESS);
    puts("PASS");
    return 0;
}
