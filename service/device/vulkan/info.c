/* What the device is, and which of its features code may use. */
#include "device/vulkan/internal.h"

#include <assert.h>
#include <stdio.h>

static void wanted_begin(const struct device *d, struct vulkan_wanted *w)
{
    memset(w, 0, sizeof *w);
    w->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    w->base.pNext = &w->v11;
    w->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    w->v11.pNext = &w->v12;
    w->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    w->v12.pNext = d->offer->robustness2 ? &w->robustness2 : NULL;
    w->robustness2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT;
}

static uint32_t subgroup_operations(const struct device *d)
{
    VkPhysicalDeviceSubgroupProperties s = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceProperties2        p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &s};

    d->vk.vkGetPhysicalDeviceProperties2(d->offer->device, &p);
    return s.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT ? s.supportedOperations : 0;
}

void vulkan_features_choose(struct device *d, struct vulkan_wanted *w)
{
    struct vulkan_wanted offered;
    uint32_t             subgroups = subgroup_operations(d);

    wanted_begin(d, &offered);
    wanted_begin(d, w);
    d->vk.vkGetPhysicalDeviceFeatures2(d->offer->device, &offered.base);
    d->features.always = true;
#define FEATURE(member, group, field, name)                                                                                                \
    d->features.member = offered.group.field == VK_TRUE;                                                                                   \
    w->group.field = offered.group.field;
#include "device/vulkan/features.def"
#undef FEATURE
#define SUBGROUP(member, bit, name) d->features.member = (subgroups & (bit)) != 0;
#include "device/vulkan/subgroups.def"
#undef SUBGROUP
    /* What lies beyond a buffer is neither read nor written. */
    w->base.features.robustBufferAccess = VK_TRUE;
    w->robustness2.robustBufferAccess2 = offered.robustness2.robustBufferAccess2;
    w->v12.timelineSemaphore = VK_TRUE;
    d->addresses = d->features.addresses;
}

void vulkan_identity(const struct vulkan_offer *o, char out[DEVICE_UUID_BYTES])
{
    VkPhysicalDeviceIDProperties   id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2    p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    const struct vulkan_functions *vk = vulkan_load(NULL);
    const unsigned char           *b = id.deviceUUID;

    out[0] = '\0';
    if (!vk)
        return;
    vk->vkGetPhysicalDeviceProperties2(o->device, &p);
    snprintf(out, DEVICE_UUID_BYTES, "VK-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
             b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static void add(struct device *d, const char *name, int64_t value)
{
    struct device_attribute *a = &d->info.attributes[d->info.attributes_count++];

    assert(d->info.attributes_count <= DEVICE_ATTRIBUTES_MAX);
    snprintf(a->name, sizeof a->name, "%s", name);
    a->value = value;
}

static void add_features(struct device *d)
{
#define FEATURE(member, group, field, name) add(d, "feature_" #member, d->features.member);
#include "device/vulkan/features.def"
#undef FEATURE
#define SUBGROUP(member, bit, name) add(d, "feature_" #member, d->features.member);
#include "device/vulkan/subgroups.def"
#undef SUBGROUP
#define FLOAT_MODE(member, mode, capability, width, field) add(d, "feature_" #member, d->float_modes >> SPIRV_FLOAT_##member & 1);
#include "device/vulkan/float_modes.def"
#undef FLOAT_MODE
    add(d, "feature_robust_buffer_access", 1);
}

static void add_limits(struct device *d)
{
    const VkPhysicalDeviceLimits *l = &d->properties.limits;

    add(d, "max_push_constants_bytes", l->maxPushConstantsSize);
    add(d, "max_storage_buffer_range_bytes", l->maxStorageBufferRange);
    add(d, "max_storage_buffers_per_kernel",
        l->maxPerStageDescriptorStorageBuffers < d->push_descriptors_max ? l->maxPerStageDescriptorStorageBuffers
                                                                         : d->push_descriptors_max);
    add(d, "storage_buffer_alignment_bytes", (int64_t)l->minStorageBufferOffsetAlignment);
    add(d, "max_allocation_bytes", d->allocation_bytes_max < INT64_MAX ? (int64_t)d->allocation_bytes_max : INT64_MAX);
    add(d, "max_allocations", l->maxMemoryAllocationCount);
    add(d, "timestamp_period_ps", (int64_t)(l->timestampPeriod * 1000));
    add(d, "queues", d->offer->queues);
}

/* "NVIDIA" of the name, else by the number that makers have. */
static const char *vendor_of(uint32_t number)
{
    static const struct {
        uint32_t    number;
        const char *name;
    } vendors[] = {{0x10de, "NVIDIA"}, {0x1002, "AMD"}, {0x8086, "Intel"}, {0x13b5, "ARM"}, {0x5143, "Qualcomm"}, {0x10005, "Mesa"}};

    for (size_t i = 0; i < COUNT(vendors); i++)
        if (vendors[i].number == number)
            return vendors[i].name;
    return "unknown";
}

static unsigned float_modes(const VkPhysicalDeviceFloatControlsProperties *p)
{
    unsigned modes = 0;

#define FLOAT_MODE(member, mode, capability, width, field) modes |= p->field ? 1u << SPIRV_FLOAT_##member : 0;
#include "device/vulkan/float_modes.def"
#undef FLOAT_MODE
    /* Where all widths must be alike, and some of them cannot, the driver decides for all. */
    return p->denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE ? modes & ~(1u << SPIRV_FLOAT_subnormals_f32)
                                                                                       : modes;
}

static void read_properties(struct device *d, VkPhysicalDeviceDriverProperties *driver, VkPhysicalDeviceSubgroupProperties *subgroup)
{
    VkPhysicalDeviceMaintenance3Properties  m3 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceFloatControlsProperties floats = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, .pNext = &m3};
    VkPhysicalDevicePushDescriptorPropertiesKHR push = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR,
                                                        .pNext = &floats};
    VkPhysicalDeviceProperties2                 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = driver};

    driver->sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    driver->pNext = subgroup;
    subgroup->sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    subgroup->pNext = &push;
    d->vk.vkGetPhysicalDeviceProperties2(d->offer->device, &p);
    d->properties = p.properties;
    d->push_descriptors_max = push.maxPushDescriptors;
    d->allocation_bytes_max = m3.maxMemoryAllocationSize;
    d->float_modes = float_modes(&floats);
}

