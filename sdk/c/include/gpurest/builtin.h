/* Kernels of the service's own library: what gpurest.h has for those of your sources. The rules of gpurest.h on threads, errors and blocking
 * hold here, too. */
#ifndef GPUREST_BUILTIN_H
#define GPUREST_BUILTIN_H

#include <gpurest/gpurest.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== builtin: kernels that are there ==== */

/* A kernel of the service's own library (`gpurest builtins`, GET /v1/kernels) as a module with that one kernel, to be launched as any other:
 * its grid, block and shared memory are its own and those of a launch are ignored; `dtype` is the type of the elements, such as "f32"; engine
 * "builtin" demands our code, "vendor" the library of the GPU's maker, NULL leaves it to the service. Values of types that C lacks (f16, bf16)
 * are GPUREST_BYTES. GPUREST_E_NOTFOUND: there is none of that name; GPUREST_E_INVAL: not for that dtype. Also in a batch. Released by
 * gpurest_module_unload. */
GPUREST_API gpurest_status gpurest_module_builtin(gpurest_session *session, gpurest_module **out, const char *name, const char *dtype,
                                                  const char *engine_or_null);
/* What gpurest_run is for sources, for such a kernel: uploads, launches, downloads and frees in one request. */
GPUREST_API gpurest_status gpurest_run_builtin(gpurest_client *client, const char *name, const char *dtype, const char *engine_or_null,
                                               const gpurest_arg *args, size_t args_count, gpurest_times *times_or_null);

#ifdef __cplusplus
}
#endif

#endif
