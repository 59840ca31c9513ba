/* Our declarations of cuBLASLt's, cuFFT's and cuSOLVER's interfaces against the vendor's headers, if they are installed. */
#include <criterion/criterion.h>

#if __has_include(<cublasLt.h>) && __has_include(<cufft.h>)
#include <cublasLt.h>
#include <cufft.h>

#include "device/cuda/vendor/cublaslt_abi.h"
#include "device/cuda/vendor/cufft_abi.h"

#include <assert.h>

#define SAME(ours, theirs) static_assert((long long)(ours) == (long long)(theirs), #theirs)

SAME(sizeof(cublas_status), sizeof(cublasStatus_t));
SAME(CUBLASLT_OK, CUBLAS_STATUS_SUCCESS);
SAME(CUBLASLT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(CUBLASLT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(CUBLASLT_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(CUBLASLT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(sizeof(unsigned), sizeof(cudaDataType));
SAME(CUBLASLT_R_32F, CUDA_R_32F);
SAME(CUBLASLT_R_64F, CUDA_R_64F);
SAME(CUBLASLT_R_16F, CUDA_R_16F);
SAME(CUBLASLT_R_16BF, CUDA_R_16BF);
SAME(sizeof(unsigned), sizeof(cublasComputeType_t));
SAME(CUBLASLT_COMPUTE_32F, CUBLAS_COMPUTE_32F);
SAME(CUBLASLT_COMPUTE_64F, CUBLAS_COMPUTE_64F);
SAME(CUBLASLT_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(sizeof(unsigned), sizeof(cublasLtMatrixLayoutAttribute_t));
SAME(CUBLASLT_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(CUBLASLT_LAYOUT_STRIDED_BATCH_OFFSET, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(sizeof(unsigned), sizeof(cublasLtMatmulPreferenceAttributes_t));
SAME(CUBLASLT_PREFERENCE_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CUBLASLT_PREFERENCE_REDUCTION_SCHEMES, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(CUBLASLT_REDUCTION_IN_PLACE, CUBLASLT_REDUCTION_SCHEME_INPLACE);
SAME(CUBLASLT_REDUCTION_COMPUTE_TYPE, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(CUBLASLT_REDUCTION_OUTPUT_TYPE, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
SAME(CUBLASLT_PREFERENCE_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(CUBLASLT_PREFERENCE_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(CUBLASLT_PREFERENCE_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(CUBLASLT_PREFERENCE_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(sizeof(struct cublaslt_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(struct cublaslt_choice), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(struct cublaslt_choice, algorithm), offsetof(cublasLtMatmulHeuristicResult_t, algo));
SAME(offsetof(struct cublaslt_choice, workspace_bytes), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(struct cublaslt_choice, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
SAME(offsetof(struct cublaslt_choice, waves), offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
SAME(offsetof(struct cublaslt_choice, reserved), offsetof(cublasLtMatmulHeuristicResult_t, reserved));

SAME(sizeof(cufft_result), sizeof(cufftResult));
SAME(sizeof(cufft_plan), sizeof(cufftHandle));
SAME(sizeof(unsigned), sizeof(cufftType));
SAME(CUFFT_OK, CUFFT_SUCCESS);
SAME(CUFFT_OUT_OF_MEMORY, CUFFT_ALLOC_FAILED);
SAME(CUFFT_VALUE_INVALID, CUFFT_INVALID_VALUE);
SAME(CUFFT_SIZE_INVALID, CUFFT_INVALID_SIZE);
SAME(CUFFT_NOT_DONE, CUFFT_NOT_IMPLEMENTED);
SAME(CUFFT_NOT_OFFERED, CUFFT_NOT_SUPPORTED);
SAME(CUFFT_KIND_C2C, CUFFT_C2C);
SAME(CUFFT_KIND_Z2Z, CUFFT_Z2Z);
SAME(CUFFT_DIRECTION_FORWARD, CUFFT_FORWARD);
SAME(CUFFT_DIRECTION_INVERSE, CUFFT_INVERSE);

/* The functions as in the rows, parameter by parameter, with the headers' names for enumerations, opaque pointers and complex numbers. */
#define TAKES(function, type) static_assert(__builtin_types_compatible_p(__typeof__(&function), type), #function " differs")
TAKES(cublasLtMatmul,
      __typeof__(cublasStatus_t(*)(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *, cublasLtMatrixLayout_t, const void *,
                                   cublasLtMatrixLayout_t, const void *, const void *, cublasLtMatrixLayout_t, void *,
                                   cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t, cudaStream_t)));
TAKES(cublasLtMatmulAlgoGetHeuristic,
      __typeof__(cublasStatus_t(*)(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                   cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                                   cublasLtMatmulHeuristicResult_t *, int *)));
TAKES(cublasLtGetVersion, __typeof__(size_t(*)(void)));
TAKES(cublasLtCreate, __typeof__(cublasStatus_t(*)(cublasLtHandle_t *)));
TAKES(cublasLtDestroy, __typeof__(cublasStatus_t(*)(cublasLtHandle_t)));
TAKES(cublasLtMatmulDescCreate, __typeof__(cublasStatus_t(*)(cublasLtMatmulDesc_t *, cublasComputeType_t, cudaDataType_t)));
TAKES(cublasLtMatmulDescDestroy, __typeof__(cublasStatus_t(*)(cublasLtMatmulDesc_t)));
TAKES(cublasLtMatrixLayoutCreate, __typeof__(cublasStatus_t(*)(cublasLtMatrixLayout_t *, cudaDataType, uint64_t, uint64_t, int64_t)));
TAKES(cublasLtMatrixLayoutDestroy, __typeof__(cublasStatus_t(*)(cublasLtMatrixLayout_t)));
TAKES(cublasLtMatrixLayoutSetAttribute,
      __typeof__(cublasStatus_t(*)(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void *, size_t)));
TAKES(cublasLtMatmulPreferenceCreate, __typeof__(cublasStatus_t(*)(cublasLtMatmulPreference_t *)));
TAKES(cublasLtMatmulPreferenceDestroy, __typeof__(cublasStatus_t(*)(cublasLtMatmulPreference_t)));
TAKES(cublasLtMatmulPreferenceSetAttribute,
      __typeof__(cublasStatus_t(*)(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void *, size_t)));
TAKES(cufftMakePlanMany64, __typeof__(cufftResult(*)(cufftHandle, int, long long *, long long *, long long, long long, long long *,
                                                     long long, long long, cufftType, long long, size_t *)));
TAKES(cufftGetVersion, __typeof__(cufftResult(*)(int *)));
TAKES(cufftCreate, __typeof__(cufftResult(*)(cufftHandle *)));
TAKES(cufftDestroy, __typeof__(cufftResult(*)(cufftHandle)));
TAKES(cufftSetAutoAllocation, __typeof__(cufftResult(*)(cufftHandle, int)));
TAKES(cufftSetWorkArea, __typeof__(cufftResult(*)(cufftHandle, void *)));
TAKES(cufftSetStream, __typeof__(cufftResult(*)(cufftHandle, cudaStream_t)));
TAKES(cufftExecC2C, __typeof__(cufftResult(*)(cufftHandle, cufftComplex *, cufftComplex *, int)));
TAKES(cufftExecZ2Z, __typeof__(cufftResult(*)(cufftHandle, cufftDoubleComplex *, cufftDoubleComplex *, int)));

Test(vendor_abi, agrees_with_the_headers)
{
    cr_assert_eq(sizeof(cublasLtMatmulAlgo_t), 8 * sizeof(uint64_t)); /* the test is that this file compiles */
}
#else
Test(vendor_abi, agrees_with_the_headers)
{
    cr_skip_test("no CUDA toolkit on this machine");
}
#endif

#if __has_include(<cusolverDn.h>) && __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#include <cusolverDn.h>

#include "device/cuda/vendor/cusolver_abi.h"

#define EQUAL(ours, theirs) static_assert((long long)(ours) == (long long)(theirs), #theirs)

EQUAL(sizeof(cusolver_status), sizeof(cusolverStatus_t));
EQUAL(sizeof(cusolver_status), sizeof(cublasStatus_t));
EQUAL(CUSOLVER_OK, CUSOLVER_STATUS_SUCCESS);
EQUAL(CUSOLVER_NO_MEMORY, CUSOLVER_STATUS_ALLOC_FAILED);
EQUAL(CUSOLVER_VALUE_INVALID, CUSOLVER_STATUS_INVALID_VALUE);
EQUAL(CUSOLVER_ARCH_UNKNOWN, CUSOLVER_STATUS_ARCH_MISMATCH);
EQUAL(CUSOLVER_TYPE_UNKNOWN, CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED);
EQUAL(CUSOLVER_NOT_OFFERED, CUSOLVER_STATUS_NOT_SUPPORTED);
EQUAL(CUSOLVER_OK, CUBLAS_STATUS_SUCCESS);
EQUAL(CUBLAS_NO_MEMORY, CUBLAS_STATUS_ALLOC_FAILED);
EQUAL(CUSOLVER_TYPE_R_32F, CUDA_R_32F);
EQUAL(CUSOLVER_TYPE_R_64F, CUDA_R_64F);
EQUAL(CUSOLVER_TYPE_C_32F, CUDA_C_32F);
EQUAL(CUSOLVER_TYPE_C_64F, CUDA_C_64F);
EQUAL(CUSOLVER_NO_VECTORS, CUSOLVER_EIG_MODE_NOVECTOR);
EQUAL(CUSOLVER_VECTORS, CUSOLVER_EIG_MODE_VECTOR);
EQUAL(CUBLAS_LOWER, CUBLAS_FILL_MODE_LOWER);
EQUAL(CUBLAS_UPPER, CUBLAS_FILL_MODE_UPPER);
EQUAL(CUBLAS_ON_RIGHT, CUBLAS_SIDE_RIGHT);
EQUAL(CUBLAS_PLAIN, CUBLAS_OP_N);
EQUAL(CUBLAS_TRANSPOSED, CUBLAS_OP_T);
EQUAL(CUBLAS_DIAGONAL_READ, CUBLAS_DIAG_NON_UNIT);
EQUAL(CUBLAS_DIAGONAL_ONES, CUBLAS_DIAG_UNIT);

/* The types of the rows with the headers' names: handle, params, enumerations, and pointers to numbers of f64. */
#define H cusolverDnHandle_t
#define P cusolverDnParams_t
#define T cudaDataType
#define IS(function, type)                                                                                                                 \
    static_assert(__builtin_types_compatible_p(__typeof__(&function), __typeof__(cusolverStatus_t(*) type)), #function)
IS(cusolverGetVersion, (int *));
IS(cusolverDnCreate, (H *));
IS(cusolverDnDestroy, (H));
IS(cusolverDnSetStream, (H, cudaStream_t));
IS(cusolverDnCreateParams, (P *));
IS(cusolverDnDestroyParams, (P));
IS(cusolverDnXgetrf_bufferSize, (H, P, int64_t, int64_t, T, const void *, int64_t, T, size_t *, size_t *));
IS(cusolverDnXgetrf, (H, P, int64_t, int64_t, T, void *, int64_t, int64_t *, T, void *, size_t, void *, size_t, int *));
IS(cusolverDnXpotrf_bufferSize, (H, P, cublasFillMode_t, int64_t, T, const void *, int64_t, T, size_t *, size_t *));
IS(cusolverDnXpotrf, (H, P, cublasFillMode_t, int64_t, T, void *, int64_t, T, void *, size_t, void *, size_t, int *));
IS(cusolverDnXgeqrf_bufferSize, (H, P, int64_t, int64_t, T, const void *, int64_t, T, const void *, T, size_t *, size_t *));
IS(cusolverDnXgeqrf, (H, P, int64_t, int64_t, T, void *, int64_t, T, void *, T, void *, size_t, void *, size_t, int *));
IS(cusolverDnXsyevd_bufferSize,
   (H, P, cusolverEigMode_t, cublasFillMode_t, int64_t, T, const void *, int64_t, T, const void *, T, size_t *, size_t *));
IS(cusolverDnXsyevd,
   (H, P, cusolverEigMode_t, cublasFillMode_t, int64_t, T, void *, int64_t, T, void *, T, void *, size_t, void *, size_t, int *));
IS(cusolverDnXgesvd_bufferSize, (H, P, signed char, signed char, int64_t, int64_t, T, const void *, int64_t, T, const void *, T,
                                 const void *, int64_t, T, const void *, int64_t, T, size_t *, size_t *));
IS(cusolverDnXgesvd, (H, P, signed char, signed char, int64_t, int64_t, T, void *, int64_t, T, void *, T, void *, int64_t, T, void *,
                      int64_t, T, void *, size_t, void *, size_t, int *));
IS(cusolverDnDorgqr_bufferSize, (H, int, int, int, const double *, int, const double *, int *));
IS(cusolverDnDorgqr, (H, int, int, int, double *, int, const double *, double *, int, int *));
IS(cusolverDnZungqr, (H, int, int, int, cuDoubleComplex *, int, const cuDoubleComplex *, cuDoubleComplex *, int, int *));
#if CUSOLVER_VERSION >= 11702
IS(cusolverDnXgeev_bufferSize, (H, P, cusolverEigMode_t, cusolverEigMode_t, int64_t, T, const void *, int64_t, T, const void *, T,
                                const void *, int64_t, T, const void *, int64_t, T, size_t *, size_t *));
IS(cusolverDnXgeev, (H, P, cusolverEigMode_t, cusolverEigMode_t, int64_t, T, void *, int64_t, T, void *, T, void *, int64_t, T, void *,
                     int64_t, T, void *, size_t, void *, size_t, int *));
#endif
#define BLAS_IS(function, type)                                                                                                            \
    static_assert(__builtin_types_compatible_p(__typeof__(&function), __typeof__(cublasStatus_t(*) type)), #function)
BLAS_IS(cublasCreate_v2, (cublasHandle_t *));
BLAS_IS(cublasDestroy_v2, (cublasHandle_t));
BLAS_IS(cublasSetStream_v2, (cublasHandle_t, cudaStream_t));
BLAS_IS(cublasDgeam, (cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, const double *, const double *, int, const double *,
                      const double *, int, double *, int));
BLAS_IS(cublasDtrsm_v2, (cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t, cublasDiagType_t, int, int, const double *,
                         const double *, int, double *, int));
BLAS_IS(cublasDscal_v2, (cublasHandle_t, int, const double *, double *, int));

Test(vendor_abi, of_cusolver_agrees_with_the_headers)
{
    cr_assert_eq(sizeof(cudaDataType), sizeof(unsigned)); /* the test is that this file compiles */
}
#else
Test(vendor_abi, of_cusolver_agrees_with_the_headers)
{
    cr_skip_test("no CUDA toolkit on this machine");
}
#endif
