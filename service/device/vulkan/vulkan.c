/* The `vulkan` device: struct device_ops for GPUs of any maker, and for Mesa's lavapipe, which needs none. */
#include "device/vulkan/internal.h"

#include <stdlib.h>

#include "device/vulkan/canary.h"

/* ---- results ---- */

enum status vulkan_alive(struct device *d, struct problem *why)
{
    if (d->lost && why)
        *why = d->lost_why;
    return d->lost;
}

/* The driver does not tell why a device is lost: of work of its own, a kernel is the cause. */
static enum status lose(struct device *d, const char *doing)
{
    d->lost =
        problem_set(&d->lost_why, STATUS_KERNEL_FAULT,
                    "the device was lost (VK_ERROR_DEVICE_LOST) while %s: a kernel used memory that is not its own, or did not end", doing);
    return d->lost;
}

enum status vulkan_check(struct device *d, VkResult r, struct problem *why, const char *doing)
{
    if (d->lost)
        return vulkan_alive(d, why);
    if (r == VK_SUCCESS)
        return STATUS_OK;
    if (r == VK_ERROR_DEVICE_LOST) {
        lose(d, doing);
        return vulkan_alive(d, why);
    }
    return problem_set(why,
                       r == VK_ERROR_OUT_OF_DEVICE_MEMORY || r == VK_ERROR_TOO_MANY_OBJECTS ? STATUS_DEVICE_MEMORY_EXHAUSTED
                       : r == VK_ERROR_OUT_OF_HOST_MEMORY                                   ? STATUS_OUT_OF_MEMORY
                                                                                            : STATUS_DEVICE_ERROR,
                       "%s failed: %s", doing, vulkan_result_name(r));
}

/* ---- which devices ---- */

static unsigned device_count(struct problem *why)
{
    unsigned count = vulkan_offers(why);

    return count < DEVICES_MAX ? count : DEVICES_MAX;
}

static void identify(unsigned index, char out[DEVICE_UUID_BYTES])
{
    const struct vulkan_offer *o = vulkan_offers(NULL) > index ? vulkan_offer_at(index) : NULL;

    out[0] = '\0';
    if (o)
        vulkan_identity(o, out);
}

/* A software device makes code while it runs. Its library is opened here: the process may open no files later. */
static bool prepare(bool runs_kernels)
{
    struct problem why;
    unsigned       count = vulkan_offers(&why);

    (void)runs_kernels;
    for (unsigned i = 0; i < count; i++)
        if (vulkan_offer_at(i)->software)
            return true;
    return false;
}

static const char *driver_build(struct device *d)
{
    (void)d;
    return ""; /* no list of system calls has been learnt for any driver */
}

static const char *const driver_reads[] = {"/etc/nvidia", "/etc/vulkan", "/proc/driver", NULL};
static const char *const nvidia_files[] = {"nvidia", NULL}, *const drm_files[] = {"dri", NULL};
static const struct device_driver driver = {.build = driver_build, .reads = driver_reads, .device_files = nvidia_files};
static const struct device_driver drm_driver = {.build = driver_build, .reads = driver_reads, .device_files = drm_files};

enum { VENDOR_NVIDIA = 0x10de };

/* lavapipe is only code of this process: it is locked down as the cpu device is. */
static const struct device_driver *driver_of(unsigned index)
{
    VkPhysicalDeviceProperties2    p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    const struct vulkan_functions *vk = vulkan_load(NULL);
    const struct vulkan_offer     *o = vk ? vulkan_offer_at(index) : NULL;

    if (!o || o->software)
        return NULL;
    vk->vkGetPhysicalDeviceProperties2(o->device, &p);
    return p.properties.vendorID == VENDOR_NVIDIA ? &driver : &drm_driver;
}

/* ---- open and close ---- */

static enum status create_device(struct device *d, struct problem *why)
{
    static const float            priorities[VULKAN_QUEUES_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = d->offer->family,
                                           .queueCount = d->offer->queues,
                                           .pQueuePriorities = priorities};
    const char                   *extensions[3] = {VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME};
    struct vulkan_wanted          wanted;
    VkDeviceCreateInfo            create = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                            .queueCreateInfoCount = 1,
                                            .pQueueCreateInfos = &queue,
                                            .enabledExtensionCount = 1,
                                            .ppEnabledExtensionNames = extensions};
    VkResult                      r;
    const char                   *missing;

    if (d->offer->memory_budget)
        extensions[create.enabledExtensionCount++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (d->offer->robustness2)
        extensions[create.enabledExtensionCount++] = VK_EXT_ROBUSTNESS_2_EXTENSION_NAME;
    vulkan_features_choose(d, &wanted);
    create.pNext = &wanted.base;
    r = d->vk.vkCreateDevice(d->offer->device, &create, NULL, &d->device);
    if (r)
        return problem_set(why, STATUS_DEVICE_ERROR, "vkCreateDevice returned %s", vulkan_result_name(r));
    missing = vulkan_bind_device(d->device, &d->vk);
    return missing ? problem_set(why, STATUS_DEVICE_ERROR, "the Vulkan driver has no %s", missing) : STATUS_OK;
}

