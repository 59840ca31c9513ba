/* The built-in kernels: their names, parameters and launch shapes. Their rows are in kernels/kernels.def, beside the CUDA C++ sources;
 * both are part of the executable. Pure functions over constant tables: thread-safe, nothing is owned. */
#pragma once

#include "base/problem.h"
#include "base/span.h"
#include "limits.h"

enum builtin_dtype {
#define DTYPE(name, bytes, accumulator, real) BUILTIN_DTYPE_##name,
#include "kernels/dtypes.def"
#undef DTYPE
    BUILTIN_DTYPES,
};

/* Of a parameter: one of the above, or one that follows from the kernel's dtype. */
enum builtin_type {
    BUILTIN_TYPE_T = BUILTIN_DTYPES, /* the dtype itself */
    BUILTIN_TYPE_ACCUMULATOR,        /* what sums of it are kept in */
    BUILTIN_TYPE_REAL,               /* what means of it are */
};

enum builtin_access { BUILTIN_IN, BUILTIN_OUT, BUILTIN_INOUT, BUILTIN_VALUE };

struct builtin_param {
    enum builtin_access access;
    unsigned            type; /* enum builtin_dtype or builtin_type */
    const char         *name;
    const char         *elements;     /* minimum count of elements in a buffer: builtin_extent() */
    uint64_t            least, most;  /* of an integer VALUE */
    bool                power_of_two; /* it must be one */
    const char         *meaning;
};

/* How the grid follows from the arguments. */
enum builtin_rule {
    BUILTIN_FLAT,   /* count[0] elements, `vectors` of 16 bytes per thread */
    BUILTIN_SHARES, /* the same, but at most `per_sm` blocks for each multiprocessor; a slot */
    BUILTIN_ROWS,   /* count[0] rows of count[1] elements: a block for each, as wide as a row needs */
    BUILTIN_AXIS,   /* count[0] x count[1] x count[2], reduced over the middle one */
    BUILTIN_TILES,  /* tile[i] of count[i] in direction i */
    BUILTIN_POOL,   /* at most `per_sm` blocks for each multiprocessor, which share count[0] / tile[0] pieces */
    BUILTIN_WHOLE,  /* cooperative: per_sm blocks for each multiprocessor, or count[0] / tile[0] if that is less */
};

struct builtin_shape {
    enum builtin_rule rule;
    const char       *count[3];
    uint32_t          tile[3];
    uint32_t          block;
    uint32_t          vectors, vectors_on_host; /* of a thread; the latter on a device that is on_host */
    uint32_t          per_sm;
    const char       *scratch; /* bytes; NULL: none */
    uint32_t warpgroup; /* dtypes, a bit for each, whose operands wait in BUILTIN_WARPGROUP_BYTES where warpgroups multiply matrices */
};

struct builtin {
    const char                 *name, *family; /* the family: its source's file name */
    const char                 *function;      /* the expression that instantiates it; $T is the dtype */
    uint32_t                    dtypes;        /* a bit for each */
    struct builtin_shape        shape;
    const char                 *summary;
    const struct builtin_param *params;
    unsigned                    params_count;
};

/* What vulkan devices have of a kernel. */
struct builtin_shader {
    const char *name;
    uint32_t    dtypes;         /* a bit for each */
    const char *blocks, *turns; /* NULL: as the kernel's shape says; few */
    bool        scratch;        /* takes the scratch memory of the kernel's shape */
};

struct builtin_source {
    const char *name; /* of the file */
    struct span text;
    const char *notes; /* the comment that it begins with */
};

/* The architecture whose warpgroups multiply matrices. */
#define BUILTIN_WARPGROUP_ARCH "sm_90"

/* The facts of the device that matter here. */
struct builtin_device {
    uint32_t multiprocessors;
    bool     warpgroups; /* multiply matrices together (wgmma): it is a BUILTIN_WARPGROUP_ARCH */
    bool     on_host;    /* host processors run the threads: it is the cpu device */
    uint32_t max_grid[3];
    bool     shades; /* kernels are shaders */
};

/* A launch's shape. A kernel whose blocks share scratch memory of their module takes the number of a slot as one more argument (u32);
 * one with scratch memory of its own takes the address after it. */
