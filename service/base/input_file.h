/* Small files that the operator names: settings, tokens, certificates. */
#ifndef GPUREST_BASE_INPUT_FILE_H
#define GPUREST_BASE_INPUT_FILE_H

#include "base/bounds.h"
#include "base/buf.h"
#include "base/problem.h"

/* Opens a file, a pipe such as <(...) of a shell, or /dev/null, without waiting for anybody. Both functions put what goes on behind the file's name
 * into why->detail: "cannot be opened: Permission denied". */
enum status input_file_open(const char *path, int *fd, struct problem *why);

/* Appends all of it, at most out->max bytes. A pipe must have come to its end within INPUT_PIPE_S. */
enum status input_file_read(int fd, struct buf *out, struct problem *why);

/* Both, and closes. */
enum status input_file_take(const char *path, struct buf *out, struct problem *why);

#endif
