/* Reads AMD's code objects: the kernels and their parameters, from the metadata in the ELF file's note. From untrusted bytes: every offset and
 * length is checked. A pure function of the bytes, as device/cuda/cubin.h. */
#pragma once

#include "base/span.h"
#include "base/status.h"
#include "limits.h"

struct code_object {
    struct span image;
    struct span target;        /* "gfx90a", without its features; empty: the file does not tell */
    struct span kernels;       /* the metadata from the next kernel on */
    uint64_t    kernels_count; /* that are left, as the metadata says */
    struct span symbols;       /* from the next one on */
    struct span symbol_names;  /* ends with a NUL, if there are symbols */
};

struct code_param {
    uint32_t offset, bytes;
};

struct code_kernel {
    struct span       name;          /* inside the image; no NUL stands behind it */
    uint32_t          shared_bytes;  /* static */
    uint32_t          private_bytes; /* per thread */
    uint32_t          registers;     /* vector registers per thread */
    uint32_t          max_threads;   /* per block */
    bool              prints;        /* it may call the host, as printf does */
    unsigned          params_count;
    struct code_param params[KERNEL_PARAMS_MAX];
};

/* A variable that programs may know. A NUL stands behind the name. */
struct code_global {
    struct span name;
    uint64_t    bytes;
};

/* MODULE_INVALID: the image is damaged, cut short, or no code for AMD GPUs. */
enum status code_object_open(struct span image, struct code_object *out);
/* Takes the next kernel off *c. False at the end, or, with *damaged, where the metadata cannot be read. */
bool code_object_next(struct code_object *c, struct code_kernel *out, bool *damaged);
/* ... the next variable. */
bool code_object_next_global(struct code_object *c, struct code_global *out);
