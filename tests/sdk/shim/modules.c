/* Modules and libraries: from memory and from a file, kernels and their attributes, parameters in a block, a struct with pointers, variables,
 * occupancy, linking, errors of a compilation. The argument is an image in a file, which has vecadd. */
#include "driver.h"

enum { N = 16 };

static void check_vecadd(CUfunction f)
{
    struct {
        CUdeviceptr a, b, c;
        int         n;
    } block;
    size_t bytes = 28;
    void  *extra[] = {(void *)1, &block, (void *)2, &bytes, NULL};
    float  host[N], back[N];

    block.n = N;
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    OK(cuMemAlloc_v2(&block.a, sizeof host));
    OK(cuMemAlloc_v2(&block.b, sizeof host));
    OK(cuMemAlloc_v2(&block.c, sizeof host));
    OK(cuMemcpyHtoD_v2(block.a, host, sizeof host));
    OK(cuMemcpyHtoD_v2(block.b, host, sizeof host));
    OK(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, NULL, NULL, extra));
    OK(cuMemcpyDtoH_v2(back, block.c, sizeof back));
    for (int i = 0; i < N; i++)
        CHECK(back[i] == 2.0f * (float)i);
    bytes = 20;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, NULL, NULL, extra));
    OK(cuMemFree_v2(block.a));
    OK(cuMemFree_v2(block.b));
    OK(cuMemFree_v2(block.c));
}

static void struct_with_pointers(CUmodule m)
{
    CUdeviceptr x, y;
    struct {
        CUdeviceptr from, to;
        int         n;
    } view;
    float          host[N] = {1, 2, 3}, back[N];
    void          *args[] = {&view};
    CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = N, .blockDimY = 1, .blockDimZ = 1};

    OK(cuMemAlloc_v2(&x, sizeof host));
    OK(cuMemAlloc_v2(&y, 2 * sizeof host));
    OK(cuMemcpyHtoD_v2(x, host, sizeof host));
    memset(&view, 0, sizeof view);
    view.from = x;
    view.to = y + sizeof host;
    view.n = N;
    OK(cuLaunchKernelEx(&config, kernel(m, "by_struct"), args, NULL));
    OK(cuMemFree_v2(x)); /* queued behind the launch */
    OK(cuMemcpyDtoH_v2(back, y + sizeof host, sizeof back));
    CHECK(memcmp(host, back, sizeof host) == 0);
    OK(cuMemFree_v2(y));
}

/* As before CUDA 4. */
static void legacy_launch(CUfunction f)
{
    CUdeviceptr a, b;
    float       host[N], back[N];
    int         n = N;

    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    OK(cuMemAlloc_v2(&a, sizeof host));
    OK(cuMemAlloc_v2(&b, sizeof host));
    OK(cuMemcpyHtoD_v2(a, host, sizeof host));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(f, 1, 1)); /* no block, no parameters */
    OK(cuFuncSetBlockShape(f, N, 1, 1));
    OK(cuFuncSetSharedSize(f, 0));
    OK(cuParamSetv(f, 0, &a, sizeof a));
    OK(cuParamSetv(f, 8, &a, sizeof a));
    OK(cuParamSetv(f, 16, &b, sizeof b));
    OK(cuParamSeti(f, 24, (unsigned)n));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetv(f, 4093, &n, sizeof n));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetv(f, -1, &n, sizeof n));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuParamSetSize(f, 4097));
    OK(cuParamSetSize(f, 24));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(f, 1, 1));
    OK(cuParamSetSize(f, 28));
    OK(cuLaunchGridAsync(f, 1, 1, NULL));
    OK(cuMemcpyDtoH_v2(back, b, sizeof back));
    CHECK(back[3] == 6);
    OK(cuLaunch(f));
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
}

static void variables(CUmodule m)
{
    CUdeviceptr p, again;
    size_t      bytes;
    int         value = 42, back = 0;

    OK(cuModuleGetGlobal_v2(&p, &bytes, m, "counter"));
    CHECK(bytes == 4);
    OK(cuModuleGetGlobal_v2(&again, NULL, m, "counter"));
    CHECK(p == again);
    OK(cuMemcpyDtoH_v2(&back, p, 4));
    CHECK(back == 7);
    OK(cuMemcpyHtoD_v2(p, &value, 4));
    OK(cuMemcpyDtoH_v2(&back, p, 4));
    CHECK(back == 42);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
    EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&p, &bytes, m, "nothing"));
}

