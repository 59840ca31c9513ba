/* Finds cuBLASLt, cuFFT and cuSOLVER and looks their functions up. */
#include "device/cuda/vendor/vendor_library.h"

#include "base/log/log.h"
#include "device/cuda/driver.h"
#include "device/device.h"

#include <stdio.h>

enum { FUNCTIONS_MAX = 48, VERSION_BYTES = 32 };

enum need { OPTIONAL, REQUIRED };

static const char *const blas_names[] = {
#define CUBLASLT(name, result, parameters) #name,
#include "device/cuda/vendor/cublaslt.def"
#undef CUBLASLT
};

static const char *const fft_names[] = {
#define CUFFT(name, parameters) #name,
#include "device/cuda/vendor/cufft.def"
#undef CUFFT
};

static const char *const solver_names[] = {
#define CUSOLVER(member, need, symbol) #symbol,
#include "device/cuda/vendor/cusolver.def"
#undef CUSOLVER
};

static const struct {
    size_t    offset;
    enum need need;
} solver_places[] = {
#define CUSOLVER(member, need, symbol) {offsetof(struct cusolver_functions, member), need},
#include "device/cuda/vendor/cusolver.def"
#undef CUSOLVER
};

static_assert(sizeof(struct cublaslt_functions) == sizeof(void * [COUNT(blas_names)]), "nothing but pointers, in the order of the names");
static_assert(sizeof(struct cufft_functions) == sizeof(void * [COUNT(fft_names)]), "nothing but pointers, in the order of the names");
static_assert(COUNT(blas_names) <= FUNCTIONS_MAX && COUNT(fft_names) <= FUNCTIONS_MAX && COUNT(solver_names) <= FUNCTIONS_MAX,
              "there is room to look them up");

/* Where they are when no path is set: in the loader's folders, or the toolkit's. The used interface is the same in both versions. */
static const char *const blas_usual[] = {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13", "libcublasLt.so.12",
                                         "/usr/local/cuda/lib64/libcublasLt.so.12", NULL};
static const char *const fft_usual[] = {"libcufft.so.12", "/usr/local/cuda/lib64/libcufft.so.12", "libcufft.so.11",
                                        "/usr/local/cuda/lib64/libcufft.so.11", NULL};
static const char *const solver_usual[] = {"libcusolver.so.12", "/usr/local/cuda/lib64/libcusolver.so.12", "libcusolver.so.11",
                                           "/usr/local/cuda/lib64/libcusolver.so.11", NULL};

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
static struct library            solver = {.usual = solver_usual, .names = solver_names, .count = COUNT(solver_names)};
static struct cublaslt_functions blas_functions;
static struct cufft_functions    fft_functions;
static struct cusolver_functions solver_functions;

static bool may_lack(const struct library *l, size_t i)
{
    return l == &solver && solver_places[i].need == OPTIONAL;
}

/* NULL: there is none of that name. */
static struct library *library_of(struct span name)
{
    return span_is(name, "cublaslt") ? &blas : span_is(name, "cufft") ? &fft : span_is(name, "cusolver") ? &solver : NULL;
}

bool vendor_library_choose(struct span name, const char *path)
{
    struct library *l = library_of(name);

    if (l)
        l->path = path;
    return l != NULL;
}

static bool load_from(struct library *l, const char *path)
{
    if (!library_symbols(path, l->names, l->slots, l->count))
        return false;
    for (size_t i = 0; i < l->count; i++)
        if (!l->slots[i] && !may_lack(l, i)) {
            log_warn("device", "ignoring %s: it lacks %s", path, l->names[i]);
            return false;
        }
    return true;
}

static bool load_library(struct library *l)
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

    if (load_library(&blas) && !blas.version[0]) {
        memcpy(&blas_functions, blas.slots, sizeof blas_functions);
        number = blas_functions.cublasLtGetVersion();
        snprintf(blas.version, sizeof blas.version, "%zu.%zu.%zu", number / 10000, number / 100 % 100, number % 100);
    }
    if (load_library(&fft) && !fft.version[0]) {
        memcpy(&fft_functions, fft.slots, sizeof fft_functions);
        if (fft_functions.cufftGetVersion(&version) != CUFFT_OK || version < 0)
            version = 0;
        snprintf(fft.version, sizeof fft.version, "%d.%d.%d", version / 1000, version / 100 % 10, version % 100);
    }
    if (load_library(&solver) && !solver.version[0]) {
        for (size_t i = 0; i < solver.count; i++)
            memcpy((char *)&solver_functions + solver_places[i].offset, &solver.slots[i], sizeof solver.slots[i]);
        version = 0;
        if (solver_functions.version(&version) != CUSOLVER_OK || version < 0)
            version = 0;
        snprintf(solver.version, sizeof solver.version, "%d.%d.%d", version / 1000, version / 100 % 10, version % 100);
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

const struct cusolver_functions *cusolver_functions(void)
{
    return solver.loaded ? &solver_functions : NULL;
}

const char *vendor_library_version(const char *name)
{
    return library_of(span_of(name))->version;
}
