/* Replaces the cpu backend by a table without a required member, which must be detected. */
#include "device/device.h"

extern const struct device_ops device_cpu;

static unsigned none(struct problem *why)
{
    (void)why;
    return 0;
}

const struct device_ops device_cpu = {.name = "cpu", .count = none};
