/* Says that it is ready, and goes on when a line comes in: the test has the session reset or restored meanwhile. Its buffers may lie elsewhere then, so
 * no kernel runs any more; what it has in the process's hands it can still tell. */
#include "driver.h"

enum { BUFFERS = 4, N = 1024 };

static float got[N];

int main(void)
{
    CUcontext   c = context_of_first_device();
    CUdeviceptr p[BUFFERS];
    CUmodule    m;
    CUresult    r;
    char        line[16];
    float       factor = 2;
    int         n = N;
    const char *text;

    (void)c;
    OK(cuModuleLoadData(&m, kernels_ptx));
    for (int i = 0; i < BUFFERS; i++) {
        OK(cuMemAlloc_v2(&p[i], N * sizeof(float)));
        OK(cuMemsetD32_v2(p[i], 0x3f800000, N)); /* 1.0f */
    }
    for (int i = 0; i < 2; i++) {
        OK(cuLaunchKernel(kernel(m, "scale"), 1, 1, 1, N, 1, 1, 0, NULL, (void *[]){&p[2], &factor, &n}, NULL));
        OK(cuCtxSynchronize());
    }
    OK(cuMemcpyDtoH_v2(got, p[2], sizeof got));
    CHECK(got[0] == 4 && got[N - 1] == 4);
    puts("ready");
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin));
    r = cuLaunchKernel(kernel(m, "scale"), 1, 1, 1, N, 1, 1, 0, NULL, (void *[]){&p[2], &factor, &n}, NULL);
    if (r == CUDA_SUCCESS)
        r = cuCtxSynchronize();
    CHECK(r != CUDA_SUCCESS);
    EXPECT(r, cuCtxSynchronize());
    EXPECT(r, cuMemcpyDtoH_v2(got, p[2], sizeof got));
    OK(cuGetErrorName(r, &text));
    puts(text);
    return 0;
}
