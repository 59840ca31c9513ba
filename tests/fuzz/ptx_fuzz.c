/* Any bytes as PTX: parsed, and decoded if valid. The character 1e parts texts that are linked. Nothing runs. */
#include <stdlib.h>

#include "device/cpu/interp/variants.h"
#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/launch.h"

enum { TEXTS_MAX = 4, SEPARATOR = 0x1e };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static unsigned split(char *text, size_t bytes, struct span texts[TEXTS_MAX])
{
    unsigned count = 0;

    while (count < TEXTS_MAX) {
        char  *end = count + 1 < TEXTS_MAX && bytes ? memchr(text, SEPARATOR, bytes) : NULL;
        size_t own = end ? (size_t)(end - text) : bytes;

        texts[count++] = (struct span){text, own};
        if (!end)
            break;
        text += own + 1;
        bytes -= own + 1;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct ptx_module *m = NULL;
    struct span        texts[TEXTS_MAX];
    struct problem     why;
    char              *text = malloc(bytes + 1);

    if (!text)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (ptx_link(texts, split(text, bytes, texts), &m, &why) == STATUS_OK) {
        cpu_code_load_as(m, NULL, 0, &why);
        cpu_code_unload(m);
        ptx_module_destroy(m);
    }
    free(text);
    return 0;
}
