/* Modules: their kernel tables, and pipelines by the size of the workgroup. */
#include "device/vulkan/internal.h"

#include <stdlib.h>

enum { BUFFER_PARAM_BYTES = sizeof(uint64_t) };

/* ---- the kernel table ---- */

/* Buffers by ascending binding, then the push constants as their block lays them out. */
static enum status add_kernel(struct device_module *m, const struct spirv_kernel *k, uint64_t shared, uint32_t threads, struct problem *why)
{
    uint32_t            n = k->bindings_count;
    struct kernel_desc *to = kernel_table_add(&m->table, span_of(k->name), n + k->push_count);

    if (!to)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    to->shared_bytes = (uint32_t)shared;
    to->max_threads = threads;
    for (uint32_t i = 0; i < n; i++)
        to->params[i] = (struct kernel_param){.offset = i * BUFFER_PARAM_BYTES, .size = BUFFER_PARAM_BYTES, .type = "u64"};
    for (uint32_t i = 0; i < k->push_count; i++) {
        to->params[n + i] = k->push[i];
        to->params[n + i].offset += n * BUFFER_PARAM_BYTES;
    }
    to->params_bytes = n * BUFFER_PARAM_BYTES + k->push_bytes;
    for (unsigned i = 0; i < 3; i++)
        to->block[i] = k->free[i] ? 0 : k->block[i];
    return STATUS_OK;
}

static bool is_fixed(const struct spirv_kernel *k)
{
    return !k->free[0] && !k->free[1] && !k->free[2];
}

static uint64_t threads_of(const uint32_t block[3])
{
    uint64_t threads = (uint64_t)block[0] * block[1];

    return threads > UINT32_MAX ? threads : threads * block[2];
}

enum status vulkan_block_check(const struct device *d, const struct device_module *m, unsigned kernel, const uint32_t block[3],
                               struct problem *why)
{
    const VkPhysicalDeviceLimits *l = &d->properties.limits;
    const struct spirv_kernel    *k = &m->kernels[kernel].reflected;
    uint64_t                      shared = 0;

    for (unsigned i = 0; i < 3; i++) {
        if (block[i] == 0 || block[i] > l->maxComputeWorkGroupSize[i])
            return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "block dimension %u is %u, must be 1 to %u", i, block[i],
                               l->maxComputeWorkGroupSize[i]);
        if (!k->free[i] && block[i] != k->block[i])
            return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID,
                               "the code of the kernel %.64s fixes block dimension %u at %u, the launch says %u", k->name, i, k->block[i],
                               block[i]);
    }
    if (threads_of(block) > l->maxComputeWorkGroupInvocations)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the workgroup has %u x %u x %u threads, at most %u are possible", block[0],
                           block[1], block[2], l->maxComputeWorkGroupInvocations);
    if (spirv_shared_bytes(m->code, kernel, block, &shared, why))
        return why ? why->status : STATUS_MODULE_INVALID;
    if (shared > l->maxComputeSharedMemorySize)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the workgroup needs %llu bytes of shared memory, the device has %u",
                           (unsigned long long)shared, l->maxComputeSharedMemorySize);
    return STATUS_OK;
}

/* ---- limits ---- */

static enum status check_takes(const struct device *d, const struct spirv_kernel *k, struct problem *why)
{
    const VkPhysicalDeviceLimits *l = &d->properties.limits;
    uint32_t                      most =
        l->maxPerStageDescriptorStorageBuffers < d->push_descriptors_max ? l->maxPerStageDescriptorStorageBuffers : d->push_descriptors_max;

    if (k->push_bytes > l->maxPushConstantsSize)
        return problem_set(why, STATUS_MODULE_INVALID, "the kernel %.64s has %u bytes of push constants, the device allows %u", k->name,
                           k->push_bytes, l->maxPushConstantsSize);
    if (k->bindings_count > most)
        return problem_set(why, STATUS_MODULE_INVALID, "the kernel %.64s takes %u buffers, the device allows %u", k->name,
                           k->bindings_count, most);
    return STATUS_OK;
}

