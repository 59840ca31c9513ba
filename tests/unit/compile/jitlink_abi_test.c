/* Our declarations of nvJitLink against its real header. Skipped without a toolkit. */
#include <criterion/criterion.h>

#include "compile/jitlink_abi.h"

#if __has_include(<nvJitLink.h>)
#include <nvJitLink.h>

_Static_assert((int)JITLINK_OK == (int)NVJITLINK_SUCCESS, "success");
_Static_assert((int)JITLINK_UNRECOGNIZED_ARCH == (int)NVJITLINK_ERROR_UNRECOGNIZED_ARCH, "unrecognized architecture");
_Static_assert((int)JITLINK_UNSUPPORTED_ARCH == (int)NVJITLINK_ERROR_UNSUPPORTED_ARCH, "unsupported architecture");
_Static_assert((int)JITLINK_PTX == (int)NVJITLINK_INPUT_PTX, "PTX");
_Static_assert(sizeof(jitlink_handle) == sizeof(nvJitLinkHandle), "handle");

/* Types that differ but are passed the same way: our handle and integers for the library's own types. */
Test(jitlink_abi, parameters_are_the_headers)
{
    nvJitLinkResult (*create)(nvJitLinkHandle *, uint32_t, const char **) = nvJitLinkCreate;
    nvJitLinkResult (*destroy)(nvJitLinkHandle *) = nvJitLinkDestroy;
    nvJitLinkResult (*add)(nvJitLinkHandle, nvJitLinkInputType, const void *, size_t, const char *) = nvJitLinkAddData;
    nvJitLinkResult (*complete)(nvJitLinkHandle) = nvJitLinkComplete;
    nvJitLinkResult (*cubin_bytes)(nvJitLinkHandle, size_t *) = nvJitLinkGetLinkedCubinSize;
    nvJitLinkResult (*cubin)(nvJitLinkHandle, void *) = nvJitLinkGetLinkedCubin;
    nvJitLinkResult (*log_bytes)(nvJitLinkHandle, size_t *) = nvJitLinkGetErrorLogSize;
    nvJitLinkResult (*log)(nvJitLinkHandle, char *) = nvJitLinkGetErrorLog;

    cr_assert(create && destroy && add && complete && cubin_bytes && cubin && log_bytes && log);
}
#else
Test(jitlink_abi, parameters_are_the_headers)
{
    cr_skip_test("no CUDA toolkit on this machine");
}
#endif
