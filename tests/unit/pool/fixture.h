/* Starts real workers of the fake device for the tests of the pool. */
#pragma once

#include <criterion/criterion.h>

#include "pool/pool.h"
#include "pool/workers/worker_internal.h"
#include "support/fake_script.h"

enum {
    KERNEL_CANARY,
    KERNEL_ADD_ONE,
    KERNEL_SLOW,
    KERNEL_ENDLESS,
    KERNEL_FAULT,
    KERNEL_CRASH,
    KERNEL_PRINT,
    KERNEL_REFUSE,
    KERNEL_DESCRIPTORS,
    KERNEL_NOTED,
    KERNEL_STUMBLE,
    KERNEL_HOSTILE,
    KERNEL_LIE
};

struct pool *pool_of_fakes(unsigned warm, unsigned workers_max);
/* Its workers exchange descriptors. */
struct pool *pool_of_sharing_fakes(unsigned warm, unsigned workers_max);
enum status  pool_try(struct pool **out, unsigned warm, unsigned workers_max, struct problem *why);
/* Takes a worker and loads the module. */
struct worker *worker_of(struct pool *p, uint32_t *module);
uint32_t       module_of(struct worker *w);

uint64_t deadline(void); /* far enough for any call of a test */
/* A launch of that kernel, with at most 16 bytes of parameters. */
struct msg_launch launch_of(uint32_t module, uint32_t kernel, uint32_t stream, uint64_t tag, const void *params, uint32_t bytes);
uint64_t          memory_of(struct worker *w, uint64_t bytes);
