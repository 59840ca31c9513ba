/* What is run on the backends that are compared: one launch with its buffers, from a row of kernels.def or forms.def. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    ITEM_BUFFERS_MAX = 8,
    ITEM_PARAMS_BYTES = 256,
    ITEM_PARAMS_MAX = 16,
    ITEM_TEXT_BYTES = 512,
    FORM_THREADS = 1024,
};

enum element { ELEMENT_U8, ELEMENT_U32, ELEMENT_U64, ELEMENT_F16, ELEMENT_BF16, ELEMENT_F32, ELEMENT_F64 };

struct item_buffer {
    enum element type;
    uint32_t     count;
    bool         compared;
    bool         set;        /* the order of the elements is nobody's business */
    char         symbol[32]; /* a variable of the module instead of an allocation, or "" */
    int          param;      /* which parameter gets its address, or -1 */
    int          offset;     /* byte offset in the parameter block, or -1: that of the parameter */
    void        *initial;    /* owned */
};

struct item_scalar {
    int      param;
    int      offset;
    uint32_t bytes; /* 0: as the parameter's */
    uint64_t bits;
};

struct item {
    uint64_t           key;  /* names the row in files of results */
    const char        *file; /* of PTX, or NULL */
    const char        *kernel;
    const char        *form;       /* the text of an instruction form, or NULL */
    bool               unmeasured; /* files of results need not have it yet */
    uint32_t           grid[3], block[3], shared_bytes;
    double             ulps; /* exact when this and tolerance are 0; below 0: the tolerance is 2 to its power */
    double             tolerance;
    struct item_buffer buffers[ITEM_BUFFERS_MAX];
    unsigned           buffers_count;
    struct item_scalar scalars[ITEM_PARAMS_MAX];
    unsigned           scalars_count;
};

unsigned element_bytes(enum element e);
/* Row i of the two tables, one after the other; false past the end. The buffers' contents depend on the row alone. */
bool item_make(unsigned i, struct item *out);
void item_free(struct item *it);
/* The PTX text of a form's module. */
void item_form_text(const struct item *it, char *out, unsigned room);
