/* The kernels and globals of a loaded module: made by the device, sent as bytes through staging, read by the session. */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "limits.h"

struct kernel_param {
    uint32_t offset; /* in the parameter block, bytes */
    uint32_t size;
    char     type[8]; /* PTX's word where known: "u64", "f32", "b8" for a struct; "" = unknown */
};

/* What runs a kernel, where devices have a choice. */
enum kernel_engine { KERNEL_ENGINE_DEVICE, KERNEL_ENGINE_INTERPRETER, KERNEL_ENGINE_LLVM };
enum { KERNEL_REASON_BYTES = 192 };

struct kernel_desc {
    char                *name;         /* as in the image: mangled for C++; owned by the table */
    uint32_t             registers;    /* per thread; 0 on cpu */
    uint32_t             shared_bytes; /* static */
    uint32_t             local_bytes;  /* per thread */
    uint32_t             const_bytes;
    uint32_t             max_threads; /* per block */
    uint32_t             max_dynamic_shared_bytes;
    uint32_t             block[3]; /* the only extent that a block of it may have; 0: a launch chooses */
    uint32_t             params_count;
    uint32_t             params_bytes; /* end of the last parameter */
    enum kernel_engine   engine;
    char                 engine_reason[KERNEL_REASON_BYTES]; /* why that one; "" with KERNEL_ENGINE_DEVICE */
    struct kernel_param *params;                             /* [params_count], owned, in order of declaration */
};

struct kernel_global {
    char    *name; /* owned */
    uint64_t address;
    uint64_t bytes;
    uint32_t constant; /* 1: __constant__ */
};

struct kernel_table {
    struct kernel_desc   *kernels; /* [kernels_count], owned */
    uint32_t              kernels_count;
    struct kernel_global *globals; /* [globals_count], owned */
    uint32_t              globals_count;
    bool                  prints; /* its kernels may print: one launch runs at a time, so that the output's launch is known */
};

void kernel_table_init(struct kernel_table *t);
void kernel_table_finish(struct kernel_table *t);

/* Both add a zeroed element with a copy of `name` and return it, borrowed until the next add; NULL without memory, or at the maximum. */
struct kernel_desc   *kernel_table_add(struct kernel_table *t, struct span name, uint32_t params_count);
struct kernel_global *kernel_table_add_global(struct kernel_table *t, struct span name);

/* -1 if there is none. */
int kernel_table_find(const struct kernel_table *t, struct span name);

/* OUT_OF_MEMORY when it exceeds out->max. */
enum status kernel_table_encode(const struct kernel_table *t, struct buf *out);
/* From untrusted bytes: every count, length and parameter range is checked. INTERNAL when malformed; *t is empty then. */
enum status kernel_table_decode(struct span bytes, struct kernel_table *t);
