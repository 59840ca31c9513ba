/* printf for kernels: formats by the kernel's own, untrusted format, without the host's printf seeing it. Thread-safe. */
#ifndef GPUREST_DEVICE_CPU_PRINTF_FORMAT_H
#define GPUREST_DEVICE_CPU_PRINTF_FORMAT_H

#include "device/cpu/bounds.h"
#include "device/cpu/runtime/output.h"
#include "limits.h"

/* As output_format_fn says. -1 when the arguments end before the format does; what came before is kept. A conversion that is not known is
 * written as it stands. %s is cut at PRINTF_ITEM_BYTES_MAX bytes, as are width and precision. */
int printf_format(struct buf *out, const char *format, const uint8_t *args, size_t args_bytes, output_string_fn string, void *context);

#endif
