/* Our declarations of NVRTC's interface against NVIDIA's own header, row by row; the compiler does the checks. */
#include "compile/nvrtc_abi.h"

#include <criterion/criterion.h>

#if __has_include(<nvrtc.h>)
#include <nvrtc.h>

/* From here the rows of nvrtc.def use the header's own types. */
#define nvrtc_program nvrtcProgram
#define nvrtc_code    nvrtcResult
#define NVRTC_FUNCTION(member, symbol, result, parameters)                                                                                 \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), __typeof__(result(*) parameters)), #symbol " differs");
#include "compile/nvrtc.def"
#undef NVRTC_FUNCTION
#undef nvrtc_program
#undef nvrtc_code

_Static_assert(sizeof(nvrtcResult) == sizeof(nvrtc_code), "a result travels as int");
_Static_assert((int)NVRTC_OK == (int)NVRTC_SUCCESS, "value");
_Static_assert((int)NVRTC_OUT_OF_MEMORY == (int)NVRTC_ERROR_OUT_OF_MEMORY, "value");
_Static_assert((int)NVRTC_PROGRAM_CREATION_FAILURE == (int)NVRTC_ERROR_PROGRAM_CREATION_FAILURE, "value");
_Static_assert((int)NVRTC_INVALID_INPUT == (int)NVRTC_ERROR_INVALID_INPUT, "value");
_Static_assert((int)NVRTC_INVALID_OPTION == (int)NVRTC_ERROR_INVALID_OPTION, "value");
_Static_assert((int)NVRTC_COMPILATION == (int)NVRTC_ERROR_COMPILATION, "value");
_Static_assert((int)NVRTC_BUILTIN_OPERATION_FAILURE == (int)NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, "value");
_Static_assert((int)NVRTC_NAME_EXPRESSION_NOT_VALID == (int)NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID, "value");
_Static_assert((int)NVRTC_INTERNAL_ERROR == (int)NVRTC_ERROR_INTERNAL_ERROR, "value");

Test(nvrtc_abi, agrees_with_the_header)
{
    cr_assert_eq(sizeof(nvrtcProgram), sizeof(nvrtc_program)); /* the test is that this file compiles */
}
#else
Test(nvrtc_abi, agrees_with_the_header)
{
    cr_skip_test("no CUDA toolkit on this machine");
}
#endif
