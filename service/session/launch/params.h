/* Kernel parameters made of arguments. Pure functions: no locks, no worker. */
#pragma once

#include "session/session.h"

/* Where a buffer lies and how large it is; false: there is none of that id. */
typedef bool buffer_lookup(void *context, struct span id, uint64_t *address, uint64_t *bytes);

struct packed {
    uint32_t      bytes;
    unsigned char data[KERNEL_PARAM_BYTES_MAX];
};

/* Whether that scalar is a number of the kind that `wanted` names ("f32", "u64"): an integer, whatever its sign, or this very float.
 * Sizes are looked at elsewhere. */
bool param_kind_fits(const struct launch_arg *scalar, const char *wanted);
/* Lays the arguments out as the kernel wants them, or takes its parameters as they are. ARGUMENT_MISMATCH names /args/N or /args,
 * BUFFER_NOT_FOUND too. *out is whole only on OK. */
enum status params_pack(const struct kernel_desc *kernel, const struct launch_spec *spec, buffer_lookup *lookup, void *context,
                        struct packed *out, struct problem *why);
