/* Built-in kernels of the service. The rules of gpurest.h apply. */
#ifndef GPUREST_BUILTIN_H
#define GPUREST_BUILTIN_H

#include <gpurest/gpurest.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== builtin: built-in kernels ==== */

/* A module with one built-in kernel (listed by `gpurest builtins` and GET /v1/kernels). Its launches ignore grid, block and shared memory.
 * `dtype` is the element type, such as "f32". Engine "builtin" selects the service's own code, "vendor" the library of the GPU's vendor, NULL
 * leaves the choice to the service. Pass values of types that C lacks (f16, bf16) as GPUREST_BYTES. GPUREST_E_NOTFOUND: unknown name;
 * GPUREST_E_INVAL: dtype not supported. Also usable in a batch. Released by gpurest_module_unload. */
GPUREST_API gpurest_status gpurest_module_builtin(gpurest_session *session, gpurest_module **out, const char *name, const char *dtype,
                                                  const char *engine_or_null);
/* As gpurest_run, for a built-in kernel. */
GPUREST_API gpurest_status gpurest_run_builtin(gpurest_client *client, const char *name, const char *dtype, const char *engine_or_null,
                                               const gpurest_arg *args, size_t args_count, gpurest_times *times_or_null);

#ifdef __cplusplus
}
#endif

#endif
