/* Any bytes as PTX: parsed, and decoded if valid. Nothing runs. */
#include <stdlib.h>

#include "device/cpu/interp/variants.h"
#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/launch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct ptx_module *m = NULL;
    struct problem     why;
    char              *text = malloc(bytes + 1);

    if (!text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (ptx_parse((struct span){text, bytes}, &m, &why) == STATUS_OK) {
        cpu_code_load_as(m, NULL, 0, &why);
        cpu_code_unload(m);
        ptx_module_destroy(m);
    }
    free(text);
    return 0;
}
