/* Launches: checked, and recorded with their buffers and push constants. */
#include "device/vulkan/internal.h"

/* The module of a launch is the caller's own; its pipelines are made while it is used. */
static struct device_module *module_of(const struct device_launch *l)
{
    return (struct device_module *)(uintptr_t)l->module;
}

static enum status check_grid(const struct device *d, const struct device_launch *l, struct problem *why)
{
    const uint32_t *most = d->properties.limits.maxComputeWorkGroupCount;

    for (unsigned i = 0; i < 3; i++)
        if (l->grid[i] == 0 || l->grid[i] > most[i])
            return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "grid dimension %u is %u, must be 1 to %u", i, l->grid[i], most[i]);
    return STATUS_OK;
}

enum status vulkan_launch_check(struct device *d, const struct device_launch *l, struct problem *why)
{
    const struct kernel_table *t = &l->module->table;
    enum status                st = vulkan_alive(d, why);

    if (st)
        return st;
    if (l->kernel >= t->kernels_count)
        return problem_set(why, STATUS_INTERNAL, "unknown kernel %u", l->kernel);
    if (l->cooperative)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "a Vulkan device has no cooperative launches");
    if (l->shared_bytes)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID,
                           "a Vulkan kernel has no dynamic shared memory; size its shared arrays by a specialisation constant");
    if (l->params_bytes != t->kernels[l->kernel].params_bytes)
        return problem_set(why, STATUS_ARGUMENT_MISMATCH, "the kernel takes %u bytes of parameters, got %u",
                           t->kernels[l->kernel].params_bytes, l->params_bytes);
    st = check_grid(d, l, why);
    return st ? st : vulkan_block_check(d, l->module, l->kernel, l->block, why);
}

/* A buffer argument is an address within an allocation; the kernel has what lies from there to its end. */
static enum status resolve(const struct device *d, uint32_t binding, uint64_t address, VkDescriptorBufferInfo *out, struct problem *why)
{
    const VkPhysicalDeviceLimits *l = &d->properties.limits;
    const struct vulkan_memory   *m = vulkan_memory_at(d, address);
    uint64_t                      alignment = l->minStorageBufferOffsetAlignment;

    if (!m)
        return problem_set(why, STATUS_ARGUMENT_MISMATCH, "binding %u needs a buffer: no memory is at 0x%llx", binding,
                           (unsigned long long)address);
    *out = (VkDescriptorBufferInfo){m->buffer, m->shift + (address - m->address), m->bytes - (address - m->address)};
    if (alignment && out->offset % alignment)
        return problem_set(why, STATUS_ARGUMENT_MISMATCH, "the buffer of binding %u begins at a byte that is no multiple of %llu", binding,
                           (unsigned long long)alignment);
    if (out->range > l->maxStorageBufferRange)
        return problem_set(why, STATUS_ARGUMENT_MISMATCH,
                           "the buffer of binding %u has %llu bytes, a binding on this device has at most %u; use a device address",
                           binding, (unsigned long long)out->range, l->maxStorageBufferRange);
    return STATUS_OK;
}

static enum status push_buffers(struct device *d, VkCommandBuffer commands, const struct vulkan_kernel *k, const void *params,
                                struct problem *why)
{
    VkWriteDescriptorSet   writes[SPIRV_BINDINGS_MAX];
    VkDescriptorBufferInfo buffers[SPIRV_BINDINGS_MAX];
    uint32_t               n = k->reflected.bindings_count;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t    address;
        enum status st;

        memcpy(&address, (const char *)params + i * sizeof address, sizeof address);
        st = resolve(d, k->reflected.bindings[i], address, &buffers[i], why);
        if (st)
            return st;
        writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstBinding = k->reflected.bindings[i],
                                           .descriptorCount = 1,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = &buffers[i]};
    }
    if (n)
        d->vk.vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, k->layout, 0, n, writes);
    return STATUS_OK;
}

static void push_constants(struct device *d, VkCommandBuffer commands, const struct vulkan_kernel *k, const void *params)
{
    unsigned char words[KERNEL_PARAM_BYTES_MAX + sizeof(uint32_t)];
    uint32_t      bytes = k->reflected.push_bytes, rounded = (bytes + 3) / 4 * 4;

    if (!bytes)
        return;
    memcpy(words, (const char *)params + k->reflected.bindings_count * sizeof(uint64_t), bytes);
    memset(words + bytes, 0, rounded - bytes);
    d->vk.vkCmdPushConstants(commands, k->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, rounded, words);
}

enum status vulkan_launch_record(struct device *d, VkCommandBuffer commands, const struct device_launch *l, struct problem *why)
{
    struct device_module       *m = module_of(l);
    const struct vulkan_kernel *k = &m->kernels[l->kernel];
    VkPipeline                  pipeline;
    enum status                 st = vulkan_pipeline(d, m, l->kernel, l->block, &pipeline, why);

    if (!st)
        st = push_buffers(d, commands, k, l->params, why);
    if (st)
        return st;
    push_constants(d, commands, k, l->params);
    d->vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    d->vk.vkCmdDispatch(commands, l->grid[0], l->grid[1], l->grid[2]);
    return STATUS_OK;
}

static void reset_stamps(struct device *d, VkCommandBuffer commands, const struct device_launch *l)
{
    if (l->before)
        d->vk.vkCmdResetQueryPool(commands, l->before->query, 0, 1);
    if (l->after)
        d->vk.vkCmdResetQueryPool(commands, l->after->query, 0, 1);
}

enum status vulkan_launch(struct device *d, struct device_stream *s, const struct device_launch *l, struct problem *why)
{
    struct job *j;
    enum status st = vulkan_launch_check(d, l, why), recorded;

    if (st)
        return st;
    s = vulkan_stream(d, s);
    st = vulkan_job_begin(d, s, &j);
    if (st)
        return d->lost ? vulkan_alive(d, why) : problem_set(why, st, "cannot queue the launch");
    reset_stamps(d, j->commands, l);
    if (l->before)
        vulkan_event_stamp(d, j->commands, l->before);
    recorded = vulkan_launch_record(d, j->commands, l, why);
    if (l->after)
        vulkan_event_stamp(d, j->commands, l->after);
    st = vulkan_job_end(d, s, j, recorded);
    if (st)
        return d->lost ? vulkan_alive(d, why) : recorded ? recorded : problem_set(why, st, "cannot queue the launch");
    if (l->before)
        vulkan_event_arm(l->before, s, s->submitted - 1); /* it is behind what was submitted before the launch */
    if (l->after)
        vulkan_event_arm(l->after, s, s->submitted);
    return STATUS_OK;
}

/* Where the code leaves the size open: enough for any maker's subgroups. */
enum { BEST_BLOCK_THREADS = 256 };

enum status vulkan_best_block(struct device *d, const struct device_module *m, unsigned kernel, uint32_t shared_bytes, uint32_t *threads)
{
    const struct spirv_kernel *k = kernel < m->table.kernels_count ? &m->kernels[kernel].reflected : NULL;
    uint32_t                   most = d->properties.limits.maxComputeWorkGroupInvocations;

    if (!k)
        return STATUS_INTERNAL;
    if (shared_bytes)
        return STATUS_LAUNCH_CONFIG_INVALID;
    *threads = !k->free[0] ? k->block[0] : most < BEST_BLOCK_THREADS ? most : BEST_BLOCK_THREADS;
    return STATUS_OK;
}
