/* What can be known about a launch before it reaches the device. Pure functions: no locks, no worker. */
#pragma once

#include "session/life/device_facts.h"
#include "session/session.h"

/* LAUNCH_CONFIG_INVALID with /grid, /block or /shared_bytes. */
enum status check_config(const struct kernel_desc *kernel, const struct device_facts *device, const uint32_t grid[3],
                         const uint32_t block[3], uint32_t shared_bytes, struct problem *why);
/* As many blocks as hold `threads`, in one dimension. LAUNCH_CONFIG_INVALID when there is no such number. */
enum status check_grid_of(uint64_t threads, const uint32_t block[3], const struct device_facts *device, uint32_t grid[3],
                          struct problem *why);
