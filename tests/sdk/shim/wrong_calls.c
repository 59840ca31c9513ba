/* Wrong calls, and calls at the edge of it: each row of wrong_calls.def alone in this process, by its number, or all of them. Built with any
 * libcuda.so.1, so that the genuine one can be asked, too: it prints "number result". */
#include "driver.h"

/* What the rows name: objects that are there, and places for what a call makes. */
static CUcontext               context, other;
static CUmodule                module, loaded;
static CUfunction              function, bounded, got;
static CUlibrary               library;
static CUkernel                made_kernel, kernel_of_library;
static CUdeviceptr             p, q, dead_pointer;
static CUstream                stream, made_stream;
static CUevent                 event, made_event;
static CUdevice                device;
static CUuuid                  uuid;
static CUgraph                 graph, made_graph;
static CUgraphNode             node, made_node;
static CUgraphExec             exec, made_exec;
static CUmemoryPool            pool, made_pool;
static CUarray                 array, made_array;
static CUtexObject             texture, made_texture, dead_texture;
static CUuserObject            made_object;
static CUDA_KERNEL_NODE_PARAMS kernel_params;
static CUDA_MEMSET_NODE_PARAMS fill_params;
static CUDA_HOST_NODE_PARAMS   host_params;
static CUDA_MEMCPY3D           volume;
static CUDA_RESOURCE_DESC      resource;
static CUDA_TEXTURE_DESC       sampling = {.addressMode = {1, 1, 1}};
static CUDA_ARRAY3D_DESCRIPTOR shape;
static const CUmemLocation     here = {1, 0};
static int                     value = 2, n = 1;
static unsigned                count;
static size_t                  bytes, total;
static uint64_t                number;
static char                    text[512];
static const char             *name;
static float                   ms;
static void                   *pointer, *arguments[] = {&p, &p, &p, &n}, *extra[] = {NULL};

static CUDA_ARRAY3D_DESCRIPTOR *shaped(size_t width, size_t height, size_t depth, int format, unsigned channels, unsigned flags)
{
    shape = (CUDA_ARRAY3D_DESCRIPTOR){width, height, depth, format, channels, flags};
    return &shape;
}

static CUDA_RESOURCE_DESC *resource_of(int type, CUarray a, unsigned flags)
{
    resource = (CUDA_RESOURCE_DESC){.resType = type, .res.array = a, .flags = flags};
    return &resource;
}

static CUDA_RESOURCE_DESC *linear_of(CUdeviceptr at, int format, unsigned channels, size_t size)
{
    resource = (CUDA_RESOURCE_DESC){.resType = RESOURCE_LINEAR, .res.linear = {at, format, channels, size}};
    return &resource;
}

static CUDA_MEMSET_NODE_PARAMS *fill_of(CUdeviceptr at, unsigned element, size_t width)
{
    fill_params = (CUDA_MEMSET_NODE_PARAMS){at, 0, 0, element, width, 1};
    return &fill_params;
}

static void prepare(void)
{
    CUmemPoolProps props = {.allocType = 1, .location = here};

    context = context_of_first_device();
    OK(cuModuleLoadData(&module, kernels_ptx));
    function = kernel(module, "vecadd");
    bounded = kernel(module, "bounded");
    OK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel_of_library, library, "vecadd"));
    OK(cuMemAlloc_v2(&p, 256));
    OK(cuMemAlloc_v2(&dead_pointer, (size_t)64 << 20));
    OK(cuMemFree_v2(dead_pointer));
    OK(cuStreamCreate(&stream, 0));
    OK(cuEventCreate(&event, 0));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuArray3DCreate_v2(&array, shaped(16, 0, 0, FORMAT_F32, 1, 0)));
    OK(cuTexObjectCreate(&texture, resource_of(RESOURCE_ARRAY, array, 0), &sampling, NULL));
    OK(cuTexObjectCreate(&dead_texture, resource_of(RESOURCE_ARRAY, array, 0), &sampling, NULL));
    OK(cuTexObjectDestroy(dead_texture));
}

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : -1, at = 0, wrong = 0;

    prepare();
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
#define EXPECTED_ILLEGAL_STATE              CUDA_ERROR_ILLEGAL_STATE
#include "wrong_calls.def"
    fprintf(stderr, "%d calls, %d wrong\n", at, wrong);
    return wrong ? 1 : 0;
}
