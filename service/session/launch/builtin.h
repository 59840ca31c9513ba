/* Launches of built-in kernels: what the client said becomes a launch of a module that the service makes itself, with a grid, a block and
 * scratch memory that follow from the arguments. */
#pragma once

#include "kernels/kernels.h"
#include "session/bounds.h"
#include "session/launch/params.h"

struct worker_session;

struct builtin_call {
    const struct builtin *kernel;
    enum builtin_dtype    dtype;
    struct builtin_plan   plan;
    uint32_t              slot;   /* of its stream: launches of one stream follow each other and share scratch memory */
    bool                  vendor; /* a library does it: module is of its plan */
    bool                  shader; /* the device is one of vulkan */
    struct module        *module; /* a reference, until somebody takes it over */
    uint64_t              values[BUILTIN_ARGS_MAX];
    struct launch_arg     args[BUILTIN_ARGS_MAX + 2]; /* the client's, the slot, the scratch memory */
    unsigned              args_count;
    struct launch_arg     vendor_args[BUILTIN_ARGS_MAX]; /* of the plan's kernel, or of the shader */
    char                  expression[BUILTIN_EXPRESSION_BYTES];
    struct launch_spec    spec; /* what is launched; complete after builtin_seal() */
};

/* By spec->engine a library of the GPU's maker does it, if it can, or ours does.
 * Finds the kernel, checks the arguments as far as they can be without the buffers, makes the module. spec->dtype is not empty; *spec is
 * borrowed. Needs a use of c; may block as module_builtin() does, or with spec->at_once is PENDING. *out is to be given to builtin_close(), NULL on failure. Errors name the
 * parameter: KERNEL_NOT_FOUND, INVALID_FIELD (/dtype), ARGUMENT_MISMATCH (/args/N), LAUNCH_CONFIG_INVALID (/engine: no library does it). */
enum status builtin_open(struct worker_session *c, const struct launch_spec *spec, struct builtin_call **out, struct problem *why);
/* Scratch memory lies there; 0 if it takes none. */
void builtin_seal(struct builtin_call *call, uint64_t scratch_address);
/* Whether every buffer is there and large enough. With session.lock held. */
enum status builtin_check(const struct builtin_call *call, buffer_lookup *lookup, void *context, struct problem *why);
/* Scratch memory could not be had, as `st` says: true when *again, the same without a library, is to be tried. */
bool builtin_falls_back(const struct builtin_call *call, const struct launch_spec *spec, enum status st, struct launch_spec *again);
/* NULL is a no-op. */
void builtin_close(struct worker_session *c, struct builtin_call *call);
