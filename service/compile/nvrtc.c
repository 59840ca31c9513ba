/* The only user of NVRTC's library file: finds the library, its builtins and its headers. */
#include "compile/nvrtc.h"

#include <dlfcn.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/library.h"
#include "base/log/log.h"

/* Versioned names only: the plain one is for linking. */
static const char *const library_names[LIBRARY_NAMES] = {"libnvrtc.so.13", "libnvrtc.so.12"};

/* Relative to the library's folder: toolkit, wheel of CUDA 13, wheels of CUDA 12. */
static const char *const include_places[] = {"../include", "../../cuda_runtime/include", "../../include"};

static void cut_to_folder(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        *slash = '\0';
    else
        path[0] = '\0';
}

/* The loader's own search first, then the toolkit's folder, then beside our executable. */
static void *open_usual(void)
{
    void *lib = library_open("", library_names);

    lib = lib ? lib : library_open(TOOLKIT_LIBRARIES, library_names);
    return lib ? lib : library_open_beside(library_names);
}

/* The name of the first missing function, or NULL when all were found. */
static const char *bind_all(void *lib, struct nvrtc_functions *call)
{
    const struct library_function functions[] = {
#define NVRTC_FUNCTION(member, symbol, result, parameters) {#symbol, (void **)(void *)&call->member},
#include "compile/nvrtc.def"
#undef NVRTC_FUNCTION
    };

    return library_bind(lib, functions, COUNT(functions));
}

static void find_folder(struct nvrtc *n)
{
    Dl_info info;
    char    real[PATH_MAX];
    void   *symbol;

    memcpy(&symbol, &n->call.version, sizeof symbol);
    n->folder[0] = '\0';
    if (!dladdr(symbol, &info) || !info.dli_fname || !realpath(info.dli_fname, real))
        return;
    cut_to_folder(real);
    snprintf(n->folder, sizeof n->folder, "%s", real);
}

/* NVRTC opens its builtins by plain name at the first compilation. That works only on the loader's path and not in the jail. Loading
 * them beforehand by full path makes the name known to the loader. */
static void load_builtins(const struct nvrtc *n)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/libnvrtc-builtins.so.%d.%d", n->folder, n->major, n->minor);
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL))
        return;
    snprintf(path, sizeof path, "libnvrtc-builtins.so.%d.%d", n->major, n->minor);
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
        log_warn("compile", "cannot find the builtins library of NVRTC: %s", dlerror());
}

enum status nvrtc_load(struct nvrtc *out, const char *path, struct problem *why)
{
    struct nvrtc got = {0};
    void        *lib = path && path[0] ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : open_usual();
    const char  *missing;

    if (!lib) {
        log_info("compile", "cannot load NVRTC: %s", dlerror());
        return problem_set(why, STATUS_COMPILER_UNAVAILABLE, "The NVRTC library was not found");
    }
    missing = bind_all(lib, &got.call);
    if (missing) {
        problem_set(why, STATUS_COMPILER_UNAVAILABLE, "The NVRTC library has no %s", missing);
        goto unload;
    }
    if (got.call.version(&got.major, &got.minor) != NVRTC_OK) {
        problem_set(why, STATUS_COMPILER_UNAVAILABLE, "Cannot read the version of the NVRTC library");
        goto unload;
    }
    find_folder(&got);
    load_builtins(&got);
    *out = got;
    return STATUS_OK;
unload:
    dlclose(lib);
    return STATUS_COMPILER_UNAVAILABLE;
}

static bool is_include_folder(const char *folder)
{
    char probe[PATH_MAX];
    int  n = snprintf(probe, sizeof probe, "%s/cuda_fp16.h", folder);

    return n > 0 && n < (int)sizeof probe && access(probe, R_OK) == 0;
}

bool nvrtc_include_folder(const struct nvrtc *n, char *out, size_t room)
{
    char path[PATH_MAX + 64];

    for (size_t i = 0; n->folder[0] && i < COUNT(include_places); i++) {
        snprintf(path, sizeof path, "%s/%s", n->folder, include_places[i]);
        if (is_include_folder(path))
            return span_copy(span_of(path), out, room);
    }
    return is_include_folder("/usr/local/cuda/include") && span_copy(SPAN_LITERAL("/usr/local/cuda/include"), out, room);
}
