/* Every test of the file's suite has one taken worker with the module loaded. */
#pragma once

#include "unit/pool/fixture.h"

static struct pool   *p;
static struct worker *w;
static uint32_t       module;

static inline void one_worker_start(void)
{
    p = pool_of_fakes(1, 4);
    w = worker_of(p, &module);
}

/* Descriptors can be exchanged with it. */
static inline void one_sharing_worker_start(void)
{
    p = pool_of_sharing_fakes(1, 2);
    w = worker_of(p, &module);
}

static inline void one_worker_end(void)
{
    pool_give_back(p, w);
    pool_destroy(p);
}
