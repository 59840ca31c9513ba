/* One entry of the code cache as a file. Thread-safe: no shared state. */
#pragma once

#include "ipc/compile_job.h"

/* Begins the names of files that are being written. */
#define CODE_ENTRY_TEMPORARY "tmp-"

enum { CODE_ENTRY_HEAD_BYTES = 48 };

/* OK and the file marked as used now; NOT_FOUND without such a file; INTERNAL when it is damaged, and *out untouched. */
enum status code_entry_read(int folder, const char *key, struct compile_output *out);
/* Written aside, synced and renamed: a reader sees all of it or nothing. False, errno set and nothing left, on failure. */
bool code_entry_write(int folder, const char *key, struct span payload);
