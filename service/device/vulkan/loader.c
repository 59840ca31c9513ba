/* Opens the Vulkan loader at run time, and finds the devices that can be used. */
#include "device/vulkan/loader.h"
#include "device/vulkan/bounds.h"

#include <stdlib.h>

#include "base/files/library.h"
#include "base/span.h"

static struct vulkan_functions loaded;
static bool                    tried;
static struct problem          failure; /* why nothing is loaded */
static VkInstance              instance;
static struct vulkan_offer     offers[DEVICES_MAX];
static unsigned                offers_count;
static struct problem          refusal; /* why the last device that cannot be used cannot */

static const char *const libraries[LIBRARY_NAMES] = {"libvulkan.so.1", "/usr/local/nvidia/lib64/libvulkan.so.1"};

/* Caches of compiled kernels would be shared by all callers, and layers are for people who look at one program. */
static void set_environment(void)
{
    setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    setenv("MESA_GLSL_CACHE_DISABLE", "true", 1);
    setenv("__GL_SHADER_DISK_CACHE", "0", 1);
    setenv("VK_LOADER_LAYERS_DISABLE", "~implicit~", 1);
    setenv("NODEVICE_SELECT", "1", 1);
    setenv("DISABLE_LAYER_AMD_SWITCHABLE_GRAPHICS_1", "1", 1);
}

static PFN_vkGetInstanceProcAddr open_library(void)
{
    PFN_vkGetInstanceProcAddr     get = NULL;
    const struct library_function function = {"vkGetInstanceProcAddr", (void **)(void *)&get};
    void                         *lib = library_open("", libraries);

    return lib && !library_bind(lib, &function, 1) ? get : NULL;
}

