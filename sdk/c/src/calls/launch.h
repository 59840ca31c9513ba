/* A checked launch, as calls and batches share it. */
#ifndef GPUREST_SDK_LAUNCH_H
#define GPUREST_SDK_LAUNCH_H

#include "code/args.h"

struct launch {
    const gpurest_kernel  *kernel;
    gpurest_launch_config  config;
    char                   stream[NAME_BYTES];
    const gpurest_arg     *args;
    size_t                 args_count;
    gpurest_launch_result *result; /* NULL: not wanted */
};

/* "module", "kernel", shape, "shared_bytes", "args", "stream": members of an object that is open. */
gpurest_status launch_write(struct buf *b, gpurest_session *s, const gpurest_batch *batch, const struct launch *l);

/* Asks to be answered after so many seconds at the latest, in a line of `header`; the line is quiet meanwhile. */
void follow_wait_set(struct exchange *x, const gpurest_client *c, int seconds, char *header, size_t room);

#endif
