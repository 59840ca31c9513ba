/* In which of their shapes built-in kernels are launched: what was measured on a device (tune.c) and is kept beside compiled code, by
 * device, driver, compiler and source. Results are the same in all shapes, so a choice concerns nobody's numbers, only their time.
 * Thread-safe. Locks: one of its own, inner to all others. */
#ifndef GPUREST_SESSION_TUNING_H
#define GPUREST_SESSION_TUNING_H

#include "kernels/kernels.h"
#include "session/code/code_cache.h"

struct pool;
struct compile_service;
struct tunings; /* of all devices of this process */

/* For one kernel, dtype and size class. The form of the file, too: no padding. */
struct tuning {
    uint32_t dtype, size_class;
    uint32_t candidates, chosen; /* numbers of shapes: builtin_candidates() */
    uint32_t requested;          /* 1: somebody named the shape; 0: it was the fastest */
    uint32_t rounds;             /* that each was measured */
    uint64_t measured_wall_ns;
    double   us[BUILTIN_CANDIDATES_MAX]; /* medians; 0: not measured, because it cannot run there or gave another result */
};

/* What is known of one kernel on one device. */
struct tuning_list {
    struct tuning of[BUILTIN_DTYPES * BUILTIN_SIZE_CLASSES];
    bool          kept[BUILTIN_DTYPES * BUILTIN_SIZE_CLASSES]; /* an earlier process measured it */
    unsigned      count;
};

/* Borrows all three for its life; cache may be NULL. */
enum status tunings_create(struct tunings **out, struct pool *pool, struct compile_service *compiler, struct code_cache *cache);
/* NULL is a no-op. */
void tunings_destroy(struct tunings *t);

/* The shape to launch with, 0 where nothing was measured. The first time for a kernel on a device it reads a file, and needs no lock held.
 */
unsigned tuning_choice(struct tunings *t, unsigned device, const struct builtin *k, enum builtin_dtype dtype, const uint64_t *values,
                       const struct builtin_device *facts);
/* False: tuning_choice() would read a file. Never blocks. */
bool tuning_is_read(struct tunings *t, unsigned device, const struct builtin *k);
/* False: it would be 0, whatever the arguments. Never blocks. */
bool tuning_may_be(struct tunings *t, unsigned device, const struct builtin *k);
/* From now on, on every device of this kind, and kept. */
void tuning_set(struct tunings *t, unsigned device, const struct builtin *k, const struct tuning *what);
void tuning_list_of(struct tunings *t, unsigned device, const struct builtin *k, struct tuning_list *out);

/* The bytes of a file, whatever they are. False: not one of ours, or of another time; *out is part of it then. */
bool tuning_list_decode(const struct builtin *k, struct span bytes, struct tuning_list *out);

/* One measurement at a time on a device: false while there is another. */
bool tuning_begin(struct tunings *t, unsigned device);
void tuning_end(struct tunings *t, unsigned device);

#endif