struct builtin_plan {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* dynamic */
    bool     cooperative;
    bool     takes_slot, takes_scratch;
    uint64_t scratch_bytes; /* > 0 when it takes some */
};

/* ---- catalog.c ---- */
/* In the order of their rows; NULL past the end. */
const struct builtin        *builtin_at(unsigned index);
const struct builtin        *builtin_find(struct span name); /* NULL: none */
const struct builtin_source *builtin_source_of(const struct builtin *k);
/* NULL: vulkan devices do not have it for this dtype. */
const struct builtin_shader *builtin_shader_of(const struct builtin *k, enum builtin_dtype dtype);
/* Its source, and the headers that shaders include: as builtin_header_at(). */
const struct builtin_source *builtin_shader_source(const struct builtin *k);
const struct builtin_source *builtin_shader_header_at(unsigned index);
/* The header that all of them include. */
const struct builtin_source *builtin_common_source(void);
/* Every header that some of them include, the common one among them; NULL past the end, which is at most BUILTIN_HEADERS_MAX. */
const struct builtin_source *builtin_header_at(unsigned index);
const char                  *builtin_dtype_name(unsigned dtype);
/* False: no dtype, or not one of this kernel. */
bool builtin_dtype_find(const struct builtin *k, struct span name, enum builtin_dtype *out);
/* The dtype that a parameter has. */
enum builtin_dtype builtin_type_of(const struct builtin_param *p, enum builtin_dtype dtype);
unsigned           builtin_type_bytes(const struct builtin_param *p, enum builtin_dtype dtype);
/* A parameter's type as text: "f32", "T". */
const char *builtin_type_name(const struct builtin_param *p);
/* The function's expression with its dtype; false when `room` is too small. */
bool builtin_expression(const struct builtin *k, enum builtin_dtype dtype, char *to, size_t room);

/* ---- library.c ---- */
enum builtin_library {
    BUILTIN_LIBRARY_NONE,
    BUILTIN_LIBRARY_CUBLASLT,
    BUILTIN_LIBRARY_CUFFT,
    BUILTIN_LIBRARY_CUSOLVER,
    BUILTIN_LIBRARY_OPENBLAS,
    BUILTIN_LIBRARY_FFTW,
    BUILTIN_LIBRARIES
};
/* The nth of the libraries that do the same where a device has them, NONE past the end; *dtypes has a bit for each dtype that it supports. */
enum builtin_library builtin_library_of(const struct builtin *k, unsigned nth, uint32_t *dtypes);
/* The one that does it, of those `there`, a bit for each. *takes: whether any does, there or not. */
enum builtin_library builtin_library_among(const struct builtin *k, enum builtin_dtype dtype, uint32_t there, bool *takes);
/* "cublaslt"; NULL for none. */
const char *builtin_library_name(enum builtin_library library);

/* ---- extent.c ---- */
/* The value of an expression over the integer VALUEs, "rows*cols+1": products and sums of names, numbers, "(name-1)", quotients by
 * numbers. sizeof_T, sizeof_accumulator and blocks are names, too. `values`: the arguments by parameter; `blocks` may be 0. False: it
 * exceeds 2^62. */
bool builtin_extent(const struct builtin *k, const char *expression, enum builtin_dtype dtype, const uint64_t *values, uint64_t blocks,
                    uint64_t *out);

/* ---- plan.c ---- */
/* `values`: each VALUE's bits, by parameter. ARGUMENT_MISMATCH with /args/N: out of bounds. LAUNCH_CONFIG_INVALID: the shape is. */
enum status builtin_plan_of(const struct builtin *k, enum builtin_dtype dtype, const uint64_t *values, const struct builtin_device *device,
                            struct builtin_plan *out, struct problem *why);
/* BUILTIN_FLAT: vectors of a thread, which the source is compiled for (FLAT_VECTORS); else 0. */
uint32_t builtin_vectors(const struct builtin *k, bool on_host);
/* Minimum bytes of the buffer of parameter `i`, counted from its offset. */
enum status builtin_buffer_bytes(const struct builtin *k, enum builtin_dtype dtype, const uint64_t *values, unsigned i, uint64_t *out,
                                 struct problem *why);

/* ---- made by kernels/embed.py ---- */
extern const struct builtin_source builtin_sources[];
extern const unsigned              builtin_sources_count;
