/* printf for kernels: the kernel's untrusted format never reaches the host's printf. Thread-safe. */
#pragma once

#include "device/cpu/bounds.h"
#include "device/cpu/runtime/output.h"
#include "limits.h"

/* Appends the formatted text; args are packed as vprintf packs them, each aligned to its size. Returns the number of conversions; -1: the
 * arguments end before the format does; the text before is kept. An unknown conversion is written as it
 * stands. %s is cut at PRINTF_ITEM_BYTES_MAX bytes, as are width and precision. */
int printf_format(struct buf *out, const char *format, const uint8_t *args, size_t args_bytes, output_string_fn string, void *context);
