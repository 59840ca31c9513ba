/* Modules and the kernels in them. */
#ifndef GPUREST_SDK_MODULE_H
#define GPUREST_SDK_MODULE_H

#include "session/session.h"

struct param {
    size_t offset, bytes;
    char   type[16];
};

struct gpurest_kernel {
    const gpurest_module *module;
    char                 *name, *mangled;
    struct param         *params;
    size_t                params_count;
    gpurest_kernel_info_t info;
};

struct gpurest_module {
    gpurest_session *session;
    char             id[NAME_BYTES]; /* of a built-in kernel: its name */
    bool             builtin;
    char             dtype[8], engine[16]; /* of a built-in kernel; engine "": chosen by the service */
    char            *log;
    char             arch[64];
    double           compile_ms;
    bool             cached;
    gpurest_kernel  *kernels;
    size_t           kernels_count;
};

/* Does not unload it at the service. Drops its reference to the session. */
void module_destroy(gpurest_module *m);

/* Copies and checks them; NULL: the defaults. */
gpurest_status compile_options_take(const gpurest_compile_options *theirs, gpurest_compile_options *out);
/* The source with its options as the service takes it: an object. */
void compile_spec_write(struct buf *b, const char *source, const gpurest_compile_options *o);
/* Whether all of them are there. */
bool texts_set(const char *const *texts, size_t count);
/* As an array, unless there are none. */
void write_texts(struct buf *b, const char *name, const char *const *texts, size_t count);

/* Checks the form of these names; the service checks that they exist. */
gpurest_status builtin_check(const char *name, const char *dtype, const char *engine_or_null);
/* "builtin", "dtype", "engine": members of an object that is open. engine may be NULL or "". */
void builtin_write(struct buf *b, const char *name, const char *dtype, const char *engine);

#endif
