/* The runtime's interface: registered kernels and variables, launches of every form, memory, streams and events, devices, and errors, which are
 * the thread's own. */
#include <pthread.h>

#include "runtime_api.h"

enum { N = 1000, BLOCK = 128, WIDTH = 13, HEIGHT = 5, DEPTH = 3, ROW = 32 };

static const dim3 one = {1, 1, 1}, row = {BLOCK, 1, 1}, blocks = {(N + BLOCK - 1) / BLOCK, 1, 1};

/* nvcc makes a function of the host for each kernel, whose address is the kernel's name, and a shadow for each variable. */
static void vecadd(void)
{
}
static void scale(void)
{
}
static void fault(void)
{
}
static void in_no_image(void)
{
}
static int counter, of_no_image;

/* Function pointers are data for these calls, on every system that has them. */
static const char *key(void (*function)(void))
{
    const char *k;

    memcpy(&k, &function, sizeof k);
    return k;
}

static void **image;

__attribute__((constructor)) static void register_all(void)
{
    static char name[] = "name";

    image = __cudaRegisterFatBinary((void *)(uintptr_t)kernels_fatbin());
    __cudaRegisterFunction(image, key(vecadd), name, "vecadd", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(image, key(scale), name, "scale", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(image, key(fault), name, "fault", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(image, key(in_no_image), name, "in_no_image", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(image, (char *)&counter, name, "counter", 0, sizeof counter, 0, 0);
    __cudaRegisterVar(image, (char *)&of_no_image, name, "of_no_image", 0, sizeof of_no_image, 0, 0);
    __cudaRegisterFatBinaryEnd(image);
}

static float a[N], b[N], c[N];

static void check_sum(float factor)
{
    for (int i = 0; i < N; i++)
        CHECK(c[i] == factor * (a[i] + b[i]));
}

/* As vecadd<<<blocks, BLOCK>>>(…) is compiled. */
static void launch_vecadd(void **args)
{
    cudaKernel_t kernel;
    dim3         grid, block;
    size_t       shared_bytes;
    cudaStream_t stream;

    CHECK(__cudaPushCallConfiguration(blocks, row, 0, NULL) == 0);
    OK(__cudaGetKernel(&kernel, key(vecadd)));
    OK(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, (void *)&stream));
    CHECK(grid.x == blocks.x && block.x == BLOCK && shared_bytes == 0 && !stream);
    OK(__cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream));
    EXPECT(cudaErrorMissingConfiguration, __cudaPopCallConfiguration(&grid, &block, &shared_bytes, (void *)&stream));
    EXPECT(cudaErrorMissingConfiguration, cudaGetLastError());
}

static void launches(void)
{
    float             *da, *db, *dc, factor = 2;
    int                n = N, few = BLOCK;
    void              *args[] = {&da, &db, &dc, &n}, *scaled[] = {&dc, &factor, &few};
    cudaLaunchConfig_t config = {.gridDim = blocks, .blockDim = row};
    cudaKernel_t       kernel;
    cudaFunction_t     function;

    OK(cudaMalloc((void **)&da, sizeof a));
    OK(cudaMalloc((void **)&db, sizeof b));
    OK(cudaMalloc((void **)&dc, sizeof c));
    OK(cudaMemcpy(da, a, sizeof a, COPY_TO_DEVICE));
    OK(cudaMemcpy(db, b, sizeof b, COPY_DEFAULT));
    launch_vecadd(args);
    OK(cudaMemcpy(c, dc, sizeof c, COPY_TO_HOST));
    check_sum(1);
    OK(cudaMemset(dc, 0, sizeof c));
    OK(cudaLaunchKernelExC(&config, key(vecadd), args));
    OK(cudaMemcpy(c, dc, sizeof c, COPY_DEFAULT));
    check_sum(1);
    OK(cudaLaunchCooperativeKernel(key(vecadd), blocks, row, args, 0, NULL));
    OK(cudaGetKernel(&kernel, key(scale)));
    OK(cudaLaunchKernel(kernel, one, row, scaled, 0, NULL));
    OK(cudaGetFuncBySymbol(&function, key(scale)));
    OK(cudaLaunchKernel(function, one, row, scaled, 0, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(c, dc, BLOCK * sizeof *c, COPY_TO_HOST));
    CHECK(c[3] == 4 * (a[3] + b[3]));
    OK(cudaFree(da));
    OK(cudaFree(db));
    OK(cudaFree(dc));
    OK(cudaFree(NULL));
}

static void kernels(void)
{
    cudaFuncAttributes attributes;
    const char        *name;
    size_t             offset, bytes;
    int                resident = 0;

    OK(cudaFuncGetAttributes(&attributes, key(vecadd)));
    CHECK(attributes.ptxVersion == 70 && attributes.binaryVersion >= 70); /* what the PTX says, and the device */
    CHECK(attributes.maxThreadsPerBlock >= BLOCK && attributes.sharedSizeBytes == 0);
    OK(cudaFuncGetName(&name, key(vecadd)));
    CHECK(strcmp(name, "vecadd") == 0);
    OK(cudaFuncGetParamInfo(key(vecadd), 3, &offset, &bytes));
    CHECK(offset == 24 && bytes == 4);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, key(vecadd), BLOCK, 0));
    CHECK(resident > 0);
    OK(cudaFuncSetAttribute(key(vecadd), 8, 1024));
    OK(cudaFuncSetCacheConfig(key(vecadd), 1));
}

static void variables(void)
{
    int    value = 0;
    void  *address;
    size_t bytes;

    OK(cudaMemcpyFromSymbol(&value, &counter, sizeof value, 0, COPY_TO_HOST));
    CHECK(value == 7);
    value = 8;
    OK(cudaMemcpyToSymbol(&counter, &value, sizeof value, 0, COPY_TO_DEVICE));
    OK(cudaGetSymbolAddress(&address, &counter));
    OK(cudaGetSymbolSize(&bytes, &counter));
    CHECK(bytes == sizeof value);
    OK(cudaMemset(address, 1, 1));
    OK(cudaMemcpyFromSymbolAsync(&value, &counter, sizeof value, 0, COPY_DEFAULT, NULL));
    CHECK(value == 1);
    EXPECT(cudaErrorInvalidValue, cudaMemcpyToSymbol(&counter, &value, sizeof value, 1, COPY_TO_DEVICE));
    EXPECT(cudaErrorInvalidValue, cudaMemcpyToSymbol(&counter, &value, 1, SIZE_MAX, COPY_TO_DEVICE));
    EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(&counter, &value, sizeof value, 0, COPY_TO_HOST));
    EXPECT(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&value, &value, sizeof value, 0, COPY_TO_DEVICE));
    EXPECT(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &of_no_image));
    EXPECT(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, key(vecadd)));
}

