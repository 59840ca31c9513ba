/* The interpreter exists several times in the executable: the same sources, compiled for different instruction sets.
 * All give the same results, bit for bit; the best one that the host can run is chosen when a module is loaded. */
#ifndef GPUREST_DEVICE_CPU_INTERP_VARIANTS_H
#define GPUREST_DEVICE_CPU_INTERP_VARIANTS_H

#include "device/cpu/interp.h"

struct interpreter {
    const char *name;
    enum status (*code_create)(const struct ptx_module *m, const struct ptx_function *f, bool plain, struct code **out,
                               struct problem *why);
    enum status (*block_run_prepare)(struct block_run *r, struct grid_run *grid, uint64_t shared_bytes);
    bool        (*block_run)(struct block_run *r, uint64_t number);
};

/* NULL behind the last; those that the host cannot run are left out. The last one is the best. */
const struct interpreter *interpreter_at(unsigned i);
const struct interpreter *interpreter_best(void);
/* NULL: no such name, or the host cannot run it. */
const struct interpreter *interpreter_named(const char *name);

/* cpu_code_load by a given interpreter (NULL: the best). plain: without the decoder's improvements and the handlers' short ways,
 * as the reference for them. */
enum status cpu_code_load_as(struct ptx_module *m, const struct interpreter *by, bool plain, struct problem *why);

#endif
