/* Kernel arguments: checked against a table, written as JSON. */
#ifndef GPUREST_SDK_ARGS_H
#define GPUREST_SDK_ARGS_H

#include "code/module.h"

/* Number, sizes, and integers apart from floats. */
gpurest_status args_check(const gpurest_kernel *k, const gpurest_arg *args, size_t count);
/* "args":[…] with buffers by their names. Those of batch may be used; NULL: none. */
gpurest_status args_write(struct buf *b, gpurest_session *s, const gpurest_batch *batch, const gpurest_arg *args, size_t count);
/* A scalar or GPUREST_ARG_BYTES; false: another kind. */
bool arg_write_value(struct buf *b, const gpurest_arg *a);
/* "grid" and "block", or an automatic block. */
void shape_write(struct buf *b, const gpurest_launch_config *c);
/* A parameter block as arguments, in out[PARAMS_MAX]. They borrow from it. */
gpurest_status args_of_block(const gpurest_kernel *k, const void *params, size_t bytes, gpurest_arg *out);

#endif
