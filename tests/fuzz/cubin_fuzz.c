/* Any bytes as the image of a GPU compiler: opened and walked to the end; all results are inside it. */
#include <stdlib.h>

#include "base/files/elf.h"
#include "device/cuda/cubin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_inside(struct span image, struct span name)
{
    if (name.bytes && (name.data < image.data || name.data + name.bytes >= image.data + image.bytes || name.data[name.bytes] != '\0'))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct cubin_param params[KERNEL_PARAMS_MAX];
    struct span               image = {(const char *)data, bytes}, kernel;
    struct cubin_global       global;
    struct cubin              c;
    unsigned                  count = 0;
    size_t                    cursor = 0;

    elf_is(image);
    if (cubin_open(image, &c) != STATUS_OK)
        return 0;
    while (cubin_next_kernel(&c, &cursor, &kernel)) {
        check_inside(image, kernel);
        if (cubin_params(&c, kernel, params, &count) == STATUS_OK && count > KERNEL_PARAMS_MAX)
            abort();
    }
    for (cursor = 0; cubin_next_global(&c, &cursor, &global);)
        check_inside(image, global.name);
    return 0;
}