/* ---- layouts and pipelines ---- */

static VkResult create_set_layout(struct device *d, struct vulkan_kernel *k)
{
    VkDescriptorSetLayoutBinding    bindings[SPIRV_BINDINGS_MAX] = {0};
    VkDescriptorSetLayoutCreateInfo create = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                              .flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR,
                                              .bindingCount = k->reflected.bindings_count,
                                              .pBindings = bindings};

    for (uint32_t i = 0; i < k->reflected.bindings_count; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){.binding = k->reflected.bindings[i],
                                                     .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                     .descriptorCount = 1,
                                                     .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    return d->vk.vkCreateDescriptorSetLayout(d->device, &create, NULL, &k->set);
}

/* Whole words: the block's end is rounded up to one, as pushes are. */
static VkResult create_layout(struct device *d, struct vulkan_kernel *k)
{
    const VkPushConstantRange  push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = (k->reflected.push_bytes + 3) / 4 * 4};
    VkPipelineLayoutCreateInfo create = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .setLayoutCount = k->reflected.bindings_count ? 1 : 0,
                                         .pSetLayouts = &k->set,
                                         .pushConstantRangeCount = k->reflected.push_bytes ? 1 : 0,
                                         .pPushConstantRanges = &push};
    VkResult                   r = k->reflected.bindings_count ? create_set_layout(d, k) : VK_SUCCESS;

    return r ? r : d->vk.vkCreatePipelineLayout(d->device, &create, NULL, &k->layout);
}

static VkResult create_pipeline(struct device *d, const struct device_module *m, const struct vulkan_kernel *k, const uint32_t block[3],
                                VkPipeline *out)
{
    VkSpecializationMapEntry    entries[3];
    VkSpecializationInfo        sizes = {.pMapEntries = entries, .dataSize = 3 * sizeof *block, .pData = block};
    VkComputePipelineCreateInfo create = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                          .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                    .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                    .module = m->shader,
                                                    .pName = k->reflected.name,
                                                    .pSpecializationInfo = &sizes},
                                          .layout = k->layout};

    for (uint32_t i = 0; i < 3; i++)
        if (k->reflected.free[i])
            entries[sizes.mapEntryCount++] =
                (VkSpecializationMapEntry){k->reflected.spec_id[i], i * (uint32_t)sizeof *block, sizeof *block};
    return d->vk.vkCreateComputePipelines(d->device, VK_NULL_HANDLE, 1, &create, NULL, out);
}

enum status vulkan_pipeline(struct device *d, struct device_module *m, unsigned kernel, const uint32_t block[3], VkPipeline *out,
                            struct problem *why)
{
    struct vulkan_kernel   *k = &m->kernels[kernel];
    struct vulkan_pipeline *to = &k->pipelines[k->pipelines_next];
    VkPipeline              made = VK_NULL_HANDLE;
    VkResult                result;
    enum status             st;

    for (uint32_t i = 0; i < k->pipelines_count; i++)
        if (memcmp(k->pipelines[i].block, block, sizeof k->pipelines[i].block) == 0) {
            *out = k->pipelines[i].pipeline;
            return STATUS_OK;
        }
    result = create_pipeline(d, m, k, block, &made);
    if (result == VK_ERROR_UNKNOWN || result == VK_ERROR_INVALID_SHADER_NV) /* so a driver says that it does not take the code */
        return problem_set(why, STATUS_MODULE_INVALID, "the driver does not compile %s, although the SPIR-V is valid", k->reflected.name);
    st = vulkan_check(d, result, why, "compiling a kernel for the device");
    if (st)
        return st;
    if (k->pipelines_count < PIPELINES_PER_KERNEL_MAX)
        k->pipelines_count++;
    else {
        d->changes++;
        vulkan_discard(d, (struct garbage){.pipeline = to->pipeline});
    }
    to->pipeline = *out = made;
    memcpy(to->block, block, sizeof to->block);
    k->pipelines_next = (k->pipelines_next + 1) % PIPELINES_PER_KERNEL_MAX;
    return STATUS_OK;
}