static void memory_of_rows(void)
{
    unsigned char         host[HEIGHT * DEPTH][ROW], back[HEIGHT * DEPTH][WIDTH];
    cudaPitchedPtr        volume;
    cudaExtent            extent = {WIDTH, HEIGHT, DEPTH}, inner = {WIDTH - 1, HEIGHT - 1, DEPTH};
    cudaPointerAttributes what;
    cudaMemcpy3DParms     copy = {0};
    void                 *p, *p2, *pinned;
    size_t                pitch, free_bytes, total;

    memset(host, 9, sizeof host);
    OK(cudaMallocPitch(&p, &pitch, WIDTH, HEIGHT));
    CHECK(pitch >= WIDTH);
    OK(cudaMemcpy2D(p, pitch, host, ROW, WIDTH, HEIGHT, COPY_TO_DEVICE));
    OK(cudaMemset2D(p, pitch, 3, WIDTH - 1, 1));
    OK(cudaMemcpy2D(back, WIDTH, p, pitch, WIDTH, HEIGHT, COPY_TO_HOST));
    CHECK(back[0][0] == 3 && back[0][WIDTH - 2] == 3 && back[0][WIDTH - 1] == 9 && back[1][0] == 9 && back[HEIGHT - 1][WIDTH - 1] == 9);
    EXPECT(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, WIDTH - 1, host, ROW, WIDTH, HEIGHT, COPY_TO_DEVICE));
    EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy2D(p, pitch, host, ROW, WIDTH, HEIGHT, 5));
    OK(cudaMalloc3D(&volume, extent));
    OK(cudaMemset3D(volume, 1, extent));
    OK(cudaMemset3D(volume, 2, inner));
    OK(cudaMemcpy2D(back, WIDTH, volume.ptr, volume.pitch, WIDTH, HEIGHT * DEPTH, COPY_DEFAULT));
    for (int i = 0; i < HEIGHT * DEPTH; i++)
        for (int x = 0; x < WIDTH; x++)
            CHECK(back[i][x] == (x < WIDTH - 1 && i % HEIGHT < HEIGHT - 1 ? 2 : 1));
    memset(back, 0, sizeof back);
    copy.srcPtr = volume;
    copy.dstPtr = (cudaPitchedPtr){back, WIDTH, WIDTH, HEIGHT};
    copy.srcPos = copy.dstPos = (cudaPos){WIDTH - 2, HEIGHT - 2, DEPTH - 1};
    copy.extent = (cudaExtent){2, 2, 1};
    copy.kind = COPY_TO_HOST;
    OK(cudaMemcpy3D(&copy));
    CHECK(back[HEIGHT * DEPTH - 2][WIDTH - 2] == 2 && back[HEIGHT * DEPTH - 1][WIDTH - 1] == 1 && back[HEIGHT * DEPTH - 3][WIDTH - 1] == 0);
    copy.kind = 9;
    EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy3D(&copy));
    OK(cudaMallocAsync(&p2, 100, NULL));
    OK(cudaFreeAsync(p2, NULL));
    OK(cudaHostAlloc(&pinned, ROW, 1));
    OK(cudaPointerGetAttributes(&what, pinned));
    CHECK(what.type == 1 && what.hostPointer == pinned);
    OK(cudaPointerGetAttributes(&what, (char *)volume.ptr + 1));
    CHECK(what.type == 2 && what.device == 0 && what.devicePointer == (char *)volume.ptr + 1);
    OK(cudaPointerGetAttributes(&what, host));
    CHECK(what.type == 0 && what.hostPointer == host);
    OK(cudaMemGetInfo(&free_bytes, &total));
    CHECK(free_bytes <= total && total > 0);
    OK(cudaFreeHost(pinned));
    OK(cudaFree(volume.ptr));
    OK(cudaFree(p));
    OK(cudaMalloc(&p, 0));
    CHECK(!p);
    EXPECT(cudaErrorInvalidValue, cudaFree(host));
    EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&p, SIZE_MAX));
    EXPECT(cudaErrorInvalidValue, cudaMemcpy(host, back, sizeof back, COPY_TO_DEVICE));
}

