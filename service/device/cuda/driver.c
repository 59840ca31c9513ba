/* Loads libcuda at run time and translates its results; the only user of the dynamic loader in device/. */
#include "device/cuda/driver.h"

#include "base/log/log.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum need { OPTIONAL, REQUIRED };

enum { DRIVER_PATH_BYTES = 4096 };

static const struct driver_row {
    const char *name;
    size_t      offset; /* of its pointer in struct cuda_driver */
    enum need   need;
} rows[] = {
#define DRIVER(name, need, arguments) {#name, offsetof(struct cuda_driver, name), need},
#include "device/cuda/driver.def"
#undef DRIVER
};

static const struct {
    cuda_result result;
    enum status status;
} meanings[] = {
#define RESULT(NAME, number, status) {number, STATUS_##status},
#include "device/cuda/results.def"
#undef RESULT
};

/* Where the driver is when no path is set. A worker has no environment, so the loader searches only the system's folders; containers get
 * the driver in folders of their own. */
static const char *const usual[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                                    "/usr/lib/wsl/lib/libcuda.so.1"};

static struct cuda_driver loaded;
static bool               is_loaded;
static const char        *library; /* NULL: the usual places */

void cuda_driver_choose(const char *path)
{
    library = path && *path ? path : NULL;
}

/* The path where the loader found the driver; NULL: unknown. */
static const char *driver_path(void)
{
    void   *symbol;
    Dl_info driver;

    memcpy(&symbol, &loaded.cuInit, sizeof symbol);
    return is_loaded && dladdr(symbol, &driver) ? driver.dli_fname : NULL;
}

/* The name without a build is a link to the name with it. */
const char *cuda_driver_build(void)
{
    static char build[DRIVER_PATH_BYTES];
    const char  stem[] = "libcuda.so.";
    const char *path = driver_path();
    char       *real = path ? realpath(path, NULL) : NULL;
    const char *at = real ? strrchr(real, '/') : NULL;

    if (at && strncmp(at + 1, stem, sizeof stem - 1) == 0)
        snprintf(build, sizeof build, "%s", at + sizeof stem);
    free(real);
    return build;
}

/* Opens `name` in the folder that the driver was loaded from. */
static void *open_beside_driver(const char *name)
{
    char        path[DRIVER_PATH_BYTES];
    const char *beside = strchr(name, '/') ? NULL : driver_path();
    const char *end = beside ? strrchr(beside, '/') : NULL;

    if (!end || (size_t)snprintf(path, sizeof path, "%.*s/%s", (int)(end - beside), beside, name) >= sizeof path)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Paths in the loader's texts go to the log only. */
static void *library_open(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        log_debug("device", "cannot load a library: %s", dlerror());
    return handle ? handle : open_beside_driver(path);
}

static void *driver_open(void)
{
    void *handle = library ? library_open(library) : NULL;

    for (size_t i = 0; !library && !handle && i < COUNT(usual); i++)
        handle = library_open(usual[i]);
    return handle;
}

bool library_symbols(const char *path, const char *const names[], void *slots[], size_t count)
{
    void *handle = library_open(path);

    if (!handle)
        return false;
    for (size_t i = 0; i < count; i++)
        slots[i] = dlsym(handle, names[i]);
    return true;
}

/* The first required function that is missing; NULL when all are there. */
static const char *fill_functions(void *handle, struct cuda_driver *cu)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        void *symbol = dlsym(handle, rows[i].name);

        if (!symbol && rows[i].need == REQUIRED)
            return rows[i].name;
        memcpy((char *)cu + rows[i].offset, &symbol, sizeof symbol);
    }
    return NULL;
}

const struct cuda_driver *cuda_driver_load(struct problem *why)
{
    struct cuda_driver cu;
    const char        *missing;
    void              *handle;

    if (is_loaded)
        return &loaded;
    handle = driver_open();
    if (!handle) {
        problem_set(why, STATUS_DEVICE_NOT_FOUND, "cannot load a CUDA driver library");
        return NULL;
    }
    missing = fill_functions(handle, &cu);
    if (missing) {
        problem_set(why, STATUS_DEVICE_NOT_FOUND, "the CUDA driver is too old: it lacks %s", missing);
        dlclose(handle);
        return NULL;
    }
    loaded = cu;
    is_loaded = true;
    /* The driver looks for its PTX compiler only in the system's folders, or finds it already loaded. */
    library_open("libnvidia-ptxjitcompiler.so.1");
    return &loaded;
}

enum status cuda_status(cuda_result r)
{
    for (size_t i = 0; i < COUNT(meanings); i++)
        if (meanings[i].result == r)
            return meanings[i].status;
    return STATUS_DEVICE_ERROR;
}

const char *cuda_result_name(const struct cuda_driver *cu, cuda_result r)
{
    const char *name = NULL;

    if (cu->cuGetErrorName(r, &name) != CUDA_RESULT_SUCCESS || !name)
        return "CUDA_ERROR_UNKNOWN";
    return name;
}

enum status cuda_problem(const struct cuda_driver *cu, cuda_result r, struct problem *why, const char *doing)
{
    enum status st = cuda_status(r);
    const char *name;

    if (st == STATUS_OK || st == STATUS_PENDING)
        return st;
    name = cuda_result_name(cu, r);
    return problem_cuda(why, st, (int)r, name, "%s failed: %s", doing, name);
}
