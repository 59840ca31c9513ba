/* Wrong calls of the runtime's interface: each row of wrong_runtime_calls.def alone, by its number, or all of them, as wrong_calls.c does it for the
 * driver's. After each, the thread's last error is what the call returned. */
#include "kernels.h"
#include "runtime_api.h"

static void                 *p, *pointer;
static cudaStream_t          stream, made_stream;
static cudaEvent_t           event, made_event;
static cudaGraph_t           graph, made_graph;
static cudaGraphNode_t       node, made_node;
static cudaGraphExec_t       exec, made_exec;
static cudaLibrary_t         library;
static cudaKernel_t          kernel, made_kernel;
static cudaArray_t           array, made_array;
static cudaTextureObject_t   texture, made_texture;
static cudaMemPool_t         pool;
static cudaDeviceProp        properties;
static cudaFuncAttributes    attributes;
static cudaChannelFormatDesc channels = {32, 0, 0, 0, KIND_FLOAT};
static cudaExtent            extent;
static cudaResourceDesc      of_array;
static cudaTextureDesc       sampling = {.addressMode = {1, 1, 1}};
static cudaResourceViewDesc  view;
static const dim3            one = {1, 1, 1};
static int                   value = 1;
static unsigned              count;
static size_t                bytes;
static float                 ms;
static char                  text[512];
static void                 *arguments[] = {&p, &p, &p, &value};

static void prepare(void)
{
    OK(cudaMalloc(&p, 256));
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&event));
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cudaLibraryGetKernel(&kernel, library, "vecadd"));
    OK(cudaMallocArray(&array, &channels, 16, 4, 0));
    of_array.res.array = array;
    OK(cudaCreateTextureObject(&texture, &of_array, &sampling, NULL));
}

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : -1, at = 0, wrong = 0;

    prepare();
#define CALL(expected, call)                                                                                                               \
    if (wanted < 0 || wanted == at) {                                                                                                      \
        cudaError_t result = call, last = cudaGetLastError();                                                                              \
                                                                                                                                           \
        printf("%d %d\n", at, result);                                                                                                     \
        if (result != EXPECTED_##expected || last != result) {                                                                             \
            fprintf(stderr, "%s = %d, then %d, expected %d\n", #call, result, last, EXPECTED_##expected);                                  \
            wrong++;                                                                                                                       \
        }                                                                                                                                  \
    }                                                                                                                                      \
    at++;
#define EXPECTED_Success                 cudaSuccess
#define EXPECTED_InvalidValue            cudaErrorInvalidValue
#define EXPECTED_InvalidDevice           cudaErrorInvalidDevice
#define EXPECTED_InvalidDeviceFunction   cudaErrorInvalidDeviceFunction
#define EXPECTED_InvalidConfiguration    cudaErrorInvalidConfiguration
#define EXPECTED_InvalidMemcpyDirection  cudaErrorInvalidMemcpyDirection
#define EXPECTED_InvalidPitchValue       cudaErrorInvalidPitchValue
#define EXPECTED_InvalidResourceHandle   cudaErrorInvalidResourceHandle
#define EXPECTED_InvalidSymbol           cudaErrorInvalidSymbol
#define EXPECTED_SymbolNotFound          cudaErrorSymbolNotFound
#define EXPECTED_MemoryAllocation        cudaErrorMemoryAllocation
#define EXPECTED_HostMemoryNotRegistered cudaErrorHostMemoryNotRegistered
#include "wrong_runtime_calls.def"
    fprintf(stderr, "%d calls, %d wrong\n", at, wrong);
    return wrong ? 1 : 0;
}
