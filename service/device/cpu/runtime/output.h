/* What kernels print. Records are formatted as they arrive; the text is bounded. */
#pragma once

#include <pthread.h>

#include "base/buf.h"

struct lanes;

/* Reads the string at a kernel's address for %s: at most room - 1 characters and a NUL. False when the address is illegal. */
typedef bool (*output_string_fn)(void *context, uint64_t address, char *out, size_t room);

struct cpu_output {
    pthread_mutex_t lock;
    struct buf      text; /* at most KERNEL_OUTPUT_BYTES_MAX; what does not fit is dropped */
};

/* What vprintf returns for that lane. Faults on a bad format address. */
int output_printf(struct lanes *l, uint32_t lane, uint64_t format, uint64_t args);
/* A kernel's string; "?" when the address is illegal. */
void output_string(struct lanes *l, uint32_t lane, uint64_t address, char *out, size_t room);
