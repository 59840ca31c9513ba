/* Keeps kernels' output until the front-end asks for it. */
#include "worker/commands/internal.h"

uint32_t output_keep(struct device_worker *w, struct device_stream *s, uint64_t tag)
{
    struct output *o = &w->outputs[w->outputs_next];
    struct buf     text;

    buf_init(&text, KERNEL_OUTPUT_BYTES_MAX);
    if (w->ops->take_output(w->device, s, &text) || text.bytes == 0) {
        buf_finish(&text);
        return 0;
    }
    buf_finish(&o->text);
    *o = (struct output){tag, text};
    w->outputs_next = (w->outputs_next + 1) % OUTPUTS_KEPT_MAX;
    return (uint32_t)text.bytes;
}

enum status output_take(struct device_worker *w, uint64_t tag, unsigned char *to, size_t room, uint64_t *bytes)
{
    for (unsigned i = 0; i < OUTPUTS_KEPT_MAX; i++) {
        struct output *o = &w->outputs[i];

        if (o->tag != tag || o->text.bytes == 0)
            continue;
        *bytes = o->text.bytes < room ? o->text.bytes : room;
        memcpy(to, o->text.data, *bytes);
        buf_finish(&o->text);
        return STATUS_OK;
    }
    return STATUS_INVALID_REQUEST;
}
