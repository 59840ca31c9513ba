/* The state of one running block of threads, and the loops that operations consist of. A register is an array over all threads ("lanes")
 * of the block; an operation is one loop over the active lanes. */
#pragma once

#include "device/cpu/interp/ops/math.h"
#include "limits.h"

#include <stddef.h>

enum { WARP_LANES = 32, OP_NONE = -1 };

struct lanes;
struct op;
struct ptx_insn;
struct op_affine;

typedef void (*op_fn)(struct lanes *l, const struct op *o);

/* Which lanes take part: m[i] is 1 or 0, all ones lie in [low, high). */
struct mask {
    uint8_t *m;
    uint32_t low;
    uint32_t high;
    uint32_t count;
};

/* One decoded step. d, a, b, c, e are places in the register file: bytes per lane before the register. */
struct op {
    op_fn                  run;
    uint32_t               d, a, b, c, e;
    int32_t                guard; /* place of the predicate, or OP_NONE */
    bool                   guard_not;
    bool                   addresses; /* a + immediate is an address of memory */
    uint8_t                mode;  /* the operation's own variant */
    uint8_t                width; /* elements of a vector access; bytes of an element where a handler needs it */
    int64_t                immediate;
    const void            *extra; /* borrowed from the program */
    const struct ptx_insn *insn;  /* for texts; borrowed from the module */
    const struct op_affine *affine; /* its plan for affine values (device/cpu/interp/affine.h), or NULL; borrowed from the program */
};

/* Element i of a register's array at place p: ((T *)(frame + p * stride))[i]. */
#define LANE(T, place) ((T *)(void *)(l->frame + (size_t)(place) * l->stride))

/* The state that operations work on; interp.h has the rest of a running block. */
struct lanes {
    uint8_t       *frame;  /* register file of the running function */
    size_t         stride; /* lanes, rounded up so that every array is aligned */
    uint32_t       count;  /* threads of the block */
    uint32_t       width, height; /* of the block: lane i is thread (i % width, i / width % height) of its plane */
    const uint8_t *m;      /* active lanes of the running operation */
    uint32_t       low;
    uint32_t       high;
    bool           dense;  /* every lane of [low, high) is active: no test per lane */
    bool           plain;  /* handlers take no short ways */
    uint8_t       *carry;  /* the condition code, per lane */
    const struct op *volatile current; /* the operation that a fault handler names */
    struct block_run *run;
};

/* One lane's element of the array at a place, for handlers that decide the width as they run. */
static inline uint64_t lane_read(const struct lanes *l, uint32_t place, unsigned width, uint32_t lane)
{
    switch (width) {
    case 1:  return LANE(uint8_t, place)[lane];
    case 2:  return LANE(uint16_t, place)[lane];
    case 4:  return LANE(uint32_t, place)[lane];
    default: return LANE(uint64_t, place)[lane];
    }
}

static inline void lane_write(const struct lanes *l, uint32_t place, unsigned width, uint32_t lane, uint64_t v)
{
    switch (width) {
    case 1:  LANE(uint8_t, place)[lane] = (uint8_t)v; break;
    case 2:  LANE(uint16_t, place)[lane] = (uint16_t)v; break;
    case 4:  LANE(uint32_t, place)[lane] = (uint32_t)v; break;
    default: LANE(uint64_t, place)[lane] = v; break;
    }
}

/* On functions that read and write kernels' memory: races of kernels are their own, and ThreadSanitizer must not report them. */
#define KERNEL_MEMORY __attribute__((no_sanitize_thread))

/* A destination may also be a source, but only of the same lane: so iterations never depend on each other. */
#define LANES_LOOP(STATEMENT)                                             \
    do {                                                                  \
        const uint32_t low_ = l->low, high_ = l->high;                    \
        _Pragma("GCC ivdep") for (uint32_t i = low_; i < high_; i++) {    \
            STATEMENT;                                                    \
        }                                                                 \
    } while (0)

/* Cheap expressions: computed for inactive lanes, too, and dropped there, so that the loop can be vectorised. LOAD declares the operands
 * of lane i. */
#define LANES_SET(T, place, LOAD, EXPRESSION)                             \
    do {                                                                  \
        T *d_ = LANE(T, place);                                           \
        if (l->dense) {                                                   \
            LANES_LOOP(LOAD; d_[i] = (T)(EXPRESSION));                    \
        } else {                                                          \
            const uint8_t *m_ = l->m;                                     \
            LANES_LOOP(LOAD; T r_ = (T)(EXPRESSION); d_[i] = m_[i] ? r_ : d_[i]); \
        }                                                                 \
    } while (0)

/* Expensive expressions, or statements with effects: only for active lanes. */
#define LANES_EACH(STATEMENT)                                             \
    do {                                                                  \
        const uint8_t *m_ = l->m;                                         \
        const uint32_t high_ = l->high;                                   \
        for (uint32_t i = l->low; i < high_; i++) {                       \
            if (m_[i]) {                                                  \
                STATEMENT;                                                \
            }                                                             \
        }                                                                 \
    } while (0)
