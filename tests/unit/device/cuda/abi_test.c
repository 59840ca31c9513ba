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
