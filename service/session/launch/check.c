/* Whether grid, block and shared memory suit the kernel and the device. */
#include "session/launch/check.h"

#include <inttypes.h>

static enum status check_extent(const uint32_t n[3], const uint32_t max[3], const char *pointer, struct problem *why)
{
    const char *name = pointer + 1; /* without the slash */

    for (unsigned i = 0; i < 3; i++) {
        if (n[i] == 0)
            return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, pointer, "range", "%s dimension %u is 0, must be at least 1", name, i);
        if (n[i] > max[i])
            return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, pointer, "range", "%s dimension %u is %u, the device allows %u", name,
                                 i, n[i], max[i]);
    }
    return STATUS_OK;
}

enum status check_config(const struct kernel_desc *kernel, const struct device_facts *device, const uint32_t grid[3],
                         const uint32_t block[3], uint32_t shared_bytes, struct problem *why)
{
    uint64_t    threads = (uint64_t)block[0] * block[1]; /* both are at most max_block once checked; the third factor is bounded below */
    uint64_t    shared = (uint64_t)kernel->shared_bytes + shared_bytes;
    uint32_t    most = device->max_threads_per_block;
    enum status st = check_extent(grid, device->max_grid, "/grid", why);

    if (!st)
        st = check_extent(block, device->max_block, "/block", why);
    if (st)
        return st;
    for (unsigned i = 0; i < 3; i++)
        if (kernel->block[i] && block[i] != kernel->block[i])
            return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, "/block", "range",
                                 "block dimension %u is %u, the kernel's code fixes it at %u; omit block to have what the code says", i,
                                 block[i], kernel->block[i]);
    if (kernel->max_threads && kernel->max_threads < most)
        most = kernel->max_threads;
    if (threads > most || threads * block[2] > most)
        return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, "/block", "range",
                             "the block has %u x %u x %u threads, at most %u are possible", block[0], block[1], block[2], most);
    if (shared > device->max_shared_bytes_per_block)
        return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, "/shared_bytes", "range",
                             "the launch needs %" PRIu64 " bytes of shared memory with the kernel's own, the device has %" PRIu64, shared,
                             device->max_shared_bytes_per_block);
    return STATUS_OK;
}

enum status check_grid_of(uint64_t threads, const uint32_t block[3], const struct device_facts *device, uint32_t grid[3],
                          struct problem *why)
{
    uint64_t per_block = (uint64_t)block[0] * block[1];
    uint64_t blocks;

    if (per_block == 0 || block[2] == 0 || per_block > UINT32_MAX)
        return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, "/block", "range", "the block has no threads, or too many");
    per_block *= block[2];
    if (threads == 0)
        return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, "/grid", "range", "threads must be at least 1");
    blocks = threads / per_block + (threads % per_block != 0);
    if (blocks > device->max_grid[0])
        return problem_field(why, STATUS_LAUNCH_CONFIG_INVALID, "/grid", "range", "the grid has %" PRIu64 " blocks, the device allows %u",
                             blocks, device->max_grid[0]);
    grid[0] = (uint32_t)blocks;
    grid[1] = grid[2] = 1;
    return STATUS_OK;
}
