/* Tells programs apart: equal digests, equal operations. */
#include "session/batch/program_internal.h"

#include <assert.h>

static void add_op(struct sha256 *h, const struct batch_op *op)
{
    unsigned char launch[SHA256_BYTES] = {0};

    if (op->launch)
        launch_digest(op->launch, launch);
    digest_add_u64(h, op->kind);
    digest_add_field(h, op->to);
    digest_add_field(h, op->from);
    digest_add_u64(h, op->offset);
    digest_add_u64(h, op->from_offset);
    digest_add_u64(h, op->has_bytes);
    digest_add_u64(h, op->bytes);
    digest_add_u64(h, (uint64_t)(int64_t)op->segment);
    digest_add_u64(h, op->pattern);
    digest_add_u64(h, op->pattern_bytes);
    digest_add_field(h, op->stream);
    digest_add_u64(h, op->has_stream);
    digest_add(h, launch, sizeof launch);
}

void program_digest(const struct batch_spec *spec, struct span names, unsigned char out[SHA256_BYTES])
{
    static const unsigned char none[SHA256_BYTES];
    struct sha256              h;

    assert(!spec->source || spec->source->checked);
    digest_init(&h);
    digest_add(&h, spec->source ? spec->source->digest : none, SHA256_BYTES);
    digest_add_field(&h, spec->module);
    digest_add_field(&h, names);
    digest_add_u64(&h, spec->timeout_ms);
    digest_add_u64(&h, spec->segments_count);
    for (unsigned i = 0; i < spec->segments_count; i++)
        digest_add_u64(&h, spec->segments[i]);
    digest_add_u64(&h, spec->ops_count);
    for (unsigned i = 0; i < spec->ops_count; i++)
        add_op(&h, &spec->ops[i]);
    digest_end(&h, out);
}
