/* Modules and their kernels' tables. */
#ifndef GPUREST_SDK_MODULE_H
#define GPUREST_SDK_MODULE_H

#include "session.h"

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
    char             id[NAME_BYTES];
    char            *log;
    char             arch[64];
    double           compile_ms;
    bool             cached;
    gpurest_kernel  *kernels;
    size_t           kernels_count;
};

#endif
