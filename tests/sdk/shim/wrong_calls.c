/* Wrong calls, and calls at the edge of it: each row of wrong_calls.def alone in this process, by its number, or all of them. Built with any
 * libcuda.so.1, so that the genuine one can be asked, too: it prints "number result". */
#include "driver.h"

int main(int argc, char **argv)
{
    CUcontext   context = context_of_first_device(), other;
    CUmodule    module, loaded;
    CUfunction  function, got;
    CUlibrary   library;
    CUkernel    made_kernel;
    CUdeviceptr p, q, dead_pointer;
    CUstream    stream, made_stream;
    CUevent     event, made_event;
    CUdevice    device;
    CUuuid      uuid;
    int         value = 2, n = 1, wanted = argc > 1 ? atoi(argv[1]) : -1, at = 0, wrong = 0;
    unsigned    count;
    size_t      bytes, total;
    char        text[512] = "";
    const char *name;
    float       ms;
    void       *pointer, *arguments[] = {&p, &p, &p, &n}, *extra[] = {NULL};

    OK(cuModuleLoadData(&module, kernels_ptx));
    function = kernel(module, "vecadd");
    OK(cuMemAlloc_v2(&p, 256));
    OK(cuMemAlloc_v2(&dead_pointer, (size_t)64 << 20));
    OK(cuMemFree_v2(dead_pointer));
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
#define CALL(expected, call)                                                                                                               \
    if (wanted < 0 || wanted == at) {                                                                                                      \
        CUresult result = call;                                                                                                            \
                                                                                                                                           \
        printf("%d %d\n", at, result);                                                                                                     \
        if (result != EXPECTED_##expected) {                                                                                               \
            fprintf(stderr, "%s = %d, expected %d\n", #call, result, EXPECTED_##expected);                                                 \
            wrong++;                                                                                                                       \
        }                                                                                                                                  \
        OK(cuCtxSetCurrent(context));                                                                                                      \
    }                                                                                                                                      \
    at++;
#define EXPECTED_SUCCESS                    CUDA_SUCCESS
#define EXPECTED_INVALID_VALUE              CUDA_ERROR_INVALID_VALUE
#define EXPECTED_INVALID_DEVICE             CUDA_ERROR_INVALID_DEVICE
#define EXPECTED_INVALID_CONTEXT            CUDA_ERROR_INVALID_CONTEXT
#define EXPECTED_INVALID_HANDLE             CUDA_ERROR_INVALID_HANDLE
#define EXPECTED_INVALID_IMAGE              CUDA_ERROR_INVALID_IMAGE
#define EXPECTED_INVALID_PTX                CUDA_ERROR_INVALID_PTX
#define EXPECTED_NOT_FOUND                  CUDA_ERROR_NOT_FOUND
#define EXPECTED_NOT_PERMITTED              CUDA_ERROR_NOT_PERMITTED
#define EXPECTED_NOT_SUPPORTED              CUDA_ERROR_NOT_SUPPORTED
#define EXPECTED_FILE_NOT_FOUND             CUDA_ERROR_FILE_NOT_FOUND
#define EXPECTED_OUT_OF_MEMORY              CUDA_ERROR_OUT_OF_MEMORY
#define EXPECTED_HOST_MEMORY_NOT_REGISTERED CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
#define EXPECTED_CONTEXT_IS_DESTROYED       CUDA_ERROR_CONTEXT_IS_DESTROYED
#define EXPECTED_PRIMARY_CONTEXT_ACTIVE     CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE
#include "wrong_calls.def"
    fprintf(stderr, "%d calls, %d wrong\n", at, wrong);
    return wrong ? 1 : 0;
}
