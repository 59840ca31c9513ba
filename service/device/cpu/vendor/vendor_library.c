/* Finds OpenBLAS and FFTW and looks their functions up; the only user of the dynamic loader in device/cpu/vendor/. */
#include "device/cpu/vendor/vendor_library.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"

enum { VERSION_BYTES = 32, SYMBOL_BYTES = 64, THREADED_MULTIPLICATIONS_MIN = 1 << 25 };

static const struct openblas_row {
    const char *symbol;
    size_t      offset; /* of its pointer in struct openblas_functions */
} openblas_rows[] = {
#define OPENBLAS(member, symbol) {#symbol, offsetof(struct openblas_functions, member)},
#include "device/cpu/vendor/openblas.def"
#undef OPENBLAS
};

static const char *const fftw_names[] = {
#define FFTW(name) #name,
#include "device/cpu/vendor/fftw.def"
#undef FFTW
};

static_assert(sizeof(struct fftw_functions) == sizeof(void * [COUNT(fftw_names)]), "nothing but pointers, in the order of the names");

/* As Debian and others name them. Those of FFTW bring the library whose threads they are. */
static const char *const openblas_usual[] = {"libopenblas.so.0", "libopenblas.so", NULL};
static const char *const fftw_usual[] = {"libfftw3_threads.so.3", NULL};
static const char *const fftwf_usual[] = {"libfftw3f_threads.so.3", NULL};

struct library {
    const char *const *usual;
    const char        *path; /* NULL: not wanted; "": the usual places */
};

static struct library            blas = {.usual = openblas_usual}, fft = {.usual = fftw_usual}, fft_single = {.usual = fftwf_usual};
static struct openblas_functions blas_functions;
static struct fftw_functions     fft_functions, fft_single_functions;
static bool                      opened, has_blas, has_fft;
static unsigned                  threads_there = 1;
static char                      blas_version[VERSION_BYTES], fft_version[VERSION_BYTES];

bool cpu_library_choose(struct span name, const char *path)
{
    struct library *l = span_is(name, "openblas") ? &blas : span_is(name, "fftw") ? &fft : span_is(name, "fftwf") ? &fft_single : NULL;

    if (l)
        l->path = path;
    return l != NULL;
}

static void *open_from(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        log_debug("device", "cannot load a library: %s", dlerror());
    return handle;
}

/* NULL: it is not wanted, or not there. */
static void *open_library(const struct library *l)
{
    void *handle = NULL;

    if (!l->path)
        return NULL;
    if (*l->path && !(handle = open_from(l->path)))
        log_warn("device", "cannot load %s", l->path);
    for (size_t i = 0; !*l->path && l->usual[i] && !handle; i++)
        handle = open_from(l->usual[i]);
    return handle;
}

static bool take_symbol(void *handle, const char *name, void *to)
{
    void *symbol = dlsym(handle, name);

    if (!symbol)
        log_warn("device", "ignoring a library: it lacks %s", name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* The word behind `before` in the library's own text. */
static void take_version(const char *text, const char *before, char out[VERSION_BYTES])
{
    const char *at = strncmp(text, before, strlen(before)) == 0 ? text + strlen(before) : "";

    snprintf(out, VERSION_BYTES, "%.*s", (int)strcspn(at, " -"), at);
    if (!out[0])
        snprintf(out, VERSION_BYTES, "unknown");
}

/* What it reads of the environment, it reads when it is opened. Its own threads would start then, before the process gives up files; and they
 * spin for 25 ms after each product, on processors that our own threads want. */
static bool open_openblas(void)
{
    void *handle;

    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OPENBLAS_THREAD_TIMEOUT", "16", 0); /* 2^16 cycles */
    handle = open_library(&blas);
    for (size_t i = 0; handle && i < COUNT(openblas_rows); i++)
        if (!take_symbol(handle, openblas_rows[i].symbol, (char *)&blas_functions + openblas_rows[i].offset))
            return false;
    if (handle)
        take_version(blas_functions.get_config(), "OpenBLAS ", blas_version);
    return handle != NULL;
}

static bool open_fftw(const struct library *l, const char *prefix, struct fftw_functions *out)
{
    void *handle = open_library(l), *slots[COUNT(fftw_names)];

    for (size_t i = 0; handle && i < COUNT(fftw_names); i++) {
        char name[SYMBOL_BYTES];

        snprintf(name, sizeof name, "%s_%s", prefix, fftw_names[i]);
        if (!take_symbol(handle, name, &slots[i]))
            return false;
    }
    if (handle)
        memcpy(out, slots, sizeof *out);
    return handle && out->init_threads() != 0;
}

void cpu_libraries_open(void)
{
    if (opened)
        return;
    opened = true;
    has_blas = open_openblas();
    has_fft = open_fftw(&fft, "fftw", &fft_functions) && open_fftw(&fft_single, "fftwf", &fft_single_functions);
    if (has_fft)
        take_version(fft_functions.version, "fftw-", fft_version);
}

void cpu_libraries_start(unsigned threads)
{
    if (has_blas)
        blas_functions.set_num_threads((int)threads);
    threads_there = threads;
}

const struct openblas_functions *openblas_functions(void)
{
    return has_blas ? &blas_functions : NULL;
}

const struct fftw_functions *fftw_functions(bool wide)
{
    return !has_fft ? NULL : wide ? &fft_functions : &fft_single_functions;
}

unsigned fftw_threads(void)
{
    return threads_there;
}

void openblas_use_threads(uint64_t multiplications)
{
    blas_functions.set_num_threads(multiplications < THREADED_MULTIPLICATIONS_MIN ? 1 : (int)threads_there);
}

const char *openblas_version(void)
{
    return blas_version;
}

const char *fftw_version_text(void)
{
    return fft_version;
}
