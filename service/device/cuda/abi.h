/* The part of the CUDA driver's binary interface that is used, declared here so that building needs no CUDA header. Unit tests check it
 * against cuda.h, where that exists. Enumerations travel as unsigned int, as the compiler makes them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef unsigned int       cuda_result;
typedef int                cuda_ordinal;
typedef unsigned long long cuda_address;

typedef struct CUctx_st           *cuda_context;
typedef struct CUmod_st           *cuda_module;
typedef struct CUfunc_st          *cuda_function;
typedef struct CUlinkState_st     *cuda_link;
typedef struct CUstream_st        *cuda_stream;
typedef struct CUevent_st         *cuda_event;
typedef struct CUmemPoolHandle_st *cuda_pool;
typedef struct CUgraph_st         *cuda_graph;
typedef struct CUgraphExec_st     *cuda_graph_exec;
typedef struct CUgraphNode_st     *cuda_graph_node;

/* Dynamic shared memory in bytes that a block of that many threads needs. */
typedef size_t (*cuda_block_to_shared)(int threads);

struct cuda_uuid {
    char bytes[16];
};

/* A launch in a graph. `kernel` is another way to name the function: NULL here, and `context` has no meaning then. */
struct cuda_kernel_node {
    cuda_function function;
    unsigned      grid[3];
    unsigned      block[3];
    unsigned      shared_bytes;
    void        **params;
    void        **extra;
    void         *kernel;
    cuda_context  context;
};

/* A word that the device writes. */
struct cuda_memory_operation {
    unsigned     operation;
    cuda_address address;
    uint64_t     value;
    unsigned     flags;
    cuda_address alias;
    uint64_t     reserved;
};

/* Such operations in a graph. */
struct cuda_memory_node {
    cuda_context                  context;
    unsigned                      count;
    struct cuda_memory_operation *operations;
    unsigned                      flags;
};

struct cuda_location {
    unsigned type;
    int      id;
};

/* Memory that can be mapped by several processes. */
typedef unsigned long long cuda_share;

struct cuda_share_props {
    unsigned             allocation_type;
    unsigned             handle_types;
    struct cuda_location location;
    void                *windows_attributes;
    unsigned char        compression;
    unsigned char        rdma;
    unsigned short       usage;
    unsigned char        reserved[4];
};

struct cuda_access {
    struct cuda_location location;
    unsigned             flags;
};

struct cuda_pool_props {
    unsigned             allocation_type;
    unsigned             handle_types;
    struct cuda_location location;
    void                *security_attributes;
    size_t               max_bytes; /* 0: no bound of its own */
    unsigned short       usage;
    unsigned char        reserved[54];
};

/* ---- textures ---- */

typedef struct CUarray_st *cuda_array;
typedef unsigned long long cuda_object; /* of a texture or a surface */

/* Sizes in texels; 0: there is no such axis. */
struct cuda_array_props {
    size_t   width, height, depth;
    unsigned format;
    unsigned channels;
    unsigned flags;
};

/* What a texture or surface reads: an array; memory of so many bytes; or rows of it, as wide as that in texels. */
struct cuda_resource {
    unsigned kind;
    union {
        cuda_array array;
        struct {
            cuda_address address;
            unsigned     format;
            unsigned     channels;
            size_t       bytes_or_width;
            size_t       height; /* of rows only, as the next */
            size_t       pitch;
        } linear;
        int reserved[32];
    } of;
    unsigned flags;
};

struct cuda_sampling {
    unsigned addressing[3];
    unsigned filter;
    unsigned flags;
    unsigned anisotropy_max;
    unsigned mip_filter;
    float    mip_bias, mip_low, mip_high;
    float    border[4];
    int      reserved[12];
};

struct cuda_view; /* not used */

struct cuda_array_place {
    size_t x_bytes, y, z;
    size_t level;
};

struct cuda_copy_side {
    struct cuda_array_place place;
    unsigned                kind;
    void                   *host;
    cuda_address            address;
    cuda_array              array;
    void                   *reserved;
    size_t                  pitch, height; /* of rows and images in linear memory */
};

struct cuda_box {
    size_t width_bytes, height, depth;
};

struct cuda_copy {
    struct cuda_copy_side from, to;
    struct cuda_box       box;
};

