/* Measures in which of their shapes built-in kernels are fastest on a device, and has the answer kept (tuning.h). */
#ifndef GPUREST_SESSION_TUNE_H
#define GPUREST_SESSION_TUNE_H

#include "session/launch/tuning.h"
#include "session/session.h"

struct tune_spec {
    const struct builtin *kernel;
    enum builtin_dtype    dtype;
    struct span           device; /* a wish, as a session's */
    const struct launch_arg
            *values;    /* [kernel->params_count]: a scalar for each VALUE; nothing for buffers, which are made for the purpose */
    bool     requested; /* take this shape, whatever the times; no further one is measured than this and the kernel's own: */
    unsigned shape;
};

enum tune_outcome {
    TUNE_MEASURED,
    TUNE_SKIPPED, /* another shape was requested */
    TUNE_UNFIT,   /* cannot be taken for these arguments, or on this device */
    TUNE_DIFFERS, /* its results were not those of the kernel's own shape: it is never taken */
};

struct tune_result {
    char              device[DEVICE_ID_BYTES];
    uint64_t          bytes; /* of all buffers */
    struct tuning     tuning;
    enum tune_outcome outcome[BUILTIN_CANDIDATES_MAX];
};

/* Blocks: compiles every shape, compares its results with those of the kernel's own one, and measures them in turn by the device's events,
 * on a worker of its own, which a fault or an overrun ends alone; both count as the tenant's. The fastest is taken when it is
 * TUNE_GAIN_PERCENT faster than the kernel's own. TOO_MANY_IN_FLIGHT while the device is measured for somebody else; DEVICE_NOT_FOUND;
 * LAUNCH_CONFIG_INVALID (/candidate) for a requested shape that cannot be taken; EXECUTION_TIMEOUT after TUNE_DEADLINE_MS; else as
 * session_create(), buffer_create() and launch_submit(). */
enum status builtin_tune(struct registry *r, const struct tenant *t, const struct tune_spec *spec, struct tune_result *out,
                         struct problem *why);

/* What is known of a kernel on the device of that place: its id, and the list. False past the last device. May read a file. */
bool builtin_tunings(struct registry *r, unsigned device, const struct builtin *k, char id[DEVICE_ID_BYTES], struct tuning_list *out);

#endif
