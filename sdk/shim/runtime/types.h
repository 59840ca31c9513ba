/* Types of CUDA's runtime interface 13, of the functions that are supported: our own declarations of its binary form on 64-bit Linux, on top of
 * the driver's. Enums are int. tests/sdk/shim/test_abi.py compares them with NVIDIA's headers where there are any. */
#ifndef GPUREST_SHIM_RUNTIME_TYPES_H
#define GPUREST_SHIM_RUNTIME_TYPES_H

#include "../src/types.h"

typedef CUresult    cudaError_t;
typedef CUstream    cudaStream_t;
typedef CUevent     cudaEvent_t;
typedef CUfunction  cudaFunction_t;
typedef CUkernel    cudaKernel_t;
typedef CUlibrary   cudaLibrary_t;
typedef CUgraph     cudaGraph_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUuuid      cudaUUID_t;
typedef CUarray     cudaArray_t, cudaArray_const_t;

typedef CUtexObject             cudaTextureObject_t;
typedef CUsurfObject            cudaSurfaceObject_t;
typedef CUDA_RESOURCE_VIEW_DESC cudaResourceViewDesc;

typedef CUmemoryPool               cudaMemPool_t;
typedef CUmemPoolProps             cudaMemPoolProps;
typedef CUDA_MEM_ALLOC_NODE_PARAMS cudaMemAllocNodeParams;
typedef CUgraphMem_attribute       cudaGraphMemAttributeType;
typedef CUmemLocation              cudaMemLocation;
typedef CUmemAccessDesc            cudaMemAccessDesc;

typedef int cudaMemcpyKind, cudaDeviceAttr, cudaFuncCache, cudaSharedMemConfig, cudaFuncAttribute, cudaStreamCaptureStatus,
    cudaDriverEntryPointQueryResult, cudaJitOption, cudaLibraryOption, cudaStreamCaptureMode, cudaMemPoolAttr, cudaMemAccessFlags,
    cudaMemAllocationType, cudaLimit;
typedef CUhostFn         cudaHostFn_t;
typedef CUstreamCallback cudaStreamCallback_t;
typedef CUgraphEdgeData  cudaGraphEdgeData;

typedef CUgraphExec                   cudaGraphExec_t;
typedef CUDA_MEMSET_NODE_PARAMS       cudaMemsetParams;
typedef CUDA_HOST_NODE_PARAMS         cudaHostNodeParams;
typedef CUDA_GRAPH_INSTANTIATE_PARAMS cudaGraphInstantiateParams;
typedef CUgraphExecUpdateResultInfo   cudaGraphExecUpdateResultInfo;
typedef CUgraphNodeType               cudaGraphNodeType;
typedef CUuserObject                  cudaUserObject_t;

typedef struct {
    unsigned int x, y, z;
} dim3;

typedef struct {
    void        *func;
    dim3         gridDim, blockDim;
    unsigned int sharedMemBytes;
    void       **kernelParams, **extra;
} cudaKernelNodeParams;

typedef struct {
    size_t width, height, depth;
} cudaExtent;

typedef struct {
    size_t x, y, z;
} cudaPos;

typedef struct {
    void  *ptr;
    size_t pitch, xsize, ysize;
} cudaPitchedPtr;

typedef struct {
    cudaArray_t    srcArray;
    cudaPos        srcPos;
    cudaPitchedPtr srcPtr;
    cudaArray_t    dstArray;
    cudaPos        dstPos;
    cudaPitchedPtr dstPtr;
    cudaExtent     extent;
    cudaMemcpyKind kind;
} cudaMemcpy3DParms;

typedef struct {
    dim3               gridDim, blockDim;
    size_t             dynamicSmemBytes;
    cudaStream_t       stream;
    CUlaunchAttribute *attrs;
    unsigned int       numAttrs;
} cudaLaunchConfig_t;

typedef struct {
    int x, y, z, w;
    int f;
} cudaChannelFormatDesc;

/* Parts of cudaResourceDesc, which have no names there. */
struct linear_texels {
    void                 *devPtr;
    cudaChannelFormatDesc desc;
    size_t                sizeInBytes;
};
struct pitch2d_texels {
    void                 *devPtr;
    cudaChannelFormatDesc desc;
    size_t                width, height, pitchInBytes;
};

typedef struct {
    int resType;
    union {
        cudaArray_t           array;
        struct linear_texels  linear;
        struct pitch2d_texels pitch2D;
        int                   reserved[32];
    } res;
    unsigned int flags;
} cudaResourceDesc;

typedef struct {
    int          addressMode[3], filterMode, readMode, sRGB;
    float        borderColor[4];
    int          normalizedCoords;
    unsigned int maxAnisotropy;
    int          mipmapFilterMode;
    float        mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int          disableTrilinearOptimization, seamlessCubemap;
} cudaTextureDesc;

typedef struct {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int    maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout,
        clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight, requiredClusterDepth, clusterSchedulingPolicyPreference,
        nonPortableClusterSizeAllowed;
    int reserved[16];
} cudaFuncAttributes;

typedef struct {
    int   type, device;
    void *devicePointer, *hostPointer;
    long  reserved[8];
} cudaPointerAttributes;

typedef struct {
    char         name[256];
    cudaUUID_t   uuid;
    char         luid[8];
    unsigned int luidDeviceNodeMask;
    size_t       totalGlobalMem, sharedMemPerBlock;
    int          regsPerBlock, warpSize;
    size_t       memPitch;
    int          maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    size_t       totalConstMem;
    int          major, minor;
    size_t       textureAlignment, texturePitchAlignment;
    int multiProcessorCount, integrated, canMapHostMemory, maxTexture1D, maxTexture1DMipmap, maxTexture2D[2], maxTexture2DMipmap[2],
        maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2],
        maxTexture2DLayered[3], maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2],
        maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing, memoryBusWidth,
        l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported,
        localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int    regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported, pageableMemoryAccess,
        concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch;
    size_t sharedMemPerBlockOptin;
    int    pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int    hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported,
        memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int          gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers, deviceNumaConfig, deviceNumaId,
        mpsEnabled, hostNumaId;
    unsigned int gpuPciDeviceID, gpuPciSubsystemID;
    int          hostNumaMultinodeIpcSupported, reserved[56];
} cudaDeviceProp;

enum { KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT, KIND_LAST = 31 };
enum { COPY_HOST_TO_HOST, COPY_TO_DEVICE, COPY_TO_HOST, COPY_ON_DEVICE, COPY_DEFAULT };

#endif