enum {
    CUDA_FORMAT_U8 = 0x01,
    CUDA_FORMAT_U16 = 0x02,
    CUDA_FORMAT_U32 = 0x03,
    CUDA_FORMAT_S8 = 0x08,
    CUDA_FORMAT_S16 = 0x09,
    CUDA_FORMAT_S32 = 0x0a,
    CUDA_FORMAT_F16 = 0x10,
    CUDA_FORMAT_F32 = 0x20,
    CUDA_ARRAY_LAYERED = 0x01,
    CUDA_ARRAY_SURFACE = 0x02,
    CUDA_ARRAY_CUBE = 0x04,
    CUDA_ARRAY_GATHER = 0x08,
    CUDA_RESOURCE_ARRAY = 0,
    CUDA_RESOURCE_LINEAR = 2,
    CUDA_RESOURCE_PITCHED = 3,
    CUDA_ADDRESS_WRAP = 0,
    CUDA_ADDRESS_CLAMP = 1,
    CUDA_ADDRESS_MIRROR = 2,
    CUDA_ADDRESS_BORDER = 3,
    CUDA_FILTER_POINT = 0,
    CUDA_FILTER_LINEAR = 1,
    CUDA_SAMPLE_INTEGERS = 0x01,
    CUDA_SAMPLE_NORMALIZED = 0x02,
    CUDA_SAMPLE_SRGB = 0x10,
    CUDA_MEMORY_HOST = 1,
    CUDA_MEMORY_DEVICE = 2,
    CUDA_MEMORY_ARRAY = 3,
};

/* ---- numbers ---- */

enum {
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_EVENT_DEFAULT = 0,
    CUDA_EVENT_DISABLE_TIMING = 2,
    CUDA_CAPTURE_RELAXED = 2,
    CUDA_MEMORY_WRITE_32 = 2,
    CUDA_HOST_REGISTER_PORTABLE = 1,
    CUDA_LIMIT_PRINTF_FIFO_BYTES = 1,
    CUDA_LOCATION_DEVICE = 1,
    CUDA_ALLOCATION_PINNED = 1,
    CUDA_HANDLE_POSIX_DESCRIPTOR = 1,
    CUDA_GRANULARITY_MINIMUM = 0,
    CUDA_ACCESS_READ_WRITE = 3,

    CUDA_POOL_REUSE_OPPORTUNISTIC = 2,         /* int */
    CUDA_POOL_REUSE_INTERNAL_DEPENDENCIES = 3, /* int */
    CUDA_POOL_RELEASE_THRESHOLD = 4,           /* uint64_t, bytes that the pool keeps back from the device */
    CUDA_POOL_RESERVED_CURRENT = 5,            /* uint64_t, bytes */
    CUDA_POOL_USED_CURRENT = 7,                /* uint64_t, bytes */

    CUDA_FUNCTION_MAX_THREADS = 0,
    CUDA_FUNCTION_SHARED_BYTES = 1,
    CUDA_FUNCTION_CONST_BYTES = 2,
    CUDA_FUNCTION_LOCAL_BYTES = 3,
    CUDA_FUNCTION_REGISTERS = 4,
    CUDA_FUNCTION_MAX_DYNAMIC_SHARED_BYTES = 8,
    CUDA_FUNCTION_NEEDS_CLUSTERS = 10, /* of the size below, or, if that is 0, of one that each launch says */
    CUDA_FUNCTION_CLUSTER_WIDTH = 11,  /* height and depth follow */

    CUDA_JIT_ERROR_LOG = 5,
    CUDA_JIT_ERROR_LOG_BYTES = 6,
    CUDA_JIT_INPUT_CUBIN = 0,
    CUDA_JIT_INPUT_PTX = 1,
    CUDA_JIT_INPUT_FATBINARY = 2,
    CUDA_JIT_INPUT_OBJECT = 3,
    CUDA_JIT_INPUT_LIBRARY = 4,
};

/* The `extra` list of a launch: CUDA_LAUNCH_BUFFER, block, CUDA_LAUNCH_BYTES, &bytes, CUDA_LAUNCH_END. */
#define CUDA_LAUNCH_END    ((void *)0)
#define CUDA_LAUNCH_BUFFER ((void *)1)
#define CUDA_LAUNCH_BYTES  ((void *)2)

enum {
#define RESULT(NAME, number, status) CUDA_RESULT_##NAME = number,
#include "device/cuda/results.def"
#undef RESULT
};

enum {
#define ATTRIBUTE(NAME, name, number) CUDA_ATTRIBUTE_##NAME = number,
#include "device/attributes.def"
#undef ATTRIBUTE
};