static enum status open_parts(struct device *d, struct problem *why)
{
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = d->offer->family};
    enum status             st = create_device(d, why);

    if (st)
        return st;
    for (uint32_t i = 0; i < d->offer->queues; i++)
        d->vk.vkGetDeviceQueue(d->device, d->offer->family, i, &d->queues[i]);
    vulkan_info_read(d);
    st = vulkan_check(d, d->vk.vkCreateCommandPool(d->device, &pool, NULL, &d->pool), why, "creating a command pool");
    if (!st)
        st = vulkan_memory_start(d, why);
    if (!st && (st = vulkan_stream_create(d, &d->main_stream)))
        problem_set(why, st, "cannot create the device's stream");
    return st;
}

static void device_close(struct device *d)
{
    if (!d)
        return;
    if (d->device && d->vk.vkDeviceWaitIdle)
        d->vk.vkDeviceWaitIdle(d->device);
    if (d->pool) {
        while (!LIST_EMPTY(&d->graphs))
            vulkan_graph_destroy(d, LIST_FIRST(&d->graphs));
        while (!LIST_EMPTY(&d->events))
            vulkan_event_destroy(d, LIST_FIRST(&d->events));
        vulkan_streams_finish(d);
        while (!LIST_EMPTY(&d->modules))
            vulkan_module_unload(d, LIST_FIRST(&d->modules));
        vulkan_memory_finish(d);
        d->vk.vkDestroyCommandPool(d->device, d->pool, NULL);
    }
    if (d->device && d->vk.vkDestroyDevice)
        d->vk.vkDestroyDevice(d->device, NULL);
    free(d);
}

static enum status device_open(struct device **out, unsigned index, struct problem *why)
{
    const struct vulkan_functions *vk = vulkan_load(why);
    struct device                 *d;
    enum status                    st;

    if (!vk)
        return why ? why->status : STATUS_DEVICE_NOT_FOUND;
    if (!vulkan_offer_at(index))
        return problem_set(why, STATUS_DEVICE_NOT_FOUND, "there is no Vulkan device of the index %u", index);
    d = calloc(1, sizeof *d);
    if (!d)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of host memory");
    d->vk = *vk;
    d->offer = vulkan_offer_at(index);
    d->index = index;
    STAILQ_INIT(&d->garbage);
    st = open_parts(d, why);
    if (st)
        device_close(d);
    else
        *out = d;
    return st;
}

/* ---- the rest ---- */

static enum status device_info(struct device *d, struct device_info *out)
{
    struct device_memory memory = {0};
    enum status          st = vulkan_memory(d, &memory);

    *out = d->info;
    out->total_bytes = memory.total_bytes;
    out->free_bytes = memory.free_bytes;
    return st;
}

/* Shaders have no printf here. */
static enum status take_output(struct device *d, struct device_stream *s, struct buf *out)
{
    (void)s, (void)out;
    return vulkan_alive(d, NULL);
}

const struct device_ops device_vulkan = {
    .name = "vulkan",
    .only_if_named = true,
    .prepare = prepare,
    .canary = {(const char *)canary_spirv, sizeof canary_spirv},
    .count = device_count,
    .identify = identify,
    .open = device_open,
    .close = device_close,
    .driver = driver_of,
    .info = device_info,
    .memory = vulkan_memory,
    .memory_reset_peak = vulkan_memory_reset_peak,
    .mem_alloc = vulkan_mem_alloc,
    .mem_free = vulkan_mem_free,
    .mem_write = vulkan_mem_write,
    .mem_read = vulkan_mem_read,
    .mem_copy = vulkan_mem_copy,
    .mem_fill = vulkan_mem_fill,
    .module_load = vulkan_module_load,
    .module_unload = vulkan_module_unload,
    .module_table = vulkan_module_table,
    .launch = vulkan_launch,
    .best_block = vulkan_best_block,
    .stream_create = vulkan_stream_create,
    .stream_destroy = vulkan_stream_destroy,
    .event_create = vulkan_event_create,
    .event_destroy = vulkan_event_destroy,
    .event_record = vulkan_event_record,
    .event_query = vulkan_event_query,
    .event_elapsed = vulkan_event_elapsed,
    .stream_wait = vulkan_stream_wait,
    .wait_progress = vulkan_wait_progress,
    .take_output = take_output,
    .graph_create = vulkan_graph_create,
    .graph_set = vulkan_graph_set,
    .graph_run = vulkan_graph_run,
    .graph_destroy = vulkan_graph_destroy,
};
