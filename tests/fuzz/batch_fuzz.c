/* Any bytes as a batch: head, JSON, decoding in both forms, and the walk through the segments. */
#include <stdlib.h>

#include "api/batch/decode.h"
#include "api/batch/frame.h"
#include "api/bounds.h"

enum { WALK_BYTES_MAX = 1 << 16 };

/* An accepted batch keeps its promises. */
static void check_promises(const struct batch_message *m)
{
    unsigned used = 0;

    for (unsigned i = 0; i < m->spec.ops_count; i++) {
        const struct batch_op *op = &m->spec.ops[i];
        if (op->segment != BATCH_NO_SEGMENT && (unsigned)op->segment >= m->spec.segments_count)
            abort();
        used += op->segment != BATCH_NO_SEGMENT;
        if (op->kind == BATCH_LAUNCH && !op->launch)
            abort();
    }
    if (used != m->spec.segments_count || m->spec.ops_count > BATCH_OPS_MAX)
        abort();
}

/* Walks the whole body in pieces of some size: every byte is in a segment or after it, and the end is the body's. */
static void walk(const struct batch_spec *spec, uint64_t left)
{
    struct batch_position at = {0};
    size_t                piece = 1 + (size_t)(left % 97), n;
    bool                  data;

    while (left && (n = batch_next(&at, spec->segments, spec->segments_count, left < piece ? (size_t)left : piece, &data)) > 0) {
        batch_took(&at, data, n);
        left -= n;
    }
    if (left || !batch_at_end(&at, spec->segments, spec->segments_count))
        abort();
}

static void walk_frame(const struct batch_spec *spec, uint32_t json_bytes)
{
    struct problem why;
    uint64_t       all;

    if (!batch_frame_bytes(json_bytes, spec->segments, spec->segments_count, &all))
        return;
    if (batch_frame_check(json_bytes, spec->segments, spec->segments_count, all, &why) != STATUS_OK)
        abort();
    if (all - BATCH_HEAD_BYTES - json_bytes <= WALK_BYTES_MAX)
        walk(spec, all - BATCH_HEAD_BYTES - json_bytes);
}

static void decode(struct span json, bool inline_json)
{
    struct json_document *doc = NULL;
    struct batch_message  m;
    struct problem        why;
    struct arena          a;

    arena_init(&a, REQUEST_ARENA_BYTES);
    if (!json_parse_up_to(json, BATCH_JSON_VALUES_MAX, &doc, &why) && !batch_decode(json_root(doc), inline_json, false, &a, &m, &why)) {
        check_promises(&m);
        if (!inline_json)
            walk_frame(&m.spec, (uint32_t)json.bytes);
    }
    json_document_destroy(doc);
    arena_finish(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct span    body = {(const char *)data, bytes};
    struct problem why;
    uint32_t       json;

    decode(body, true);
    decode(body, false);
    if (batch_head_decode(body, &json, &why) == STATUS_OK && json <= bytes - BATCH_HEAD_BYTES)
        decode((struct span){body.data + BATCH_HEAD_BYTES, json}, false);
    return 0;
}
