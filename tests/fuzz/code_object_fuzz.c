/* Any bytes as a code object for AMD GPUs: opened and walked to the end; all results are inside it. */
#include <stdlib.h>

#include "base/files/elf.h"
#include "device/hip/code_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_inside(struct span image, struct span part)
{
    if (part.bytes && (part.data < image.data || part.data + part.bytes > image.data + image.bytes))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct code_kernel kernel;
    struct span               image = {(const char *)data, bytes};
    struct code_object        c;
    struct code_global        global;
    bool                      damaged = false;

    elf_is(image);
    if (code_object_open(image, &c) != STATUS_OK)
        return 0;
    check_inside(image, c.target);
    while (code_object_next(&c, &kernel, &damaged)) {
        check_inside(image, kernel.name);
        if (kernel.params_count > KERNEL_PARAMS_MAX || !kernel.name.bytes)
            abort();
    }
    while (code_object_next_global(&c, &global)) {
        check_inside(image, global.name);
        if (global.name.data[global.name.bytes] != '\0')
            abort();
    }
    return 0;
}
