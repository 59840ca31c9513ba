/* Our declarations of the driver's interface against the vendor's header, if it is installed. */
#include <criterion/criterion.h>

#if __has_include(<cuda.h>)
#include <cuda.h>

#include "device/cuda/abi.h"

#include <assert.h>

#define SAME(ours, theirs) static_assert((long long)(ours) == (long long)(theirs), #theirs)

SAME(sizeof(cuda_result), sizeof(CUresult));
SAME(sizeof(cuda_ordinal), sizeof(CUdevice));
SAME(sizeof(cuda_address), sizeof(CUdeviceptr));
SAME(sizeof(struct cuda_uuid), sizeof(CUuuid));
SAME(sizeof(struct cuda_location), sizeof(CUmemLocation));
SAME(offsetof(struct cuda_location, type), offsetof(CUmemLocation, type));
SAME(offsetof(struct cuda_location, id), offsetof(CUmemLocation, id));
SAME(sizeof(struct cuda_pool_props), sizeof(CUmemPoolProps));
SAME(offsetof(struct cuda_pool_props, allocation_type), offsetof(CUmemPoolProps, allocType));
SAME(offsetof(struct cuda_pool_props, handle_types), offsetof(CUmemPoolProps, handleTypes));
SAME(offsetof(struct cuda_pool_props, location), offsetof(CUmemPoolProps, location));
SAME(offsetof(struct cuda_pool_props, security_attributes), offsetof(CUmemPoolProps, win32SecurityAttributes));
SAME(offsetof(struct cuda_pool_props, max_bytes), offsetof(CUmemPoolProps, maxSize));
SAME(offsetof(struct cuda_pool_props, usage), offsetof(CUmemPoolProps, usage));
SAME(offsetof(struct cuda_pool_props, reserved), offsetof(CUmemPoolProps, reserved));

SAME(sizeof(struct cuda_kernel_node), sizeof(CUDA_KERNEL_NODE_PARAMS_v2));
SAME(offsetof(struct cuda_kernel_node, function), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, func));
SAME(offsetof(struct cuda_kernel_node, grid), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, gridDimX));
SAME(offsetof(struct cuda_kernel_node, block), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, blockDimX));
SAME(offsetof(struct cuda_kernel_node, shared_bytes), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes));
SAME(offsetof(struct cuda_kernel_node, params), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kernelParams));
SAME(offsetof(struct cuda_kernel_node, extra), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, extra));
SAME(offsetof(struct cuda_kernel_node, kernel), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern));
SAME(offsetof(struct cuda_kernel_node, context), offsetof(CUDA_KERNEL_NODE_PARAMS_v2, ctx));

SAME(sizeof(struct cuda_memory_operation), sizeof(CUstreamBatchMemOpParams));
SAME(offsetof(struct cuda_memory_operation, operation), offsetof(CUstreamBatchMemOpParams, writeValue.operation));
SAME(offsetof(struct cuda_memory_operation, address), offsetof(CUstreamBatchMemOpParams, writeValue.address));
SAME(offsetof(struct cuda_memory_operation, value), offsetof(CUstreamBatchMemOpParams, writeValue.value64));
SAME(offsetof(struct cuda_memory_operation, flags), offsetof(CUstreamBatchMemOpParams, writeValue.flags));
SAME(offsetof(struct cuda_memory_operation, alias), offsetof(CUstreamBatchMemOpParams, writeValue.alias));
SAME(sizeof(struct cuda_memory_node), sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS));
SAME(offsetof(struct cuda_memory_node, context), offsetof(CUDA_BATCH_MEM_OP_NODE_PARAMS, ctx));
SAME(offsetof(struct cuda_memory_node, count), offsetof(CUDA_BATCH_MEM_OP_NODE_PARAMS, count));
SAME(offsetof(struct cuda_memory_node, operations), offsetof(CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray));
SAME(offsetof(struct cuda_memory_node, flags), offsetof(CUDA_BATCH_MEM_OP_NODE_PARAMS, flags));

