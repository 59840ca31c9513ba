/* Loads libamdhip64 and makes of it a struct cuda_driver: the functions that agree as they are, the others behind one of this file's. */
#include "device/hip/driver.h"

enum {
    EXTRA_WORDS = 5,         /* of that list, as the backend makes it */
    PROPERTIES_BYTES = 4096, /* more than hipDeviceProp_t has in any release */
};

enum need { OPTIONAL, REQUIRED };

static struct {
#define SHARED(member, symbol, need)
#define OWN(name, need, result, arguments) result(*name) arguments;
#include "device/hip/functions.def"
#undef SHARED
#undef OWN
} hip;

static const struct {
    const char *symbol;
    enum need   need;
} rows[] = {
#define SHARED(member, symbol, need)       {#symbol, need},
#define OWN(name, need, result, arguments) {#name, need},
#include "device/hip/functions.def"
#undef SHARED
#undef OWN
};

static const struct {
    unsigned ours, hips;
} attributes[] = {
#define HIP_ATTRIBUTE(NAME, name, number) {CUDA_ATTRIBUTE_##NAME, number},
#include "device/hip/attributes.def"
#undef HIP_ATTRIBUTE
};

/* A worker has no environment, so the loader searches only the system's folders; ROCm's own packages install elsewhere. */
static const char *const usual[] = {"libamdhip64.so.7",
                                    "libamdhip64.so.6",
                                    "libamdhip64.so.5",
                                    "/opt/rocm/lib/libamdhip64.so.7",
                                    "/opt/rocm/lib/libamdhip64.so.6",
                                    "/opt/rocm/lib/libamdhip64.so.5"};

static struct cuda_driver loaded;
static bool               is_loaded;
static const char        *library; /* NULL: the usual places */

void hip_driver_choose(const char *path)
{
    library = path && *path ? path : NULL;
}

/* ---- what differs ---- */

/* Without a device some releases say that it is an invalid one. */
static cuda_result start(unsigned flags)
{
    cuda_result r = hip.hipInit(flags);

    return r == CUDA_RESULT_ERROR_INVALID_DEVICE ? CUDA_RESULT_ERROR_NO_DEVICE : r;
}

static cuda_result error_name(cuda_result result, const char **name)
{
    *name = hip.hipGetErrorName(result);
    return CUDA_RESULT_SUCCESS;
}

static cuda_result device_attribute(int *value, unsigned attribute, cuda_ordinal device)
{
    for (size_t i = 0; i < COUNT(attributes); i++)
        if (attributes[i].ours == attribute)
            return hip.hipDeviceGetAttribute(value, attributes[i].hips, device);
    return CUDA_RESULT_ERROR_INVALID_VALUE;
}

/* HIP has a current device for each thread, and its primary context comes and goes by itself. */
static cuda_result retain_context(cuda_context *context, cuda_ordinal device)
{
    *context = (cuda_context)(void *)&loaded; /* nobody looks into it */
    return hip.hipSetDevice(device);
}

static cuda_result release_context(cuda_ordinal device)
{
    (void)device;
    return CUDA_RESULT_SUCCESS;
}

static cuda_result select_context(cuda_context context)
{
    (void)context; /* the only one, which retain_context() has selected */
    return CUDA_RESULT_SUCCESS;
}

static cuda_result launch(cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                          unsigned block_z, unsigned shared_bytes, cuda_stream stream, void **params, void **extra)
{
    void       *words[EXTRA_WORDS];
    cuda_result r;

    if (extra) {
        memcpy(words, extra, sizeof words);
        words[EXTRA_WORDS - 1] = (void *)(uintptr_t)HIP_LAUNCH_END;
    }
    r = hip.hipModuleLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params,
                                  extra ? words : NULL);
    return r == HIP_ERROR_INVALID_CONFIGURATION ? CUDA_RESULT_ERROR_INVALID_VALUE : r;
}

static cuda_result best_block(int *grid, int *block, cuda_function function, cuda_block_to_shared shared_of, size_t shared_bytes,
                              int block_limit)
{
    if (shared_of)
        return CUDA_RESULT_ERROR_INVALID_VALUE;
    return hip.hipModuleOccupancyMaxPotentialBlockSize(grid, block, function, shared_bytes, block_limit);
}

/* ---- loading ---- */

static void fill_table(struct cuda_driver *cu, void *const slots[])
{
    size_t i = 0;

#define SHARED(member, symbol, need)       memcpy(&cu->member, &slots[i++], sizeof cu->member);
#define OWN(name, need, result, arguments) memcpy(&hip.name, &slots[i++], sizeof hip.name);
#include "device/hip/functions.def"
#undef SHARED
#undef OWN
    cu->cuInit = start;
    cu->cuGetErrorName = error_name;
    cu->cuDeviceGetAttribute = device_attribute;
    cu->cuDevicePrimaryCtxRetain = retain_context;
    cu->cuDevicePrimaryCtxRelease_v2 = release_context;
    cu->cuCtxSetCurrent = select_context;
    cu->cuLaunchKernel = launch;
    cu->cuOccupancyMaxPotentialBlockSize = best_block;
}

static bool find_library(const char *const names[], void *slots[])
{
    bool found = library && library_symbols(library, names, slots, COUNT(rows));

    for (size_t i = 0; !library && !found && i < COUNT(usual); i++)
        found = library_symbols(usual[i], names, slots, COUNT(rows));
    return found;
}

const struct cuda_driver *hip_driver_load(struct problem *why)
{
    const char *names[COUNT(rows)];
    void       *slots[COUNT(rows)];

    if (is_loaded)
        return &loaded;
    for (size_t i = 0; i < COUNT(rows); i++)
        names[i] = rows[i].symbol;
    if (!find_library(names, slots)) {
        problem_set(why, STATUS_DEVICE_NOT_FOUND, "cannot load AMD's HIP library, libamdhip64");
        return NULL;
    }
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rows[i].need == REQUIRED && !slots[i]) {
            problem_set(why, STATUS_DEVICE_NOT_FOUND, "the HIP library is too old: it lacks %s", rows[i].symbol);
            return NULL;
        }
    fill_table(&loaded, slots);
    is_loaded = true;
    return &loaded;
}

/* Only this member is read of a structure whose layout has changed once; what is no name there is not believed. */
bool hip_arch(int index, char out[HIP_ARCH_BYTES])
{
    char properties[PROPERTIES_BYTES] = {0};
    bool is_new = hip.hipGetDevicePropertiesR0600 != NULL;
    cuda_result (*get)(void *, int) = is_new ? hip.hipGetDevicePropertiesR0600 : hip.hipGetDeviceProperties;
    const char *text = properties + (is_new ? HIP_ARCH_AT_R0600 : HIP_ARCH_AT_R0000);
    size_t      bytes;

    if (!get || get(properties, index) != CUDA_RESULT_SUCCESS || strncmp(text, "gfx", 3) != 0)
        return false;
    bytes = strnlen(text, HIP_ARCH_TEXT_BYTES);
    return span_copy(span_first((struct span){text, bytes}, strcspn(text, ":")), out, HIP_ARCH_BYTES) && span_holds_only(span_of(out), "-");
}
