/* Opens the Vulkan loader at run time, and finds the devices that can be used; the only user of the dynamic loader in this room. */
#pragma once

#include "base/problem.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

struct vulkan_functions {
#define GLOBAL(name)   PFN_##name name;
#define INSTANCE(name) PFN_##name name;
#define DEVICE(name)   PFN_##name name;
#include "device/vulkan/functions.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
};

/* One of the driver's devices, with what it offers. */
struct vulkan_offer {
    VkPhysicalDevice device;
    uint32_t         family; /* of the queues for compute */
    uint32_t         queues;
    bool             memory_budget;
    bool             robustness2;
    bool             software; /* the host's processors run the kernels */
};

/* Once per process; further calls answer the same. NULL with the reason: DEVICE_NOT_FOUND when there is no loader or no driver. */
const struct vulkan_functions *vulkan_load(struct problem *why);
/* How many devices can be used. 0 with the reason. */
unsigned vulkan_offers(struct problem *why);
/* index < vulkan_offers(). */
const struct vulkan_offer *vulkan_offer_at(unsigned index);
/* Fetches the functions of an open device into *out, a copy of the others. The name of a missing one, or NULL. */
const char *vulkan_bind_device(VkDevice device, struct vulkan_functions *out);
/* "VK_ERROR_DEVICE_LOST"; static. */
const char *vulkan_result_name(VkResult r);
