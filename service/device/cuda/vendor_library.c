/* Finds cuBLASLt and cuFFT and looks their functions up. */
#include "device/cuda/vendor_library.h"

#include "base/log.h"
#include "device/cuda/driver.h"
#include "device/device.h"

#include <stdio.h>

enum { FUNCTIONS_MAX = 16, VERSION_BYTES = 32 };

static const char *const blas_names[] = {
#define CUBLASLT(name, result, parameters) #name,
#include "device/cuda/cublaslt.def"
#undef CUBLASLT
};

static const char *const fft_names[] = {
#define CUFFT(name, parameters) #name,
#include "device/cuda/cufft.def"
#undef CUFFT
};

static_assert(sizeof(struct cublaslt_functions) == sizeof(void * [COUNT(blas_names)]), "nothing but pointers, in the order of the names");
static_assert(sizeof(struct cufft_functions) == sizeof(void * [COUNT(fft_names)]), "nothing but pointers, in the order of the names");
static_assert(COUNT(blas_names) <= FUNCTIONS_MAX && COUNT(fft_names) <= FUNCTIONS_MAX, "there is room to look them up");

/* Where they are when no path is set: in the loader's folders, or the toolkit's. The interface that is used is the same in both versions.
 */
static const char *const blas_usual[] = {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13", "libcublasLt.so.12",
                                         "/usr/local/cuda/lib64/libcublasLt.so.12", NULL};
static const char *const fft_usual[] = {"libcufft.so.12", "/usr/local/cuda/lib64/libcufft.so.12", "libcufft.so.11",
                                        "/usr/local/cuda/lib64/libcufft.so.11", NULL};

struct library {
    const char        *path; /* NULL: not wanted; "": the usual places */
    const char *const *usual;
    const char *const *names;
    size_t             count;
    bool               loaded;
    void              *slots[FUNCTIONS_MAX];
    char               version[VERSION_BYTES];
};

static struct library            blas = {.usual = blas_usual, .names = blas_names, .count = COUNT(blas_names)};
static struct library            fft = {.usual = fft_usual, .names = fft_names, .count = COUNT(fft_names)};
static struct cublaslt_functions blas_functions;
static struct cufft_functions    fft_functions;

bool vendor_library_choose(struct span name, const char *path)
{
    struct library *l = span_is(name, "cublaslt") ? &blas : span_is(name, "cufft") ? &fft : NULL;

    if (l)
        l->path = path;
    return l != NULL;
}

static bool load_from(struct library *l, const char *path)
{
    if (!library_symbols(path, l->names, l->slots, l->count))
        return false;
    for (size_t i = 0; i < l->count; i++)
        if (!l->slots[i]) {
            log_warn("device", "ignoring %s: it lacks %s", path, l->names[i]);
            return false;
        }
    return true;
}

static bool load(struct library *l)
{
    bool found = false;

    if (!l->path || l->loaded)
        return l->loaded;
    if (*l->path && !load_from(l, l->path))
        log_warn("device", "cannot load %s", l->path);
    else if (*l->path)
        found = true;
    for (size_t i = 0; !*l->path && l->usual[i] && !found; i++)
        found = load_from(l, l->usual[i]);
    return l->loaded = found;
}

void vendor_libraries_load(void)
{
    size_t number;
    int    version = 0;

    if (load(&blas) && !blas.version[0]) {
        memcpy(&blas_functions, blas.slots, sizeof blas_functions);
        number = blas_functions.cublasLtGetVersion();
        snprintf(blas.version, sizeof blas.version, "%zu.%zu.%zu", number / 10000, number / 100 % 100, number % 100);
    }
    if (load(&fft) && !fft.version[0]) {
        memcpy(&fft_functions, fft.slots, sizeof fft_functions);
        if (fft_functions.cufftGetVersion(&version) != CUFFT_OK || version < 0)
            version = 0;
        snprintf(fft.version, sizeof fft.version, "%d.%d.%d", version / 1000, version / 100 % 10, version % 100);
    }
}

const struct cublaslt_functions *cublaslt_functions(void)
{
    return blas.loaded ? &blas_functions : NULL;
}

const struct cufft_functions *cufft_functions(void)
{
    return fft.loaded ? &fft_functions : NULL;
}

const char *cublaslt_version(void)
{
    return blas.version;
}

const char *cufft_version(void)
{
    return fft.version;
}
