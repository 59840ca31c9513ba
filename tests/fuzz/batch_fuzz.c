/* Any bytes as a batch: head, JSON, decoding in both forms, and the walk through the segments. */
#include <stdlib.h>

#include "api/batch_decode.h"
#include "api/batch_frame.h"

/* What passed is what it promises to be. */
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

static void decode(struct span json, bool within)
{
    struct json_document *doc = NULL;
    struct batch_message  m;
    struct problem        why;
    struct arena          a;

    arena_init(&a, REQUEST_ARENA_BYTES);
    if (!json_parse_up_to(json, BATCH_JSON_VALUES_MAX, &doc, &why) && !batch_decode(json_root(doc), within, false, &a, &m, &why))
        check_promises(&m);
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
