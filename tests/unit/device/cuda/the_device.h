/* A device for every test of the file's suite: .init and .fini; nothing may be left when it was closed. */
#pragma once

#include <criterion/criterion.h>

#include "unit/device/cuda/fixture.h"

static struct device *d;

static inline void the_device_open(void)
{
    d = fixture_open();
}

static inline void the_device_close(void)
{
    ops->close(d);
    cr_assert_eq(fixture_live(), 0);
}

static inline struct device_memory the_device_memory(void)
{
    struct device_memory m = {0};

    cr_assert_eq(ops->memory(d, &m), STATUS_OK);
    return m;
}
