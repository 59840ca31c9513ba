/* The names that a PTX text declares, innermost scope first. Used only while parsing. */
#pragma once

#include "device/cpu/bounds.h"
#include "device/cpu/ptx/ir.h"

enum ptx_name_kind {
    NAME_REGISTER,  /* first = register, or the first of a vector's */
    NAME_REGISTERS, /* prefix of registers first .. first + count */
    NAME_VARIABLE,  /* operand: as an instruction refers to it */
    NAME_FUNCTION,  /* first = index of the function */
    NAME_PROTOTYPE, /* prototype */
};

struct ptx_name {
    struct span                 text;
    enum ptx_name_kind          kind;
    uint32_t                    first;
    uint32_t                    count;
    uint32_t                    vector; /* of registers: elements of each */
    struct ptx_operand          operand;
    uint64_t                    bytes; /* NAME_VARIABLE: its size */
    const struct ptx_prototype *prototype;
    uint32_t                    bucket, next; /* chain of the bucket; PTX_NO_INDEX ends it */
};

struct ptx_names {
    struct ptx_name *all; /* owned */
    uint32_t         count, room;
    uint32_t        *buckets; /* owned */
};

bool ptx_names_init(struct ptx_names *n);
void ptx_names_finish(struct ptx_names *n);
/* Zeroed but for its text; NULL: out of memory or past PTX_NAMES_MAX. Valid until the next add. */
struct ptx_name *ptx_names_add(struct ptx_names *n, struct span text, enum ptx_name_kind kind);
/* The newest of that name; NULL if there is none. */
struct ptx_name *ptx_names_find(const struct ptx_names *n, struct span text);
/* Whether the name is among those added since there were `mark`. */
bool ptx_names_has_since(const struct ptx_names *n, struct span text, uint32_t mark);
/* Register that a name such as "%r12" or "%v.x" means; PTX_NO_REG if none. */
uint32_t ptx_names_register(const struct ptx_names *n, struct span text);
/* First register of the vector of that name, with the number of its elements; PTX_NO_REG if none. */
uint32_t ptx_names_vector(const struct ptx_names *n, struct span text, unsigned *elements);
/* Removes the names added since there were `mark`. */
void ptx_names_release(struct ptx_names *n, uint32_t mark);

/* Room for one more element in an array of `count`; doubles. False: out of memory, or at `max`. */
bool ptx_grow(void **array, uint32_t *room, uint32_t count, size_t element_bytes, uint32_t max);
