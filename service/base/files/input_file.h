/* Small files of the operator: settings, tokens, certificates. */
#pragma once

#include "base/bounds.h"
#include "base/buf.h"
#include "base/problem.h"

/* Opens a file, a pipe such as <(...) of a shell, or /dev/null, without blocking. In both functions why->detail continues a sentence that starts with
 * the file's name: "cannot be opened: Permission denied". */
enum status input_file_open(const char *path, int *fd, struct problem *why);

/* Appends the whole file, at most out->max bytes. A pipe must end within INPUT_PIPE_S. */
enum status input_file_read(int fd, struct buf *out, struct problem *why);

/* Opens, reads and closes. */
enum status input_file_take(const char *path, struct buf *out, struct problem *why);