static void set(void *data)
{
    *(int *)data = 5;
}

static void streams(void)
{
    cudaStream_t stream;
    cudaEvent_t  start, end;
    float        ms = -1;
    int          called = 0, device = -1, status = -1;

    OK(cudaStreamCreate(&stream));
    OK(cudaStreamGetDevice(stream, &device));
    OK(cudaStreamIsCapturing(stream, &status));
    CHECK(device == 0 && status == 0);
    OK(cudaEventCreate(&start));
    OK(cudaEventCreateWithFlags(&end, 1));
    OK(cudaEventRecord(start, stream));
    OK(cudaEventRecord(end, stream));
    OK(cudaStreamWaitEvent(stream, end, 0));
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms >= 0);
    OK(cudaLaunchHostFunc(stream, set, &called));
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamQuery(stream));
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(end));
    OK(cudaStreamDestroy(stream));
    EXPECT(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
    OK(cudaDeviceSynchronize());
    CHECK(called == 5);
}

/* A captured launch, and a copy and a kernel made by hand after it. */
static void graphs(void)
{
    float               *x, factor = 2, host[BLOCK] = {1, 2, 3}, back[BLOCK];
    int                  n = BLOCK, value = 0;
    void                *args[] = {&x, &factor, &n};
    cudaStream_t         stream;
    cudaGraph_t          graph;
    cudaGraphExec_t      exec;
    cudaGraphNode_t      last, node, symbol;
    cudaKernelNodeParams k = {.func = (void *)(uintptr_t)key(scale), .gridDim = one, .blockDim = row, .kernelParams = args}, found;
    size_t               number = 1;

    OK(cudaMalloc((void **)&x, sizeof host));
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, 0));
    OK(cudaMemcpyAsync(x, host, sizeof host, COPY_TO_DEVICE, stream));
    OK(cudaLaunchKernel(key(scale), one, row, args, 0, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &number));
    CHECK(number == 2);
    number = 1;
    OK(cudaGraphGetRootNodes(graph, &last, &number));
    number = 1;
    OK(cudaGraphNodeGetDependentNodes(last, &last, NULL, &number));
    OK(cudaGraphAddKernelNode(&node, graph, &last, 1, &k));
    OK(cudaGraphKernelNodeGetParams(node, &found));
    CHECK(found.blockDim.x == BLOCK);
    OK(cudaGraphAddMemcpyNode1D(&last, graph, &node, 1, back, x, sizeof back, COPY_TO_HOST));
    OK(cudaGraphAddMemcpyNodeFromSymbol(&symbol, graph, NULL, 0, &value, &counter, sizeof value, 0, COPY_TO_HOST));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(back[2] == 3 * 2 * 2 && value != 0);
    factor = 5;
    OK(cudaGraphExecKernelNodeSetParams(exec, node, &k));
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(back[2] == 3 * 2 * 5);
    k.func = host;
    EXPECT(cudaErrorInvalidResourceHandle, cudaGraphAddKernelNode(&node, graph, NULL, 0, &k));
    EXPECT(cudaErrorInvalidMemcpyDirection, cudaGraphAddMemcpyNode1D(&node, graph, NULL, 0, back, x, 4, 7));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(x));
}

