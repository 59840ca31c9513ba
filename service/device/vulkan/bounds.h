/* Bounds of device/vulkan/ alone, each with its unit in its name. What a user meets, or several folders share, is in limits.h. */
#pragma once

#include "limits.h"

enum {
    VULKAN_ALLOCATIONS_MAX = 4 * BUFFERS_PER_SESSION_MAX,
    VULKAN_QUEUES_MAX = 8,                     /* streams beyond share them */
    VULKAN_FAMILIES_MAX = 32,                  /* of queues, that are looked at */
    VULKAN_EXTENSIONS_MAX = 1024,              /* of a device, that are looked at */
    VULKAN_ALIGNMENT_BYTES = 256,              /* of addresses; device.h promises it */
    STAGING_PIECE_BYTES = 1024 * 1024,         /* smallest host-visible buffer for transfers; larger ones are for one transfer each */
    STAGING_KEPT_MAX = 32,                     /* idle pieces that are kept */
    STAGING_KEPT_BYTES_MAX = 16 * 1024 * 1024, /* a larger piece is not kept */
    FILL_SEED_BYTES = 64 * 1024,               /* what the host writes of a fill; the device copies the rest */
    PIPELINES_PER_KERNEL_MAX = 16,             /* of different workgroup sizes; the oldest goes */
    LOSS_LOOK_MS = 100,                        /* while work is under way, how often the driver is asked whether the device is lost */
    SPIRV_IDS_MAX = 1024 * 1024,
    SPIRV_DEPTH_MAX = 16, /* of types within types, and of constants made of constants */
    SPIRV_BINDINGS_MAX = 64,
    SPIRV_PUSH_MAX = 128, /* push constants of a kernel */
};
