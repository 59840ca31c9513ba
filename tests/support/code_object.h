/* Makes code objects for AMD GPUs that hold no code: the ELF file and the metadata of a compiler, as the backend reads them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { CODE_OBJECT_BYTES_MAX = 16 * 1024, CODE_OBJECT_ARGS_MAX = 8 };

struct code_object_kernel {
    const char *name;
    uint32_t    args[CODE_OBJECT_ARGS_MAX]; /* sizes of parameters, each aligned to its size, but at most to 8; 0 ends them */
    const char *hidden;                     /* what the driver gives it besides, as "hidden_hostcall_buffer"; NULL: nothing of interest */
};

/* target: "gfx90a". The bytes made, at most `room`. */
size_t code_object_make(const char *target, const struct code_object_kernel *kernels, size_t count, char *to, size_t room);
