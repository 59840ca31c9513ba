/* Compares what is declared of HIP, and the numbers that are shared with CUDA, with the header of ROCm, where that is installed. */
#include "device/hip/driver.h"

#include <criterion/criterion.h>

#if __has_include(<hip/hip_runtime_api.h>)
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_PLATFORM_HCC__ 1
#include <hip/hip_runtime_api.h>

#define HIP_ATTRIBUTE(NAME, name, number) static_assert(hipDeviceAttribute##name == (number), #name);
#include "device/hip/attributes.def"
#undef HIP_ATTRIBUTE

#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(CUDA_RESULT_ERROR_INVALID_VALUE, hipErrorInvalidValue);
SAME(CUDA_RESULT_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory);
SAME(CUDA_RESULT_ERROR_NO_DEVICE, hipErrorNoDevice);
SAME(CUDA_RESULT_ERROR_INVALID_DEVICE, hipErrorInvalidDevice);
SAME(CUDA_RESULT_ERROR_INVALID_IMAGE, hipErrorInvalidImage);
SAME(CUDA_RESULT_ERROR_NO_BINARY_FOR_GPU, hipErrorNoBinaryForGpu);
SAME(CUDA_RESULT_ERROR_NOT_FOUND, hipErrorNotFound);
SAME(CUDA_RESULT_ERROR_NOT_READY, hipErrorNotReady);
SAME(CUDA_RESULT_ERROR_ILLEGAL_ADDRESS, hipErrorIllegalAddress);
SAME(CUDA_RESULT_ERROR_LAUNCH_OUT_OF_RESOURCES, hipErrorLaunchOutOfResources);
SAME(CUDA_RESULT_ERROR_LAUNCH_FAILED, hipErrorLaunchFailure);
SAME(CUDA_RESULT_ERROR_NOT_SUPPORTED, hipErrorNotSupported);
SAME(HIP_ERROR_INVALID_CONFIGURATION, hipErrorInvalidConfiguration);
SAME(CUDA_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME(CUDA_EVENT_DISABLE_TIMING, hipEventDisableTiming);
SAME(CUDA_HOST_REGISTER_PORTABLE, hipHostRegisterPortable);
SAME(CUDA_POOL_REUSE_INTERNAL_DEPENDENCIES, hipMemPoolReuseAllowInternalDependencies);
SAME(CUDA_POOL_RELEASE_THRESHOLD, hipMemPoolAttrReleaseThreshold);
SAME(CUDA_POOL_RESERVED_CURRENT, hipMemPoolAttrReservedMemCurrent);
SAME(CUDA_POOL_USED_CURRENT, hipMemPoolAttrUsedMemCurrent);
SAME(CUDA_ALLOCATION_PINNED, hipMemAllocationTypePinned);
SAME(CUDA_LOCATION_DEVICE, hipMemLocationTypeDevice);
SAME(sizeof(struct cuda_pool_props), sizeof(hipMemPoolProps));
SAME(offsetof(struct cuda_pool_props, location), offsetof(hipMemPoolProps, location));
SAME(sizeof(struct cuda_uuid), sizeof(hipUUID));
SAME(HIP_ARCH_TEXT_BYTES, sizeof(((hipDeviceProp_t *)0)->gcnArchName));

Test(hip_abi, is_that_of_the_header)
{
    size_t arch_at = sizeof(hipDeviceProp_t) > 1000 ? HIP_ARCH_AT_R0600 : HIP_ARCH_AT_R0000; /* the second form is the longer one */

    cr_assert_eq(offsetof(hipDeviceProp_t, gcnArchName), arch_at);
    cr_assert_eq((uintptr_t)HIP_LAUNCH_PARAM_END, HIP_LAUNCH_END);
    cr_assert_eq(HIP_LAUNCH_PARAM_BUFFER_POINTER, CUDA_LAUNCH_BUFFER);
    cr_assert_eq(HIP_LAUNCH_PARAM_BUFFER_SIZE, CUDA_LAUNCH_BYTES);
}
#else
Test(hip_abi, is_that_of_the_header)
{
    cr_skip_test("no header of ROCm is installed (libamdhip64-dev)");
}
#endif