void vulkan_info_read(struct device *d)
{
    VkPhysicalDeviceDriverProperties   driver = {0};
    VkPhysicalDeviceSubgroupProperties subgroup = {0};
    const VkPhysicalDeviceLimits      *l = &d->properties.limits;
    struct device_info                *out = &d->info;

    read_properties(d, &driver, &subgroup);
    snprintf(out->name, sizeof out->name, "%s", d->properties.deviceName);
    snprintf(out->vendor, sizeof out->vendor, "%s", vendor_of(d->properties.vendorID));
    vulkan_identity(d->offer, out->uuid);
    snprintf(out->compute_capability, sizeof out->compute_capability, "%u.%u", VK_API_VERSION_MAJOR(d->properties.apiVersion) % 1000,
             VK_API_VERSION_MINOR(d->properties.apiVersion) % 1000);
    snprintf(out->driver, sizeof out->driver, "%.20s %.40s", driver.driverName, driver.driverInfo);
    snprintf(out->compile_arch, sizeof out->compile_arch, "vulkan1.2");
    snprintf(out->compiler, sizeof out->compiler, "shaderc");
    out->code_format = DEVICE_CODE_SPIRV;
    out->on_host = d->offer->software;
    out->unified_memory = d->properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    out->warp_size = subgroup.subgroupSize;
    out->max_threads_per_block = l->maxComputeWorkGroupInvocations;
    memcpy(out->max_block, l->maxComputeWorkGroupSize, sizeof out->max_block);
    memcpy(out->max_grid, l->maxComputeWorkGroupCount, sizeof out->max_grid);
    out->max_shared_bytes_per_block = l->maxComputeSharedMemorySize;
    out->sharing = DEVICE_SHARES_NOTHING;
    out->unified_addressing = d->addresses;
    /* llvmpipe ends loops of a thread after 65,535 turns in all, without a word. */
    snprintf(out->unsupported, sizeof out->unsupported, "textures,printf,globals,cooperative,dynamic_shared_memory,memcheck,libraries%s",
             driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE ? ",long_loops" : "");
    for (unsigned i = 0; i < DEVICE_SENSORS; i++)
        out->sensors[i] = (struct device_reading){.state = SENSOR_NOT_OFFERED};
    add_limits(d);
    add_features(d);
}
