/* Compiled code that the service keeps, so that the same source is compiled once. The rules of gpurest.h apply. */
#ifndef GPUREST_CACHE_H
#define GPUREST_CACHE_H

#include <gpurest/gpurest.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ==== cache: compiled code that the service keeps ====
 * A caller sees and removes the code of its own sources, that of all callers where the service shares it. The code of built-in kernels is
 * everybody's. None of these is queued in a batch. */

typedef struct gpurest_cache_info_t {
    size_t   struct_size;
    uint64_t entries, bytes;         /* of files */
    uint64_t hits, misses;           /* how often code was found, and not found, since the service started */
    uint64_t entries_max, bytes_max; /* of the whole cache, over all callers; 0: nothing is kept */
    int      shared;                 /* non-zero: callers share the code of their sources */
} gpurest_cache_info_t;
#define GPUREST_CACHE_INFO_INIT                                                                                                            \
    {                                                                                                                                      \
        sizeof(gpurest_cache_info_t), 0, 0, 0, 0, 0, 0, 0                                                                                  \
    }

/* `all` non-zero: entries, bytes, hits and misses of all callers and the built-in kernels; GPUREST_E_AUTH without the scope admin.
 * out->struct_size must be set. */
GPUREST_API gpurest_status gpurest_cache_info(gpurest_client *client, int all, gpurest_cache_info_t *out);
/* Removes code that was not used for that many seconds, 0: any. Loaded modules stay. `all` as above; where callers share the cache it needs
 * the scope admin in any case. The two results may be NULL. */
GPUREST_API gpurest_status gpurest_cache_clear(gpurest_client *client, uint64_t unused_s, int all, uint64_t *removed_entries,
                                               uint64_t *removed_bytes);

/* ==== warm: compile ahead of use ==== */

typedef struct gpurest_warm_source {
    const char                    *source;  /* CUDA C++ */
    const gpurest_compile_options *options; /* as gpurest_compile_with will have them; NULL: none */
} gpurest_warm_source;
/* Each kernel for each of its dtypes, and each source, is compiled for each device. */
typedef struct gpurest_warm_options {
    size_t                     struct_size;
    const char *const         *kernels; /* names of built-in kernels */
    size_t                     kernels_count;
    const char *const         *dtypes; /* that all of these kernels have, such as "f32"; none: all of each kernel */
    size_t                     dtypes_count;
    const gpurest_warm_source *sources;
    size_t                     sources_count;
    const char *const         *devices; /* ids or backends; none: the device that a new session gets */
    size_t                     devices_count;
} gpurest_warm_options;
#define GPUREST_WARM_OPTIONS_INIT                                                                                                          \
    {                                                                                                                                      \
        sizeof(gpurest_warm_options), 0, 0, 0, 0, 0, 0, 0, 0                                                                               \
    }
typedef struct gpurest_warm gpurest_warm; /* compilations under way at the service */

typedef struct gpurest_warm_progress_t {
    size_t   struct_size;
    char     state[16]; /* "running", "succeeded", "failed" (at least one has), "cancelled" */
    uint64_t total, succeeded, failed;
} gpurest_warm_progress_t;
#define GPUREST_WARM_PROGRESS_INIT                                                                                                         \
    {                                                                                                                                      \
        sizeof(gpurest_warm_progress_t), {0}, 0, 0, 0                                                                                      \
    }

/* Has the service compile into its cache in the background, one after the other; copies what it is given. Never retried. GPUREST_E_NOTFOUND:
 * no such kernel or device; GPUREST_E_LIMIT: too many at once; GPUREST_E_UNSUPPORTED: the service keeps no code, or has no compiler. Released
 * by gpurest_warm_free. */
GPUREST_API gpurest_status gpurest_warm_start(gpurest_client *client, gpurest_warm **out, const gpurest_warm_options *options);
/* How it stands now; any number of threads may ask, and wait. GPUREST_E_NOTFOUND: it ended so long ago that the service has forgotten it.
 * out->struct_size must be set. */
GPUREST_API gpurest_status gpurest_warm_progress(gpurest_warm *warm, gpurest_warm_progress_t *out);
/* Waits until all is compiled. Otherwise the error of the first that failed, for a source with the compiler's first message;
 * GPUREST_E_CANCELLED: it was cancelled; GPUREST_E_TIMEOUT: not within timeout_ms (< 0: no limit), and it goes on. */
GPUREST_API gpurest_status gpurest_warm_wait(gpurest_warm *warm, int timeout_ms);
/* Nothing further is compiled; what is compiled stays. Fine if it had ended. */
GPUREST_API gpurest_status gpurest_warm_cancel(gpurest_warm *warm);
/* Local. NULL is fine. The service goes on with it. */
GPUREST_API void gpurest_warm_free(gpurest_warm *warm);

#ifdef __cplusplus
}
#endif

#endif
