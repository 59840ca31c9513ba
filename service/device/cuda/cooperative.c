/* Cooperative launches: all blocks are resident at once, so that they may wait for each other. */
#include "device/cuda/internal.h"

/* This driver call takes a pointer per parameter, and copies the values before it returns. */
enum status cuda_launch_cooperative(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    const struct kernel_desc *k = &l->module->table.kernels[l->kernel];
    void                     *params[KERNEL_PARAMS_MAX];

    if (k->params_count > KERNEL_PARAMS_MAX)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the kernel of a cooperative launch can have at most %d parameters",
                           KERNEL_PARAMS_MAX);
    for (uint32_t i = 0; i < k->params_count; i++)
        params[i] = (unsigned char *)(uintptr_t)l->params + k->params[i].offset;
    return cuda_check(d,
                      d->cu->cuLaunchCooperativeKernel(l->module->kernels[l->kernel].function, l->grid[0], l->grid[1], l->grid[2],
                                                       l->block[0], l->block[1], l->block[2], l->shared_bytes, s->handle, params),
                      why, "the cooperative launch");
}
