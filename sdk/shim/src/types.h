/* Types of CUDA's driver interface, of the functions that are supported: our own declarations of its binary form on 64-bit Linux. Enums are int
 * there; handles are pointers that only the library looks at. tests/sdk/shim/test_abi.py compares them with NVIDIA's header where there is one. */
#ifndef GPUREST_SHIM_TYPES_H
#define GPUREST_SHIM_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Directions of parameters in driver.def. */
#define IN
#define OUT
#define INOUT

typedef int                CUresult;
typedef int                CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint64_t           cuuint64_t;

typedef struct CUctx_st           *CUcontext;
typedef struct CUmod_st           *CUmodule;
typedef struct CUfunc_st          *CUfunction;
typedef struct CUlib_st           *CUlibrary;
typedef struct CUkern_st          *CUkernel;
typedef struct CUstream_st        *CUstream;
typedef struct CUevent_st         *CUevent;
typedef struct CUlinkState_st     *CUlinkState;
typedef struct CUgraph_st         *CUgraph;
typedef struct CUgraphNode_st     *CUgraphNode;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUarray_st         *CUarray;
typedef unsigned long long         CUtexObject, CUsurfObject;

typedef int CUdevice_attribute, CUfunction_attribute, CUpointer_attribute, CUjit_option, CUjitInputType, CUlibraryOption, CUfunc_cache,
    CUsharedconfig, CUmoduleLoadingMode, CUstreamCaptureStatus, CUdriverProcAddressQueryResult, CUmemorytype, CUlimit,
    CUdevice_P2PAttribute, CUmemPool_attribute, CUmemAccess_flags, CUmemAllocationType, CUarray_format, CUaddress_mode, CUfilter_mode,
    CUresourcetype, CUresourceViewFormat;

typedef struct {
    char bytes[16];
} CUuuid;