/* ---- load ---- */

/* What the device cannot run of any size that a launch may choose is refused now. */
static enum status make_kernel(struct device *d, struct device_module *m, unsigned i, struct problem *why)
{
    struct vulkan_kernel      *k = &m->kernels[i];
    const struct spirv_kernel *from = &k->reflected;
    uint32_t                   most = d->properties.limits.maxComputeWorkGroupInvocations;
    uint64_t                   shared = 0;
    VkPipeline                 ignored;
    enum status                st;

    k->reflected = *spirv_kernel_at(m->code, i);
    st = check_takes(d, from, why);
    if (!st)
        st = vulkan_block_check(d, m, i, from->block, why);
    if (!st)
        st = spirv_shared_bytes(m->code, i, from->block, &shared, why);
    if (!st)
        st = vulkan_check(d, create_layout(d, k), why, "making the layout of a kernel");
    if (!st && is_fixed(from))
        st = vulkan_pipeline(d, m, i, from->block, &ignored, why);
    if (!st)
        st = add_kernel(m, from, shared, is_fixed(from) ? (uint32_t)threads_of(from->block) : most, why);
    return st == STATUS_LAUNCH_CONFIG_INVALID && why ? why->status = STATUS_MODULE_INVALID : st;
}

static enum status make_shader(struct device *d, struct device_module *m, struct problem *why)
{
    VkShaderModuleCreateInfo create = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    uint32_t                *words;
    enum status              st = spirv_with_floats(m->code, d->float_modes, &words, &create.codeSize, why);

    if (st)
        return st;
    create.pCode = words;
    st = vulkan_check(d, d->vk.vkCreateShaderModule(d->device, &create, NULL, &m->shader), why, "loading the code");
    free(words);
    return st;
}

static enum status make_kernels(struct device *d, struct device_module *m, struct problem *why)
{
    enum status st = STATUS_OK;

    m->kernels = calloc(spirv_kernels(m->code), sizeof *m->kernels);
    if (!m->kernels)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    st = make_shader(d, m, why);
    for (unsigned i = 0; i < spirv_kernels(m->code) && !st; i++)
        st = make_kernel(d, m, i, why);
    return st;
}

static void free_module(struct device *d, struct device_module *m)
{
    for (unsigned i = 0; m->kernels && i < spirv_kernels(m->code); i++) {
        struct vulkan_kernel *k = &m->kernels[i];

        for (uint32_t p = 0; p < k->pipelines_count; p++)
            vulkan_discard(d, (struct garbage){.pipeline = k->pipelines[p].pipeline});
        d->vk.vkDestroyPipelineLayout(d->device, k->layout, NULL);
        d->vk.vkDestroyDescriptorSetLayout(d->device, k->set, NULL);
    }
    d->vk.vkDestroyShaderModule(d->device, m->shader, NULL);
    kernel_table_finish(&m->table);
    spirv_free(m->code);
    free(m->kernels);
    free(m);
}

enum status vulkan_module_load(struct device *d, const char *image, size_t bytes, struct device_module **out, struct problem *why)
{
    struct device_module *m;
    enum status           st = vulkan_alive(d, why);

    if (st)
        return st;
    m = calloc(1, sizeof *m);
    if (!m)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    kernel_table_init(&m->table);
    st = spirv_read((struct span){image, bytes}, &d->features, &m->code, why);
    if (!st)
        st = make_kernels(d, m, why);
    if (st) {
        free_module(d, m);
        return st;
    }
    LIST_INSERT_HEAD(&d->modules, m, in_device);
    *out = m;
    return STATUS_OK;
}

void vulkan_module_unload(struct device *d, struct device_module *m)
{
    if (!m)
        return;
    LIST_REMOVE(m, in_device);
    d->changes++;
    free_module(d, m);
}

const struct kernel_table *vulkan_module_table(const struct device_module *m)
{
    return &m->table;
}
