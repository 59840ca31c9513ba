/* The interpreter exists several times in the executable: the same sources, compiled for different instruction sets. All give the same
 * results, bit for bit. A module is loaded for the best one that the host can run. */
#pragma once

#include "device/cpu/interp/interp.h"

struct interpreter {
    const char *name;
    enum status (*code_create)(const struct ptx_module *m, const struct ptx_function *f, unsigned options, struct code **out,
                               struct problem *why);
    enum status (*block_run_prepare)(struct block_run *r, struct grid_run *grid, uint64_t shared_bytes);
    bool (*blocks_run)(struct block_run *r, uint64_t number, uint64_t count);
};

/* NULL past the end; those that the host cannot run are left out. The last one is the best. */
const struct interpreter *interpreter_at(unsigned i);
const struct interpreter *interpreter_best(void);

enum code_option {
    CODE_PLAIN = 1,   /* without the decoder's optimisations and the handlers' fast paths: the reference for them */
    CODE_NATIVE = 4,  /* blocks end where compiled code ends; every register is in its array when a block begins */
    CODE_CHECKED = 2, /* every access to device memory is checked against the memory's shadow, which must be on when it runs */
};

/* Decodes all functions of a parsed module whose symbols have their addresses (sets each functions[i].code), by a given interpreter (NULL: the
 * best). MODULE_INVALID names the first instruction that cannot be executed, with its line. */
enum status cpu_code_load_as(struct ptx_module *m, const struct interpreter *by, unsigned options, struct problem *why);
