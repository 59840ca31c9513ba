/* Reads SPIR-V: which kernels a module has, what they take and what they need of the device. It stands alone: no header of Vulkan. Any bytes
 * are safe to read; that a module obeys all rules of SPIR-V, the compile worker's validator says.
 *
 * A reader of our own, not a library's: the worker would open one more foreign library to parse what callers sent, which reports by
 * exceptions, and the errors here name bindings and limits in our words. */
#pragma once

#include "base/problem.h"
#include "base/span.h"
#include "device/vulkan/bounds.h"
#include "ipc/kernel_table.h"

/* What a device offers to code. */
struct spirv_features {
    bool always; /* true */
#define FEATURE(member, group, field, name) bool member;
#include "device/vulkan/features.def"
#undef FEATURE
#define SUBGROUP(member, bit, name) bool member;
#include "device/vulkan/subgroups.def"
#undef SUBGROUP
};

static_assert(SPIRV_BINDINGS_MAX + SPIRV_PUSH_MAX <= KERNEL_PARAMS_MAX, "each is a parameter");

struct spirv_kernel {
    const char         *name;                         /* borrowed from the module */
    uint32_t            block[3];                     /* of the workgroup, where the code fixes it; else its default */
    bool                free[3];                      /* a specialisation constant decides: a launch may */
    uint32_t            spec_id[3];                   /* ... and this is its number */
    uint32_t            bindings[SPIRV_BINDINGS_MAX]; /* storage buffers of set 0, ascending */
    uint32_t            bindings_count;
    struct kernel_param push[SPIRV_PUSH_MAX]; /* push constants; offsets within their block */
    uint32_t            push_count;
    uint32_t            push_bytes; /* up to the end of the last */
};

struct spirv_module;

/* Modes of floats, a bit each in the order of float_modes.def. */
enum {
#define FLOAT_MODE(member, mode, capability, width, field) SPIRV_FLOAT_##member,
#include "device/vulkan/float_modes.def"
#undef FLOAT_MODE
    SPIRV_FLOAT_MODES
};

/* The image is copied. MODULE_INVALID says what is wrong; *out is untouched. */
enum status spirv_read(struct span image, const struct spirv_features *features, struct spirv_module **out, struct problem *why);
/* NULL is a no-op. */
void                       spirv_free(struct spirv_module *m);
unsigned                   spirv_kernels(const struct spirv_module *m);
const struct spirv_kernel *spirv_kernel_at(const struct spirv_module *m, unsigned i);
/* Shared memory of a workgroup of that size. MODULE_INVALID: it cannot be told. */
enum status spirv_shared_bytes(const struct spirv_module *m, unsigned kernel, const uint32_t block[3], uint64_t *out, struct problem *why);
/* The words for the driver, with the modes whose bits are set. The caller frees *out. */
enum status spirv_with_floats(const struct spirv_module *m, unsigned modes, uint32_t **out, size_t *bytes, struct problem *why);