static void attributes(CUmodule m)
{
    CUfunction  f = kernel(m, "vecadd");
    int         threads = 0, blocks = 0, grid = 0, block = 0;
    size_t      offset = 9, bytes = 9;
    unsigned    count = 0;
    const char *name = "";

    OK(cuFuncGetAttribute(&threads, 0, f));
    CHECK(threads >= 256);
    OK(cuFuncGetParamInfo(f, 3, &offset, &bytes));
    CHECK(offset == 24 && bytes == 4);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(f, 4, &offset, &bytes));
    OK(cuFuncGetName(&name, f));
    CHECK(strcmp(name, "vecadd") == 0);
    OK(cuModuleGetFunctionCount(&count, m));
    CHECK(count == 5);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 128, 0));
    CHECK(blocks >= 1);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
    CHECK(grid >= 1 && block >= 32 && block <= threads);
}

static void library(void)
{
    CUlibrary l;
    CUkernel  k;

    OK(cuLibraryLoadData(&l, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&k, l, "vecadd"));
    check_vecadd((CUfunction)(void *)k); /* a kernel passes for a function */
    EXPECT(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&k, l, "nothing"));
    OK(cuLibraryUnload(l));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(l));
}

static void linked(void)
{
    CUlinkState  s;
    CUmodule     m;
    char         log[2048] = "";
    CUjit_option names[] = {5, 6};
    void        *values[] = {log, (void *)sizeof log}, *cubin;
    size_t       bytes;
    FILE        *file;

    OK(cuLinkCreate_v2(0, NULL, NULL, &s));
    OK(cuLinkAddData_v2(s, 1, (void *)(uintptr_t)kernels_ptx, strlen(kernels_ptx) + 1, "kernels", 0, NULL, NULL));
    OK(cuLinkComplete(s, &cubin, &bytes));
    OK(cuModuleLoadDataEx(&m, cubin, 0, NULL, NULL));
    OK(cuLinkDestroy(s));
    check_vecadd(kernel(m, "vecadd"));
    OK(cuModuleUnload(m));
    file = fopen("linked.ptx", "w");
    CHECK(file && fputs(kernels_ptx, file) >= 0 && fclose(file) == 0);
    OK(cuLinkCreate_v2(2, names, values, &s));
    EXPECT(CUDA_ERROR_FILE_NOT_FOUND, cuLinkAddFile_v2(s, 1, "missing.ptx", 0, NULL, NULL));
    CHECK(strcmp(log, "missing.ptx not found") == 0);
    values[1] = (void *)sizeof log;
    OK(cuLinkAddFile_v2(s, 1, "linked.ptx", 0, NULL, NULL));
    OK(cuLinkComplete(s, &cubin, &bytes));
    OK(cuLinkDestroy(s));
    values[1] = (void *)sizeof log;
    EXPECT(CUDA_ERROR_INVALID_PTX,
           cuModuleLoadDataEx(&m, ".version 7.0\n.target sm_70\n.address_size 64\n.entry broken() { nonsense; }\n", 2, names, values));
    CHECK(strstr(log, "nonsense") && (size_t)values[1] == strlen(log));
}

int main(int argc, char **argv)
{
    CUcontext c = context_of_first_device(), attached;
    CUmodule  m;

    OK(cuModuleLoadData(&m, kernels_ptx));
    check_vecadd(kernel(m, "vecadd"));
    struct_with_pointers(m);
    legacy_launch(kernel(m, "vecadd"));
    variables(m);
    attributes(m);
    library();
    linked();
    OK(cuModuleUnload(m));
    for (int i = 1; i < argc; i++) {
        OK(cuModuleLoad(&m, argv[i]));
        check_vecadd(kernel(m, "vecadd"));
        OK(cuModuleUnload(m));
    }
    OK(cuCtxAttach(&attached, 0));
    CHECK(attached == c);
    OK(cuCtxDetach(c));
    OK(cuCtxDetach(c));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDetach(c));
    puts("PASS");
    return 0;
}
