/* Reads the ELF image that a GPU compiler makes: kernels, their parameters, globals. From untrusted bytes: every offset is checked. */
#pragma once

#include "base/span.h"
#include "base/status.h"
#include "limits.h"

/* An opened image: plain data, borrowed from the bytes it was opened on. */
struct cubin {
    struct span image;
    uint64_t    sections_at; /* offset of the section headers */
    unsigned    sections;
    struct span section_names;
    struct span symbols;
    struct span symbol_names;
};

/* `name` is followed by a NUL. */
struct cubin_global {
    struct span name;
    uint64_t    bytes;
    bool        constant;
};

struct cubin_param {
    uint32_t ordinal;
    uint32_t offset;
    uint32_t size;
};

/* MODULE_INVALID: the image is damaged, cut short, or for another machine. */
enum status cubin_open(struct span image, struct cubin *out);

/* Walk the symbols: *cursor starts at 0; false at the end. */
bool cubin_next_kernel(const struct cubin *c, size_t *cursor, struct span *name);
bool cubin_next_global(const struct cubin *c, size_t *cursor, struct cubin_global *out);
/* In order of declaration. MODULE_INVALID when the table is damaged or has holes. */
enum status cubin_params(const struct cubin *c, struct span kernel, struct cubin_param out[KERNEL_PARAMS_MAX], unsigned *count);
