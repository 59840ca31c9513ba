/* A launch with its arguments checked, as JSON; and its result. Launches of their own and those of batches share it. */
#ifndef GPUREST_SDK_LAUNCH_BODY_H
#define GPUREST_SDK_LAUNCH_BODY_H

#include "base/json.h"
#include "code/args.h"

struct launch {
    const gpurest_kernel  *kernel;
    gpurest_launch_config  config;
    char                   stream[NAME_BYTES];
    const gpurest_arg     *args;
    size_t                 args_count;
    const char            *default_module; /* that need not be named; NULL: none */
    gpurest_launch_result *result;         /* NULL: not wanted */
};

/* "module", "kernel", shape, "shared_bytes", "args", "stream": members of an object that is open. */
gpurest_status launch_write(struct buf *b, gpurest_session *s, const gpurest_batch *batch, const struct launch *l);
/* From the description of a launch that succeeded. out NULL: not wanted. */
gpurest_status launch_take_result(const struct json *d, gpurest_launch_result *out);

#endif