SAME(sizeof(cuda_share), sizeof(CUmemGenericAllocationHandle));
SAME(sizeof(struct cuda_share_props), sizeof(CUmemAllocationProp));
SAME(offsetof(struct cuda_share_props, allocation_type), offsetof(CUmemAllocationProp, type));
SAME(offsetof(struct cuda_share_props, handle_types), offsetof(CUmemAllocationProp, requestedHandleTypes));
SAME(offsetof(struct cuda_share_props, location), offsetof(CUmemAllocationProp, location));
SAME(offsetof(struct cuda_share_props, windows_attributes), offsetof(CUmemAllocationProp, win32HandleMetaData));
SAME(offsetof(struct cuda_share_props, compression), offsetof(CUmemAllocationProp, allocFlags.compressionType));
SAME(offsetof(struct cuda_share_props, rdma), offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable));
SAME(offsetof(struct cuda_share_props, usage), offsetof(CUmemAllocationProp, allocFlags.usage));
SAME(sizeof(struct cuda_access), sizeof(CUmemAccessDesc));
SAME(offsetof(struct cuda_access, location), offsetof(CUmemAccessDesc, location));
SAME(offsetof(struct cuda_access, flags), offsetof(CUmemAccessDesc, flags));

SAME(sizeof(struct cuda_array_props), sizeof(CUDA_ARRAY3D_DESCRIPTOR));
SAME(offsetof(struct cuda_array_props, width), offsetof(CUDA_ARRAY3D_DESCRIPTOR, Width));
SAME(offsetof(struct cuda_array_props, height), offsetof(CUDA_ARRAY3D_DESCRIPTOR, Height));
SAME(offsetof(struct cuda_array_props, depth), offsetof(CUDA_ARRAY3D_DESCRIPTOR, Depth));
SAME(offsetof(struct cuda_array_props, format), offsetof(CUDA_ARRAY3D_DESCRIPTOR, Format));
SAME(offsetof(struct cuda_array_props, channels), offsetof(CUDA_ARRAY3D_DESCRIPTOR, NumChannels));
SAME(offsetof(struct cuda_array_props, flags), offsetof(CUDA_ARRAY3D_DESCRIPTOR, Flags));
SAME(sizeof(struct cuda_resource), sizeof(CUDA_RESOURCE_DESC));
SAME(offsetof(struct cuda_resource, kind), offsetof(CUDA_RESOURCE_DESC, resType));
SAME(offsetof(struct cuda_resource, of.array), offsetof(CUDA_RESOURCE_DESC, res.array.hArray));
SAME(offsetof(struct cuda_resource, of.linear.address), offsetof(CUDA_RESOURCE_DESC, res.linear.devPtr));
SAME(offsetof(struct cuda_resource, of.linear.format), offsetof(CUDA_RESOURCE_DESC, res.linear.format));
SAME(offsetof(struct cuda_resource, of.linear.channels), offsetof(CUDA_RESOURCE_DESC, res.linear.numChannels));
SAME(offsetof(struct cuda_resource, of.linear.bytes_or_width), offsetof(CUDA_RESOURCE_DESC, res.linear.sizeInBytes));
SAME(offsetof(struct cuda_resource, of.linear.bytes_or_width), offsetof(CUDA_RESOURCE_DESC, res.pitch2D.width));
SAME(offsetof(struct cuda_resource, of.linear.height), offsetof(CUDA_RESOURCE_DESC, res.pitch2D.height));
SAME(offsetof(struct cuda_resource, of.linear.pitch), offsetof(CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes));
SAME(offsetof(struct cuda_resource, flags), offsetof(CUDA_RESOURCE_DESC, flags));
SAME(sizeof(struct cuda_sampling), sizeof(CUDA_TEXTURE_DESC));
SAME(offsetof(struct cuda_sampling, addressing), offsetof(CUDA_TEXTURE_DESC, addressMode));
SAME(offsetof(struct cuda_sampling, filter), offsetof(CUDA_TEXTURE_DESC, filterMode));
SAME(offsetof(struct cuda_sampling, flags), offsetof(CUDA_TEXTURE_DESC, flags));
SAME(offsetof(struct cuda_sampling, anisotropy_max), offsetof(CUDA_TEXTURE_DESC, maxAnisotropy));
SAME(offsetof(struct cuda_sampling, mip_filter), offsetof(CUDA_TEXTURE_DESC, mipmapFilterMode));
SAME(offsetof(struct cuda_sampling, mip_bias), offsetof(CUDA_TEXTURE_DESC, mipmapLevelBias));
SAME(offsetof(struct cuda_sampling, mip_low), offsetof(CUDA_TEXTURE_DESC, minMipmapLevelClamp));
SAME(offsetof(struct cuda_sampling, mip_high), offsetof(CUDA_TEXTURE_DESC, maxMipmapLevelClamp));
SAME(offsetof(struct cuda_sampling, border), offsetof(CUDA_TEXTURE_DESC, borderColor));
SAME(sizeof(struct cuda_copy), sizeof(CUDA_MEMCPY3D));
SAME(offsetof(struct cuda_copy, from.place.x_bytes), offsetof(CUDA_MEMCPY3D, srcXInBytes));
SAME(offsetof(struct cuda_copy, from.place.y), offsetof(CUDA_MEMCPY3D, srcY));
SAME(offsetof(struct cuda_copy, from.place.z), offsetof(CUDA_MEMCPY3D, srcZ));
SAME(offsetof(struct cuda_copy, from.place.level), offsetof(CUDA_MEMCPY3D, srcLOD));
SAME(offsetof(struct cuda_copy, from.kind), offsetof(CUDA_MEMCPY3D, srcMemoryType));
SAME(offsetof(struct cuda_copy, from.host), offsetof(CUDA_MEMCPY3D, srcHost));
SAME(offsetof(struct cuda_copy, from.address), offsetof(CUDA_MEMCPY3D, srcDevice));
SAME(offsetof(struct cuda_copy, from.array), offsetof(CUDA_MEMCPY3D, srcArray));
SAME(offsetof(struct cuda_copy, from.pitch), offsetof(CUDA_MEMCPY3D, srcPitch));
SAME(offsetof(struct cuda_copy, from.height), offsetof(CUDA_MEMCPY3D, srcHeight));
SAME(offsetof(struct cuda_copy, to.place.x_bytes), offsetof(CUDA_MEMCPY3D, dstXInBytes));
SAME(offsetof(struct cuda_copy, to.kind), offsetof(CUDA_MEMCPY3D, dstMemoryType));
SAME(offsetof(struct cuda_copy, to.host), offsetof(CUDA_MEMCPY3D, dstHost));
SAME(offsetof(struct cuda_copy, to.address), offsetof(CUDA_MEMCPY3D, dstDevice));
SAME(offsetof(struct cuda_copy, to.array), offsetof(CUDA_MEMCPY3D, dstArray));
SAME(offsetof(struct cuda_copy, to.pitch), offsetof(CUDA_MEMCPY3D, dstPitch));
SAME(offsetof(struct cuda_copy, to.height), offsetof(CUDA_MEMCPY3D, dstHeight));
SAME(offsetof(struct cuda_copy, box.width_bytes), offsetof(CUDA_MEMCPY3D, WidthInBytes));
SAME(offsetof(struct cuda_copy, box.height), offsetof(CUDA_MEMCPY3D, Height));
SAME(offsetof(struct cuda_copy, box.depth), offsetof(CUDA_MEMCPY3D, Depth));
SAME(sizeof(cuda_object), sizeof(CUtexObject));
SAME(sizeof(cuda_object), sizeof(CUsurfObject));

