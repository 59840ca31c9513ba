/* Launches of built-in kernels among a batch's operations: whose code does them, and with which scratch memory. */
#include "session/batch/program_internal.h"
#include "session/launch/builtin.h"

/* A program's is its own: the same at every run, so that its graphs stay as they are. */
static enum status new_scratch(struct batch *b, unsigned i, uint64_t bytes, struct problem *why)
{
    if (b->spec->program)
        return program_scratch(b->spec->program, i, bytes, &b->scratch, why);
    return batch_temp_buffer(b, bytes, &b->scratch, why);
}

/* Launches of one stream follow each other, so one piece of scratch memory does for all of them. */
static enum status get_scratch(struct batch *b, unsigned i, uint64_t *address, struct problem *why)
{
    const struct builtin_call *call = b->calls[i];
    bool                       enough = b->scratch && b->scratch_slot == call->slot && b->scratch->buffer.bytes >= call->plan.scratch_bytes;
    enum status                st = STATUS_OK;

    if (!call->plan.takes_scratch)
        return STATUS_OK;
    if (!enough)
        st = new_scratch(b, i, call->plan.scratch_bytes, why);
    if (st)
        return st;
    b->scratch_slot = call->slot;
    *address = b->scratch->buffer.address;
    return STATUS_OK;
}

static enum status open_as(struct batch *b, unsigned i, const struct launch_spec *spec, struct problem *why)
{
    struct launch_spec again;
    uint64_t           scratch = 0;
    enum status        st = builtin_open(b->worker_session, spec, &b->calls[i], why);

    if (!st)
        st = get_scratch(b, i, &scratch, why);
    if (st && builtin_falls_back(b->calls[i], spec, st, &again)) {
        builtin_close(b->worker_session, b->calls[i]);
        return open_as(b, i, &again, why);
    }
    if (!st)
        builtin_seal(b->calls[i], scratch);
    return st;
}

enum status batch_builtin_open(struct batch *b, unsigned i, struct problem *why)
{
    struct launch_spec spec = *b->spec->ops[i].launch;
    uint64_t           start;
    enum status        st;

    if (b->spec->program && !b->preparing)
        spec.engine = program_engine(b->spec->program, i);
    start = now_ns();
    b->calls_count++;
    st = open_as(b, i, &spec, why);
    b->times.compile_ms += (double)(now_ns() - start) / (double)NS_PER_MS;
    b->results[i].vendor = !st && b->calls[i]->vendor;
    if (b->preparing && b->results[i].vendor)
        program_keep_plan(b->spec->program, i, b->calls[i]->module);
    return batch_noted(b->worker_session, st, why);
}