static void devices(void)
{
    cudaDeviceProp properties;
    int            count = 0, device = -1, value = 0;
    unsigned       flags;
    char           bus[32];
    size_t         bytes = 0;
    void          *address = NULL;

    OK(cudaGetDeviceCount(&count));
    CHECK(count >= 1);
    OK(cudaGetDevice(&device));
    CHECK(device == 0);
    OK(cudaSetDevice(0));
    EXPECT(cudaErrorInvalidDevice, cudaSetDevice(count));
    EXPECT(cudaErrorInvalidDevice, cudaSetDevice(-1));
    OK(cudaGetDeviceProperties(&properties, 0));
    OK(cudaDeviceGetAttribute(&value, 75, 0));
    CHECK(properties.name[0] && properties.major == value && properties.warpSize == 32 && properties.maxThreadsDim[2] > 0 &&
          properties.totalGlobalMem > 0 && !properties.managedMemory && !properties.canMapHostMemory);
    EXPECT(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, count));
    OK(cudaChooseDevice(&device, &properties));
    OK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    OK(cudaDeviceGetByPCIBusId(&device, bus));
    CHECK(device == 0);
    OK(cudaGetDeviceFlags(&flags));
    OK(cudaDeviceGetLimit(&bytes, 2));
    CHECK(bytes == 8 << 20);
    OK(cudaDeviceSetLimit(2, 1 << 20));
    EXPECT(cudaErrorUnsupportedLimit, cudaDeviceSetLimit(2, 1 << 30));
    EXPECT(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&bytes, 5));
    EXPECT(cudaErrorInvalidValue, cudaDeviceSetLimit(99, 1));
    OK(cudaDriverGetVersion(&value));
    CHECK(value == 13000);
    OK(cudaRuntimeGetVersion(&value));
    CHECK(value == 13000);
    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &address, 13000, 0, &value));
    CHECK(address && value == 0);
}

