/* READs of so many bytes that they are not held in host memory: they stay on the device until they are sent. */
#include "session/batch/batch_internal.h"

static bool writes(const struct batch_op *op, struct span name)
{
    switch (op->kind) {
    case BATCH_LAUNCH: /* a kernel may write through any pointer that it can reach */
        return true;
    case BATCH_WRITE:
    case BATCH_COPY:
    case BATCH_FILL:
    case BATCH_FREE:
        return span_equal(op->to, name);
    case BATCH_ALLOC:
    case BATCH_READ:
    case BATCH_RECORD:
    case BATCH_WAIT:
    case BATCH_ELAPSED:
    case BATCH_SYNC:
        break;
    }
    return false;
}

/* The batch's own buffer, which nobody else can name before the answer is sent, and which nothing behind the READ changes. */
static bool stays_as_it_is(const struct batch *b, unsigned i)
{
    const struct batch_spec *spec = b->spec;
    struct span              name = spec->ops[i].from;

    if (!span_starts(name, "$") || spec->program) /* the next run of a program changes it */
        return false;
    for (unsigned k = 0; k < spec->keep_count; k++)
        if (span_equal(spec->keep[k], name))
            return false;
    for (unsigned k = i + 1; k < spec->ops_count; k++)
        if (writes(&spec->ops[k], name))
            return false;
    return true;
}

static enum status address_copy_of(struct batch *b, struct batch_order *o, struct problem *why)
{
    const struct batch_op *op = &b->spec->ops[o->op];
    const struct buffer   *from = batch_buffer(b, op->from);
    uint64_t               bytes = b->results[o->op].data_bytes;

    if (!from)
        return problem_field(why, STATUS_BUFFER_NOT_FOUND, "/from", "not_found", "the buffer was deleted during the request");
    o->body.mem_copy = (struct msg_mem_copy){0, b->later[o->op].temp->buffer.address, from->address + op->offset, bytes};
    return range_check(from, op->offset, bytes, why);
}

static enum status copy_aside(struct batch *b, unsigned i, uint64_t bytes, struct problem *why)
{
    struct batch_order o;
    enum status        st;

    batch_order_init(&o, i, MESSAGE_MEM_COPY);
    /* What was freed before is to be there for it. */
    for (struct temp_buffer *l = b->temp_buffers; l; l = l->of_batch)
        temp_buffer_await(b->worker_session, l);
    st = batch_temp_buffer(b, bytes, &b->later[i].temp, why);
    return st ? st : batch_submit(b, &o, address_copy_of, why);
}

enum status batch_read_later(struct batch *b, unsigned i, uint64_t bytes, struct problem *why)
{
    struct batch_later *at = &b->later[i];
    enum status         st = STATUS_OK;

    b->results[i].data_bytes = (size_t)bytes;
    if (stays_as_it_is(b, i))
        *at = (struct batch_later){batch_name_of(b, b->spec->ops[i].from)->temp, b->spec->ops[i].offset};
    else
        st = copy_aside(b, i, bytes, why);
    if (!st)
        at->temp->wanted = true;
    return st;
}

enum status batch_read_begin(struct batch *b, unsigned op, struct transfer **out, struct problem *why)
{
    const struct batch_later *at = &b->later[op];

    return transfer_read_begin(b->session, span_of(at->temp->buffer.entry.id), at->offset, b->results[op].data_bytes, out, why);
}