/* The name of the first that is missing, or NULL. */
static const char *bind_global(PFN_vkGetInstanceProcAddr get)
{
    const char *missing = NULL;

#define GLOBAL(name)                                                                                                                       \
    if (!(loaded.name = (PFN_##name)get(NULL, #name)) && !missing)                                                                         \
        missing = #name;
#define INSTANCE(name)
#define DEVICE(name)
#include "device/vulkan/functions.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
    return missing;
}

static const char *bind_instance(PFN_vkGetInstanceProcAddr get)
{
    const char *missing = NULL;

#define GLOBAL(name)
#define INSTANCE(name)                                                                                                                     \
    if (!(loaded.name = (PFN_##name)get(instance, #name)) && !missing)                                                                     \
        missing = #name;
#define DEVICE(name)
#include "device/vulkan/functions.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
    return missing;
}

const char *vulkan_bind_device(VkDevice device, struct vulkan_functions *out)
{
    const char *missing = NULL;

    *out = loaded;
#define GLOBAL(name)
#define INSTANCE(name)
#define DEVICE(name)                                                                                                                       \
    if (!(out->name = (PFN_##name)loaded.vkGetDeviceProcAddr(device, #name)) && !missing)                                                  \
        missing = #name;
#include "device/vulkan/functions.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
    return missing;
}

const char *vulkan_result_name(VkResult r)
{
    static const struct {
        VkResult    result;
        const char *name;
    } names[] = {
#define RESULT(name) {VK_##name, "VK_" #name}
        RESULT(NOT_READY),
        RESULT(TIMEOUT),
        RESULT(ERROR_OUT_OF_HOST_MEMORY),
        RESULT(ERROR_OUT_OF_DEVICE_MEMORY),
        RESULT(ERROR_INITIALIZATION_FAILED),
        RESULT(ERROR_DEVICE_LOST),
        RESULT(ERROR_MEMORY_MAP_FAILED),
        RESULT(ERROR_EXTENSION_NOT_PRESENT),
        RESULT(ERROR_FEATURE_NOT_PRESENT),
        RESULT(ERROR_INCOMPATIBLE_DRIVER),
        RESULT(ERROR_TOO_MANY_OBJECTS),
        RESULT(ERROR_UNKNOWN),
#undef RESULT
    };

    for (size_t i = 0; i < COUNT(names); i++)
        if (names[i].result == r)
            return names[i].name;
    return "an unknown result";
}

/* ---- which devices can be used ---- */

struct extensions {
    VkExtensionProperties list[VULKAN_EXTENSIONS_MAX];
    uint32_t              count;
};

static bool has_extension(const struct extensions *e, const char *name)
{
    for (uint32_t i = 0; i < e->count; i++)
        if (strcmp(e->list[i].extensionName, name) == 0)
            return true;
    return false;
}

/* One that computes, and tells time; of those the one with most queues. */
static bool choose_family(struct vulkan_offer *o)
{
    VkQueueFamilyProperties families[VULKAN_FAMILIES_MAX];
    uint32_t                count = VULKAN_FAMILIES_MAX;

    o->queues = 0;
    loaded.vkGetPhysicalDeviceQueueFamilyProperties(o->device, &count, families);
    for (uint32_t i = 0; i < count; i++)
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT && families[i].timestampValidBits && families[i].queueCount > o->queues) {
            o->family = i;
            o->queues = families[i].queueCount < VULKAN_QUEUES_MAX ? families[i].queueCount : VULKAN_QUEUES_MAX;
        }
    return o->queues > 0;
}

/* NULL: it can be used. */
static const char *lacks(struct vulkan_offer *o)
{
    static struct extensions         extensions; /* large: static, as there is one thread */
    VkPhysicalDeviceVulkan12Features f12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceFeatures2        f = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &f12};
    VkPhysicalDeviceProperties2      p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};

    loaded.vkGetPhysicalDeviceProperties2(o->device, &p);
    if (p.properties.apiVersion < VK_API_VERSION_1_2)
        return "Vulkan 1.2";
    o->software = p.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    extensions.count = VULKAN_EXTENSIONS_MAX;
    if (loaded.vkEnumerateDeviceExtensionProperties(o->device, NULL, &extensions.count, extensions.list) < 0)
        return "a list of its extensions";
    loaded.vkGetPhysicalDeviceFeatures2(o->device, &f);
    o->memory_budget = has_extension(&extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    o->robustness2 = has_extension(&extensions, VK_EXT_ROBUSTNESS_2_EXTENSION_NAME);
    if (!has_extension(&extensions, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME))
        return VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME;
    if (!f.features.robustBufferAccess)
        return "robustBufferAccess";
    if (!f12.timelineSemaphore)
        return "timelineSemaphore";
    return choose_family(o) ? NULL : "a queue for compute that tells time";
}

static void look_at_devices(void)
{
    VkPhysicalDevice found[DEVICES_MAX];
    uint32_t         count = DEVICES_MAX;

    if (loaded.vkEnumeratePhysicalDevices(instance, &count, found) < 0)
        count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vulkan_offer o = {.device = found[i]};
        const char         *missing = lacks(&o);

        if (!missing)
            offers[offers_count++] = o;
        else
            problem_set(&refusal, STATUS_DEVICE_NOT_FOUND, "a Vulkan device cannot be used: it lacks %s", missing);
    }
    if (!offers_count && refusal.status == STATUS_OK)
        problem_set(&refusal, STATUS_DEVICE_NOT_FOUND, "the Vulkan loader found no device");
}

static enum status load(struct problem *why)
{
    const VkApplicationInfo    app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo create = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
    PFN_vkGetInstanceProcAddr  get;
    const char                *missing;
    VkResult                   r;

    set_environment();
    get = open_library();
    if (!get)
        return problem_set(why, STATUS_DEVICE_NOT_FOUND, "the Vulkan loader, libvulkan.so.1, is not here");
    missing = bind_global(get);
    if (missing)
        return problem_set(why, STATUS_DEVICE_NOT_FOUND, "the Vulkan loader has no %s", missing);
    r = loaded.vkCreateInstance(&create, NULL, &instance);
    if (r)
        return problem_set(why, STATUS_DEVICE_NOT_FOUND, "no Vulkan driver works here: vkCreateInstance returned %s",
                           vulkan_result_name(r));
    missing = bind_instance(get);
    if (missing)
        return problem_set(why, STATUS_DEVICE_NOT_FOUND, "the Vulkan loader has no %s", missing);
    look_at_devices();
    return STATUS_OK;
}

const struct vulkan_functions *vulkan_load(struct problem *why)
{
    if (!tried) {
        tried = true;
        load(&failure);
    }
    if (failure.status == STATUS_OK)
        return &loaded;
    problem_set(why, failure.status, "%s", failure.detail);
    return NULL;
}

unsigned vulkan_offers(struct problem *why)
{
    if (!vulkan_load(why))
        return 0;
    if (!offers_count)
        problem_set(why, refusal.status, "%s", refusal.detail);
    return offers_count;
}

const struct vulkan_offer *vulkan_offer_at(unsigned index)
{
    return index < offers_count ? &offers[index] : NULL;
}
