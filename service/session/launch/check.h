/* What can be known about a launch before it reaches the device. Pure functions: no locks, no worker. */
#ifndef GPUREST_SESSION_CHECK_H
#define GPUREST_SESSION_CHECK_H

#include "session/life/device_facts.h"
#include "session/session.h"

/* Where a buffer lies and how large it is; false: there is none of that id. */
typedef bool buffer_lookup(void *context, struct span id, uint64_t *address, uint64_t *bytes);

struct packed {
    uint32_t      bytes;
    unsigned char data[KERNEL_PARAM_BYTES_MAX];
};

/* Whether that scalar is a number of the kind that `wanted` names ("f32", "u64"): an integer, whatever its sign, or this very float.
 * Sizes are looked at elsewhere. */
bool check_number_fits(const struct launch_arg *scalar, const char *wanted);
/* Lays the arguments out as the kernel wants them. ARGUMENT_MISMATCH names /args/N, BUFFER_NOT_FOUND too. *out is whole only on OK. */
enum status check_pack(const struct kernel_desc *kernel, const struct launch_arg *args, unsigned count, buffer_lookup *lookup,
                       void *context, struct packed *out, struct problem *why);
/* LAUNCH_CONFIG_INVALID with /grid, /block or /shared_bytes. */
enum status check_config(const struct kernel_desc *kernel, const struct device_facts *device, const uint32_t grid[3],
                         const uint32_t block[3], uint32_t shared_bytes, struct problem *why);
/* As many blocks as hold `threads`, in one dimension. LAUNCH_CONFIG_INVALID when there is no such number. */
enum status check_grid_of(uint64_t threads, const uint32_t block[3], const struct device_facts *device, uint32_t grid[3],
                          struct problem *why);

#endif