static void *in_another_thread(void *unused)
{
    (void)unused;
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    EXPECT(cudaErrorInvalidValue, cudaMemGetInfo(NULL, NULL));
    return NULL;
}

static void errors(void)
{
    pthread_t thread;
    void     *args[] = {&args, &args, &args, &args};
    dim3      none = {0, 1, 1}, many = {5000, 1, 1};

    (void)cudaGetLastError();
    EXPECT(cudaErrorInvalidConfiguration, cudaLaunchKernel(key(vecadd), none, row, args, 0, NULL));
    EXPECT(cudaErrorInvalidConfiguration, cudaLaunchKernel(key(vecadd), one, many, args, 0, NULL));
    CHECK(pthread_create(&thread, NULL, in_another_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    EXPECT(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
    OK(cudaDeviceSynchronize());
    EXPECT(cudaErrorInvalidConfiguration, cudaGetLastError());
    OK(cudaGetLastError());
    EXPECT(cudaErrorInvalidValue, cudaLaunchKernel(key(vecadd), one, row, args, (size_t)1 << 30, NULL));
    EXPECT(cudaErrorInvalidResourceHandle, cudaLaunchKernel(key(devices), one, row, args, 0, NULL));
    EXPECT(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(key(in_no_image), one, row, args, 0, NULL));
    EXPECT(cudaErrorInvalidResourceHandle, cudaEventQuery((cudaEvent_t)(void *)args));
    EXPECT(cudaErrorNotSupported, cudaMallocManaged());
    EXPECT(cudaErrorNotSupported, cudaMallocManaged());
    EXPECT(cudaErrorNotSupported, cudaDeviceEnablePeerAccess());
    EXPECT(cudaErrorNotSupported, cudaGetLastError());
    CHECK(strcmp(cudaGetErrorName(cudaErrorInvalidDeviceFunction), "cudaErrorInvalidDeviceFunction") == 0);
    CHECK(strstr(cudaGetErrorString(cudaErrorInvalidValue), "argument") && strstr(cudaGetErrorString(12345), "unrecognized"));
}

/* A fault sticks until the reset, after which variables are as at the start. */
static void fault_and_reset(void)
{
    void *p;
    int   value = 0;

    OK(cudaLaunchKernel(key(fault), one, one, NULL, 0, NULL));
    CHECK(cudaDeviceSynchronize() != cudaSuccess);
    CHECK(cudaMalloc(&p, 4) != cudaSuccess && cudaGetLastError() != cudaSuccess);
    OK(cudaDeviceReset());
    OK(cudaMemcpyFromSymbol(&value, &counter, sizeof value, 0, COPY_TO_HOST));
    CHECK(value == 7);
}

/* Images with variables that the program would use without a call are refused as a whole. */
static void managed(void)
{
    static int   shadow;
    static char  name[] = "name";
    static void *pointer;
    void       **handle = __cudaRegisterFatBinary((void *)(uintptr_t)kernels_fatbin());
    void        *address;

    __cudaRegisterManagedVar(handle, &pointer, name, "of_both", 0, 4, 0, 0);
    __cudaRegisterVar(handle, (char *)&shadow, name, "counter", 0, sizeof shadow, 0, 0);
    CHECK(!__cudaInitModule(handle) && __cudaInitModule(image));
    EXPECT(cudaErrorNotSupported, cudaGetSymbolAddress(&address, &shadow));
    __cudaUnregisterFatBinary(handle);
    EXPECT(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &shadow));
}

int main(void)
{
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = (float)(3 * i);
    }
    launches();
    kernels();
    variables();
    memory_of_rows();
    streams();
    graphs();
    devices();
    errors();
    managed();
    fault_and_reset();
    launches();
    __cudaUnregisterFatBinary(image);
    puts("PASS");
    return 0;
}