typedef struct {
    size_t       srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void  *srcHost;
    CUdeviceptr  srcDevice;
    CUarray      srcArray;
    size_t       srcPitch;
    size_t       dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void        *dstHost;
    CUdeviceptr  dstDevice;
    CUarray      dstArray;
    size_t       dstPitch;
    size_t       WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct {
    size_t       srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void  *srcHost;
    CUdeviceptr  srcDevice;
    CUarray      srcArray;
    void        *reserved0;
    size_t       srcPitch, srcHeight;
    size_t       dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void        *dstHost;
    CUdeviceptr  dstDevice;
    CUarray      dstArray;
    void        *reserved1;
    size_t       dstPitch, dstHeight;
    size_t       WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct {
    size_t         Width, Height;
    CUarray_format Format;
    unsigned int   NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
    size_t         Width, Height, Depth;
    CUarray_format Format;
    unsigned int   NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

/* Parts of CUDA_RESOURCE_DESC, which have no names there. */
struct linear_resource {
    CUdeviceptr    devPtr;
    CUarray_format format;
    unsigned int   numChannels;
    size_t         sizeInBytes;
};
struct pitch2d_resource {
    CUdeviceptr    devPtr;
    CUarray_format format;
    unsigned int   numChannels;
    size_t         width, height, pitchInBytes;
};

typedef struct {
    CUresourcetype resType;
    union {
        CUarray                 array;
        struct linear_resource  linear;
        struct pitch2d_resource pitch2D;
        int                     reserved[32];
    } res;
    unsigned int flags;
} CUDA_RESOURCE_DESC;

typedef struct {
    CUaddress_mode addressMode[3];
    CUfilter_mode  filterMode;
    unsigned int   flags, maxAnisotropy;
    CUfilter_mode  mipmapFilterMode;
    float          mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp, borderColor[4];
    int            reserved[12];
} CUDA_TEXTURE_DESC;

typedef struct {
    CUresourceViewFormat format;
    size_t               width, height, depth;
    unsigned int         firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer, reserved[16];
} CUDA_RESOURCE_VIEW_DESC;

typedef struct {
    int  id;
    char pad[4];
    union {
        char bytes[64];
        int  cooperative;
    } value;
} CUlaunchAttribute;

typedef struct {
    unsigned int       gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream           hStream;
    CUlaunchAttribute *attrs;
    unsigned int       numAttrs;
} CUlaunchConfig;

typedef struct {
    void *execAffinityParams;
    int   numExecAffinityParams;
    void *cigParams;
} CUctxCreateParams;

typedef struct {
    int type, id;
} CUmemLocation;

typedef struct {
    CUmemAllocationType allocType;
    int                 handleTypes;
    CUmemLocation       location;
    void               *win32SecurityAttributes;
    size_t              maxSize;
    unsigned short      usage;
    unsigned char       reserved[54];
} CUmemPoolProps;

typedef struct {
    CUmemLocation     location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef struct {
    CUmemPoolProps         poolProps;
    const CUmemAccessDesc *accessDescs;
    size_t                 accessDescCount, bytesize;
    CUdeviceptr            dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef int                     CUgraphNodeType, CUstreamCaptureMode, CUgraphExecUpdateResult, CUgraphMem_attribute;
typedef struct CUgraphExec_st  *CUgraphExec;
typedef struct CUuserObject_st *CUuserObject;

typedef void (*CUhostFn)(void *data);

typedef struct {
    CUfunction   func;
    unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void       **kernelParams, **extra;
    CUkernel     kern;
    CUcontext    ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
    CUdeviceptr  dst;
    size_t       pitch;
    unsigned int value, elementSize;
    size_t       width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct {
    CUhostFn fn;
    void    *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct {
    cuuint64_t  flags;
    CUstream    hUploadStream;
    CUgraphNode hErrNode_out;
    int         result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct {
    CUgraphExecUpdateResult result;
    CUgraphNode             errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;

typedef struct {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);
typedef size_t (*CUoccupancyB2DSize)(int block);

enum {
#define ERROR(name, number, text) name = number,
#include "errors.def"
#undef ERROR
};

/* Attributes of functions, as CUDA numbers them. */
enum {
    FUNCTION_MAX_THREADS = 0,
    FUNCTION_SHARED_BYTES = 1,
    FUNCTION_CONST_BYTES = 2,
    FUNCTION_LOCAL_BYTES = 3,
    FUNCTION_REGISTERS = 4,
    FUNCTION_PTX_VERSION = 5,
    FUNCTION_BINARY_VERSION = 6,
    FUNCTION_CACHE_MODE = 7,
    FUNCTION_DYNAMIC_SHARED_MAX = 8,
    FUNCTION_CARVEOUT = 9,
    FUNCTION_ATTRIBUTES = 16,
};

/* Special values of streams: the default one, the legacy default one, that of the thread. */
#define STREAM_LEGACY     ((CUstream)1)
#define STREAM_PER_THREAD ((CUstream)2)

enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3, MEMORY_UNIFIED = 4 };

/* Of arrays and textures. */
enum { FORMAT_U8 = 1, FORMAT_U16 = 2, FORMAT_U32 = 3, FORMAT_S8 = 8, FORMAT_S16 = 9, FORMAT_S32 = 10, FORMAT_F16 = 16, FORMAT_F32 = 32 };
enum { ARRAY_LAYERED = 1, ARRAY_SURFACE = 2, ARRAY_CUBE = 4, ARRAY_FLAGS_KNOWN = 0x1ff };
enum { RESOURCE_ARRAY = 0, RESOURCE_MIPMAPPED_ARRAY = 1, RESOURCE_LINEAR = 2, RESOURCE_PITCH2D = 3 };
enum { ADDRESS_WRAP = 0, ADDRESS_CLAMP = 1, ADDRESS_MIRROR = 2, ADDRESS_BORDER = 3 };
enum { FILTER_POINT = 0, FILTER_LINEAR = 1 };
enum {
    SAMPLING_INTEGERS = 1, /* not as floats from 0 or -1 to 1 */
    SAMPLING_NORMALIZED = 2,
    SAMPLING_SRGB = 0x10,
    SAMPLING_NOT_TRILINEAR = 0x20,
    SAMPLING_SEAMLESS = 0x40,
    SAMPLING_KNOWN = 0x73,
};

#endif
