/* Affine values: three numbers instead of an array over all lanes. They hold what all threads share, and what grows evenly with a thread's
 * index, as most loop counters, indices and addresses do. An operation on them takes a few scalar instructions per block of threads.
 * Their arrays are filled only when an operation needs them lane by lane.
 *
 * An affine value holds for every lane that may still read it. So a result becomes one only when all live lanes take part, or when only
 * later operations of the same basic block read it (`local`). device/cpu/interp/decode/affine_plan.c decides at load which operations may
 * use affine values; every other operation reads and writes plain arrays. */
#pragma once

#include "device/cpu/interp/ops/ops.h"

/* AFFINE_KNOWN: thread (x, y, z) has base + step_x * x + step_y * y, cut to the value's width. AFFINE_FILLED: its array is up to date. */
enum { AFFINE_KNOWN = 1, AFFINE_FILLED = 2 };
struct affine_value {
    uint64_t base, step_x, step_y;
    uint8_t  state;
};

enum { NO_AFFINE = UINT32_MAX, AFFINE_SOURCES_MAX = 4 };

/* How an operation's result follows from its affine sources. Under every rule one lane computes for all when no source depends on the thread. */
enum affine_rule {
    RULE_UNIFORM, /* only then */
    RULE_AND,
    RULE_OR,
    RULE_SHR, /* these three: only then, too, but without the handler; unsigned */
    RULE_MOVE,
    RULE_ADD,
    RULE_SUB,
    RULE_OFFSET /* a + immediate */,
    RULE_MUL,
    RULE_MAD,
    RULE_SHL,
    RULE_MUL_WIDE,
    RULE_MAD_WIDE,
    RULE_WIDEN,
    RULE_NARROW,
    RULE_COMPARE,
    RULE_LOAD,  /* source 0 is the address, which the handler examines itself (device/cpu/interp/ops/access.c) */
    RULE_STORE, /* the same; source 1 is the value; no result */
};

struct affine_source {
    uint32_t affine; /* index in the activation, or NO_AFFINE: always an array */
    uint32_t place;
    uint8_t  width;
};

/* The plan of one operation. */
struct op_affine {
    enum affine_rule     rule;
    enum compare         how;       /* RULE_COMPARE */
    bool                 is_signed; /* RULE_COMPARE, RULE_WIDEN, RULE_MUL_WIDE, RULE_MAD_WIDE: the sources are */
    bool                 local;     /* nothing else reads the result */
    bool                 wanted;    /* something reads the result lane by lane: fill its array at once */
    uint8_t              width;     /* of the result */
    uint8_t              count;     /* of sources */
    uint32_t             result;    /* index in the activation, or NO_AFFINE: always an array */
    struct affine_source source[AFFINE_SOURCES_MAX];
};

/* Runs an operation that has a plan. all: every live lane takes part. */
void affine_run(struct lanes *l, struct affine_value *affine, const struct op *o, bool all);
/* One value in all lanes of the array at a place. */
void lanes_fill(struct lanes *l, uint32_t place, unsigned width, uint64_t v);
/* Fills the array of an affine value unless it is up to date. */
void affine_fill(struct lanes *l, struct affine_value *f, uint32_t place, unsigned width);
/* A special register as an affine value: the same for all threads, or a thread's coordinate. False: it is neither. */
bool                   affine_special(const struct lanes *l, int special, uint64_t value, struct affine_value *out);
static inline uint64_t affine_at(const struct lanes *l, const struct affine_value *f, uint32_t lane)
{
    return f->base + f->step_x * (lane % l->width) + f->step_y * (lane / l->width % l->height);
}

/* The address of a memory operation as an affine value; NULL: its array alone is up to date. */
struct affine_value *affine_address(struct lanes *l, const struct op *o);

/* Plans the operations of a decoded entry. False: out of memory. */
bool affine_plan(struct code *c, const struct ptx_function *f, const uint32_t *places);
