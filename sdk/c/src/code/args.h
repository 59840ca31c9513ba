/* Kernel arguments: checked against a table, written as JSON. */
#ifndef GPUREST_SDK_ARGS_H
#define GPUREST_SDK_ARGS_H

#include "code/module.h"

/* Checks number, sizes, and integer against float. */
gpurest_status args_check(const gpurest_kernel *k, const gpurest_arg *args, size_t count);
/* Writes "args", which args_check() took. Buffers made in `batch` (may be NULL) are allowed. */
gpurest_status args_write(struct buf *b, gpurest_session *s, const gpurest_batch *batch, const gpurest_kernel *k, const gpurest_arg *args);
/* Writes a scalar or GPUREST_ARG_BYTES; false: another kind. */
bool arg_write_value(struct buf *b, const gpurest_arg *a);
/* "t" of a texture's handle "t.texels"; false: it is another buffer's. */
bool args_texture(const struct buffer_entry *e, char name[NAME_BYTES]);
/* "grid" and "block", or an automatic block. */
void shape_write(struct buf *b, const gpurest_launch_config *c);
/* Splits a parameter block into out[PARAMS_MAX], which borrow from it. */
gpurest_status args_of_block(const gpurest_kernel *k, const void *params, size_t bytes, gpurest_arg *out);

#endif
