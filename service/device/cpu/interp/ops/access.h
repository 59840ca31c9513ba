/* How the addresses of one memory operation lie: found once for all lanes, so that most accesses need no check per lane. Unless the pattern
 * is ASTRAY, every active lane's address lies inside its space and is aligned. */
#pragma once

#include "device/cpu/interp/ops/ops.h"

enum { RUN_LANES = 16 };

enum access_pattern {
    ASTRAY, /* some are bad, or it is not known: each lane must be checked (lane_pointer) */
    SCATTERED,
    SAME,            /* one address */
    CONSECUTIVE,     /* one after the other; all lanes of [low, high) are active */
    RUN_CONSECUTIVE, /* within each run of RUN_LANES lanes, from low on; all lanes are active, and runs are whole */
    RUN_SAME,
    LANEWISE, /* every lane in a part of its own */
};

/* When all accesses are in one space, the byte of lane i is origin + (address + add) + i * pitch. */
struct access {
    uint8_t *origin;
    uint64_t add;   /* to a lane's address: its offset in the space */
    uint64_t size;  /* of the space */
    uint64_t pitch; /* bytes of one lane's part; 0: they share the space */
    uint8_t *first; /* the byte of the first active lane */
    uint64_t safe;  /* that lane's offset: valid for inactive lanes, too */
};

/* bytes: of one access, a power of two. */
enum access_pattern survey_access(struct lanes *l, const struct op *o, uint32_t bytes, struct access *a);

/* A generic address belongs to the space whose window it lies in; *address becomes the offset there. */
enum op_space space_of(uint64_t *address);

#define ACCESSED(T, i)     ((T *)(void *)(at.origin + (address[i] + at.add)))
#define ACCESSED_OWN(T, i) ((T *)(void *)(at.origin + (address[i] + at.add) + (size_t)(i)*at.pitch))
