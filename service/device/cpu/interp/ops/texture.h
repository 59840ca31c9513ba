/* What the operations on textures and surfaces share. */
#pragma once

#include "device/cpu/interp/ops/sample.h"

/* How an instruction names a texel: what the words .1d, .a2d and so on mean. */
struct texture_geometry {
    const char            *word;
    uint8_t                modifier; /* of the instruction */
    enum texture_dimension dimension;
    unsigned               coordinates; /* beside the layer, which comes first */
    bool                   layered;
};
/* NULL: there is none such. */
const struct texture_geometry *texture_geometry_of(const struct ptx_insn *in);

/* Of an instruction: its places beside the number of the texture. */
struct texture_operands {
    const struct texture_geometry *geometry; /* NULL: a query */
    const struct vector_places    *values;   /* results, or what is stored */
    const struct vector_places    *at;       /* the layer, if any, then the coordinates */
    bool                           tells;    /* a predicate at op.b becomes true: the texel is there */
};

/* The texture that a lane names; a fault where there is none, or one that the instruction does not fit. */
const struct cpu_texture *texture_named(struct lanes *l, const struct op *o, uint32_t lane, bool surface);

void sample_texture(struct lanes *l, const struct op *o); /* tex, tld4 */
void query_texture(struct lanes *l, const struct op *o);  /* txq, suq; mode: 1: a surface */
void load_surface(struct lanes *l, const struct op *o);
void store_surface(struct lanes *l, const struct op *o);
