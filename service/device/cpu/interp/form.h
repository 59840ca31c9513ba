/* Values said in three numbers instead of written out for every lane: what all threads share, and what grows evenly with a thread's
 * index, as loop counters, indices and addresses mostly do. Operations on such values are a few scalar instructions per block of threads;
 * their arrays are filled only when an operation wants them lane by lane.
 *
 * A form is right for every lane that may still read the value. So a result becomes one only when all live lanes take part, or when
 * nothing reads it but operations behind it in the same basic block (`local`). Which operations may have forms is planned at load
 * (device/cpu/interp/decode/form_plan.c); every other operation finds and leaves plain arrays. */
#ifndef GPUREST_DEVICE_CPU_INTERP_FORM_H
#define GPUREST_DEVICE_CPU_INTERP_FORM_H

#include "device/cpu/interp/ops/ops.h"

/* FORM_SAID: thread (x, y, z) has base + step_x * x + step_y * y, cut to the value's width. FORM_FILLED: its array is up to date. */
enum { FORM_SAID = 1, FORM_FILLED = 2 };
struct form {
    uint64_t base, step_x, step_y;
    uint8_t  state;
};

enum { NO_FORM = UINT32_MAX, FORM_SOURCES_MAX = 4 };

/* How an operation's result follows from its sources' forms. All of them: when every source is the same for all threads, one lane does it. */
enum form_rule {
    RULE_ALIKE, /* in no other case */
    RULE_AND,
    RULE_OR,
    RULE_SHR, /* the same, but quickly; unsigned */
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
    RULE_LOAD,  /* source 0 is the address, which the handler looks at itself (device/cpu/interp/ops/aim.c) */
    RULE_STORE, /* the same; source 1 is the value, and there is no result */
};

struct form_source {
    uint32_t form; /* index in the activation, or NO_FORM: always an array */
    uint32_t place;
    uint8_t  width;
};

/* What the planner found out about one operation. */
struct op_forms {
    enum form_rule     rule;
    enum compare       how;       /* RULE_COMPARE */
    bool               is_signed; /* RULE_COMPARE, RULE_WIDEN, RULE_MUL_WIDE, RULE_MAD_WIDE: the sources are */
    bool               local;     /* nothing else reads the result */
    bool               wanted;    /* something reads the result lane by lane: fill it at once */
    uint8_t            width;     /* of the result */
    uint8_t            count;     /* of sources */
    uint32_t           result;    /* form, or NO_FORM: always an array */
    struct form_source source[FORM_SOURCES_MAX];
};

/* Runs an operation that has a plan. all: every live lane takes part. */
void form_run(struct lanes *l, struct form *forms, const struct op *o, bool all);
/* Writes the array of a value that is only said; nothing when it is there. */
void form_fill(struct lanes *l, struct form *f, uint32_t place, unsigned width);
/* The form of a special register: which is the same for all threads, or a coordinate of the thread. False: it has none. */
bool                   form_special(const struct lanes *l, int special, uint64_t value, struct form *out);
static inline uint64_t form_at(const struct lanes *l, const struct form *f, uint32_t lane)
{
    return f->base + f->step_x * (lane % l->width) + f->step_y * (lane / l->width % l->height);
}

/* The form of a memory operation's address when it is not in its array yet, else NULL. */
struct form *form_of_address(struct lanes *l, const struct op *o);

/* Gives the operations of a decoded entry their plans. False without memory. */
bool form_plan(struct code *c, const struct ptx_function *f, const uint32_t *places);

#endif