SAME(CUDA_FORMAT_U8, CU_AD_FORMAT_UNSIGNED_INT8);
SAME(CUDA_FORMAT_U16, CU_AD_FORMAT_UNSIGNED_INT16);
SAME(CUDA_FORMAT_U32, CU_AD_FORMAT_UNSIGNED_INT32);
SAME(CUDA_FORMAT_S8, CU_AD_FORMAT_SIGNED_INT8);
SAME(CUDA_FORMAT_S16, CU_AD_FORMAT_SIGNED_INT16);
SAME(CUDA_FORMAT_S32, CU_AD_FORMAT_SIGNED_INT32);
SAME(CUDA_FORMAT_F16, CU_AD_FORMAT_HALF);
SAME(CUDA_FORMAT_F32, CU_AD_FORMAT_FLOAT);
SAME(CUDA_ARRAY_LAYERED, CUDA_ARRAY3D_LAYERED);
SAME(CUDA_ARRAY_SURFACE, CUDA_ARRAY3D_SURFACE_LDST);
SAME(CUDA_ARRAY_CUBE, CUDA_ARRAY3D_CUBEMAP);
SAME(CUDA_ARRAY_GATHER, CUDA_ARRAY3D_TEXTURE_GATHER);
SAME(CUDA_RESOURCE_ARRAY, CU_RESOURCE_TYPE_ARRAY);
SAME(CUDA_RESOURCE_LINEAR, CU_RESOURCE_TYPE_LINEAR);
SAME(CUDA_RESOURCE_PITCHED, CU_RESOURCE_TYPE_PITCH2D);
SAME(CUDA_ADDRESS_WRAP, CU_TR_ADDRESS_MODE_WRAP);
SAME(CUDA_ADDRESS_CLAMP, CU_TR_ADDRESS_MODE_CLAMP);
SAME(CUDA_ADDRESS_MIRROR, CU_TR_ADDRESS_MODE_MIRROR);
SAME(CUDA_ADDRESS_BORDER, CU_TR_ADDRESS_MODE_BORDER);
SAME(CUDA_FILTER_POINT, CU_TR_FILTER_MODE_POINT);
SAME(CUDA_FILTER_LINEAR, CU_TR_FILTER_MODE_LINEAR);
SAME(CUDA_SAMPLE_INTEGERS, CU_TRSF_READ_AS_INTEGER);
SAME(CUDA_SAMPLE_NORMALIZED, CU_TRSF_NORMALIZED_COORDINATES);
SAME(CUDA_SAMPLE_SRGB, CU_TRSF_SRGB);
SAME(CUDA_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME(CUDA_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME(CUDA_MEMORY_ARRAY, CU_MEMORYTYPE_ARRAY);
SAME(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME(CUDA_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CUDA_EVENT_DEFAULT, CU_EVENT_DEFAULT);
SAME(CUDA_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME(CUDA_HOST_REGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
SAME(CUDA_LIMIT_PRINTF_FIFO_BYTES, CU_LIMIT_PRINTF_FIFO_SIZE);
SAME(CUDA_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CUDA_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CUDA_HANDLE_POSIX_DESCRIPTOR, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME(CUDA_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(CUDA_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(CUDA_POOL_REUSE_OPPORTUNISTIC, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
SAME(CUDA_POOL_REUSE_INTERNAL_DEPENDENCIES, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
SAME(CUDA_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(CUDA_POOL_RESERVED_CURRENT, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(CUDA_FUNCTION_MAX_THREADS, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CUDA_FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CUDA_FUNCTION_CONST_BYTES, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME(CUDA_FUNCTION_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CUDA_FUNCTION_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CUDA_FUNCTION_MAX_DYNAMIC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CUDA_FUNCTION_NEEDS_CLUSTERS, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
SAME(CUDA_FUNCTION_CLUSTER_WIDTH, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
SAME(CUDA_FUNCTION_CLUSTER_WIDTH + 1, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
SAME(CUDA_FUNCTION_CLUSTER_WIDTH + 2, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
SAME(CUDA_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME(CUDA_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME((uintptr_t)CUDA_LAUNCH_END, (uintptr_t)CU_LAUNCH_PARAM_END);
SAME((uintptr_t)CUDA_LAUNCH_BUFFER, (uintptr_t)CU_LAUNCH_PARAM_BUFFER_POINTER);
SAME((uintptr_t)CUDA_LAUNCH_BYTES, (uintptr_t)CU_LAUNCH_PARAM_BUFFER_SIZE);

#define RESULT(NAME, number, status) SAME(number, CUDA_##NAME);
#include "device/cuda/results.def"
#undef RESULT
#define ATTRIBUTE(NAME, name, number) SAME(number, CU_DEVICE_ATTRIBUTE_##NAME);
#include "device/attributes.def"
#undef ATTRIBUTE

/* These structures were compared above; from here on their tags mean the vendor's, so that the prototypes can be compared. */
#define cuda_uuid        CUuuid_st
#define cuda_pool_props  CUmemPoolProps_st
#define cuda_share_props CUmemAllocationProp_st
#define cuda_access      CUmemAccessDesc_st
#define cuda_kernel_node CUDA_KERNEL_NODE_PARAMS_v2_st
#define cuda_array_props CUDA_ARRAY3D_DESCRIPTOR_st
#define cuda_resource    CUDA_RESOURCE_DESC_st
#define cuda_sampling    CUDA_TEXTURE_DESC_st
#define cuda_view        CUDA_RESOURCE_VIEW_DESC_st
#define cuda_copy        CUDA_MEMCPY3D_st
#define cuda_memory_node CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st

/* Does not compile unless our prototype is compatible with the vendor's. */
typedef void               any_function(void);
static any_function *const functions[] = {
#define DRIVER(name, need, arguments) (any_function *)(1 ? (cuda_result(*) arguments)NULL : &name),
#include "device/cuda/driver.def"
#undef DRIVER
};

Test(cuda_abi, every_prototype_was_compared)
{
    static const struct {
        const char *name;
    } rows[] = {
#define DRIVER(name, need, arguments) {#name},
#include "device/cuda/driver.def"
#undef DRIVER
    };

    cr_assert_eq(sizeof functions / sizeof functions[0], sizeof rows / sizeof rows[0]);
}
#else
Test(cuda_abi, every_prototype_was_compared)
{
    cr_skip_test("cuda.h is not installed");
}
#endif
