/* A rig for every test of the file's suite: .init and .fini. */
#ifndef GPUREST_TESTS_INTERP_RIG_H
#define GPUREST_TESTS_INTERP_RIG_H

#include "unit/device/cpu/interp/fixture.h"

static struct rig r;

static inline void the_rig_start(void)
{
    rig_start(&r);
}

static inline void the_rig_stop(void)
{
    rig_stop(&r);
}

#endif
