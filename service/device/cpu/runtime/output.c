/* A lane's printf: reads its format and arguments, formats them, and keeps the text until it is requested. */
#include "device/cpu/runtime/output.h"

#include <stdio.h>

#include "device/cpu/interp/ops/ops.h"
#include "device/cpu/runtime/printf_format.h"

enum { FORMAT_BYTES_MAX = 1024, ARGS_BYTES_MAX = 512 };

struct string_source {
    struct lanes *lanes;
    uint32_t      lane;
};

static bool read_string(void *context, uint64_t address, char *out, size_t room)
{
    struct string_source *s = context;
    size_t                n = 0;

    out[0] = 0;
    while (n + 1 < room) {
        const uint8_t *p = lane_peek(s->lanes, address + n, 1, s->lane);
        if (!p)
            return false;
        out[n] = (char)*p;
        if (!*p)
            return true;
        n++;
    }
    out[n] = 0;
    return true;
}

void output_string(struct lanes *l, uint32_t lane, uint64_t address, char *out, size_t room)
{
    struct string_source s = {l, lane};

    if (!read_string(&s, address, out, room))
        snprintf(out, room, "?");
}

/* Only the format determines how many argument bytes there are: passes all that can be read, up to the bound. */
static size_t read_args(struct lanes *l, uint32_t lane, uint64_t address, uint8_t *out)
{
    size_t n = 0;

    while (address && n < ARGS_BYTES_MAX) {
        const uint8_t *p = lane_peek(l, address + n, 1, lane);
        if (!p)
            break;
        out[n++] = *p;
    }
    return n;
}

/* A text that did not fit, of which `done` bytes are there: as much of it as does, so that what is full has been cut. */
static void fill_up(struct buf *out, size_t done, struct buf *whole)
{
    struct span rest = span_from(buf_span(whole), done);

    out->failed = false;
    buf_add_span(out, span_first(rest, out->max - out->bytes));
    out->failed = true;
}

int output_printf(struct lanes *l, uint32_t lane, uint64_t format, uint64_t args)
{
    struct cpu_output   *out = l->run->grid->output;
    struct string_source s = {l, lane};
    char                 text[FORMAT_BYTES_MAX];
    uint8_t              packed[ARGS_BYTES_MAX];
    size_t               n = read_args(l, lane, args, packed), before;
    int                  used = -1;
    struct buf           whole;

    if (!read_string(&s, format, text, sizeof text))
        block_fault(l, FAULT_ILLEGAL_ADDRESS, lane, "illegal address 0x%llx of a printf format", (unsigned long long)format);
    if (!out)
        return -1;
    pthread_mutex_lock(&out->lock);
    before = out->text.bytes;
    if (!out->text.failed) {
        used = printf_format(&out->text, text, packed, n, read_string, &s);
        if (out->text.failed) {
            buf_init(&whole, KERNEL_OUTPUT_BYTES_MAX);
            printf_format(&whole, text, packed, n, read_string, &s);
            fill_up(&out->text, out->text.bytes - before, &whole);
            buf_finish(&whole);
        }
    }
    pthread_mutex_unlock(&out->lock);
    return used;
}
