/* Decodes batches: one table of members per kind of operation. */
#include "api/batch/decode.h"
#include "api/bounds.h"

#include <assert.h>
#include <stdio.h>

#include "api/decode/args.h"
#include "api/decode/launch_json.h"
#include "api/modules.h"
#include "session/life/table.h"

struct batch_request {
    const struct json *segments, *module, *ops, *keep;
    uint64_t           timeout_ms;
    bool               timing;
};
static const struct json_field batch_fields[] = {
    JSON_FIELD(FIELD_ANY, struct batch_request, segments, false, 0),
    JSON_FIELD(FIELD_ANY, struct batch_request, module, false, 0),
    JSON_FIELD(FIELD_ANY, struct batch_request, ops, true, 0),
    JSON_FIELD(FIELD_ANY, struct batch_request, keep, false, 0),
    JSON_FIELD(FIELD_U64, struct batch_request, timeout_ms, false, EXECUTION_TIMEOUT_MS_MAX),
    JSON_FIELD(FIELD_BOOL, struct batch_request, timing, false, 0),
};

struct segment_request {
    struct span id, data_b64;
    uint64_t    size;
};
static const struct json_field framed_fields[] = {
    JSON_FIELD(FIELD_STRING, struct segment_request, id, true, ID_BYTES - 1),
    JSON_FIELD(FIELD_U64, struct segment_request, size, true, MEMORY_BYTES_ASKED_MAX),
};
static const struct json_field inline_json_fields[] = {
    JSON_FIELD(FIELD_STRING, struct segment_request, id, true, ID_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct segment_request, data_b64, true, BATCH_JSON_BYTES_MAX),
};

/* All members that any operation has. */
struct op_request {
    struct span          op, as, to, from, buf, event, segment, stream;
    uint64_t             size, offset, from_offset;
    bool                 has_size, has_segment, has_stream;
    const struct json   *pattern, *args;
    struct launch_fields fields;
};

#define MEMBER(type, member, required, max) JSON_FIELD(type, struct op_request, member, required, max)
#define NAME(member, required)              MEMBER(FIELD_STRING, member, required, ID_BYTES - 1)
#define OP_NAME                             MEMBER(FIELD_STRING, op, true, 16)
#define OFFSET(member)                      MEMBER(FIELD_U64, member, false, MEMORY_BYTES_ASKED_MAX)
#define SIZE                                JSON_FIELD_SEEN(FIELD_U64, struct op_request, size, has_size, MEMORY_BYTES_ASKED_MAX)
#define STREAM                              JSON_FIELD_SEEN(FIELD_STRING, struct op_request, stream, has_stream, STREAM_NAME_BYTES - 1)

static const struct json_field alloc_fields[] = {OP_NAME, NAME(as, true), SIZE,
                                                 JSON_FIELD_SEEN(FIELD_STRING, struct op_request, segment, has_segment, ID_BYTES - 1)};
static const struct json_field write_fields[] = {OP_NAME, NAME(to, true), OFFSET(offset), NAME(segment, true)};
static const struct json_field copy_fields[] = {OP_NAME, NAME(from, true), OFFSET(from_offset), NAME(to, true), OFFSET(offset), SIZE};
static const struct json_field fill_fields[] = {OP_NAME, NAME(to, true), OFFSET(offset), SIZE, MEMBER(FIELD_ANY, pattern, true, 0)};
static const struct json_field launch_fields[] = {OP_NAME, LAUNCH_FIELDS(struct op_request), MEMBER(FIELD_ANY, args, false, 0), STREAM};
static const struct json_field read_fields[] = {OP_NAME, NAME(from, true), OFFSET(offset), SIZE, NAME(segment, true)};
static const struct json_field free_fields[] = {OP_NAME, NAME(buf, true)};
static const struct json_field event_fields[] = {OP_NAME, NAME(event, true), STREAM};
static const struct json_field elapsed_fields[] = {OP_NAME, NAME(from, true), NAME(to, true)};
static const struct json_field sync_fields[] = {OP_NAME, STREAM};

/* A "$name" of the batch. */
struct name {
    struct entry entry;
    bool         freed;
};

struct decoding {
    bool                  inline_json, lenient;
    bool                  timing; /* of launches that do not say */
    struct arena         *arena;
    struct problem       *why;
    struct batch_segment *segments;
    unsigned              segments_count;
    bool                  used[BATCH_SEGMENTS_MAX];
    struct batch_op      *ops;
    struct span          *outputs;
    unsigned              outputs_count;
    struct table          names;
};

static enum status no_room(struct decoding *d)
{
    return problem_set(d->why, STATUS_OUT_OF_MEMORY, "not enough memory for the batch");
}

static enum status wrong(struct decoding *d, const char *pointer, const char *code, const char *what)
{
    return problem_field(d->why, STATUS_INVALID_FIELD, pointer, code, "%s", what);
}

/* ---- segments ---- */

static int segment_find(const struct decoding *d, struct span id)
{
    for (unsigned i = 0; i < d->segments_count; i++)
        if (span_equal(d->segments[i].id, id))
            return (int)i;
    return BATCH_NO_SEGMENT;
}

static enum status decode_segment(struct decoding *d, const struct json *v, const char *pointer, uint64_t *total)
{
    const struct json_field *fields = d->inline_json ? inline_json_fields : framed_fields;
    struct segment_request   q = {0};
    struct batch_segment    *s = &d->segments[d->segments_count];
    enum status              st = json_decode(v, fields, COUNT(framed_fields), pointer, d->lenient, &q, d->why);

    if (st)
        return st;
    if (q.id.bytes == 0 || segment_find(d, q.id) != BATCH_NO_SEGMENT)
        return wrong(d, pointer, "value", "a segment's id must be unique and not empty");
    *s = (struct batch_segment){.id = q.id, .bytes = q.size};
    if (d->inline_json && !base64_decode(q.data_b64, d->arena, &s->data))
        return wrong(d, pointer, "value", "data_b64 must be base64");
    s->bytes = d->inline_json ? s->data.bytes : s->bytes;
    d->segments_count++;
    if (s->bytes > UINT64_MAX - *total)
        return problem_set(d->why, STATUS_FRAMING_MISMATCH, "the sum of the segment sizes is too large");
    *total += s->bytes;
    if (d->inline_json && *total > BATCH_INLINE_BYTES_MAX)
        return problem_limit(d->why, STATUS_BODY_TOO_LARGE, "batch_inline_bytes", BATCH_INLINE_BYTES_MAX, 0, *total);
    return STATUS_OK;
}

static enum status decode_segments(struct decoding *d, const struct json *array, struct batch_spec *spec)
{
    size_t      count = array ? json_count(array) : 0;
    uint64_t   *sizes;
    uint64_t    total = 0;
    enum status st = STATUS_OK;

    if (array && json_type_of(array) != JSON_ARRAY)
        return wrong(d, "/segments", "type", "segments must be an array");
    if (count > BATCH_SEGMENTS_MAX)
        return problem_field(d->why, STATUS_INVALID_FIELD, "/segments", "count", "too many segments, at most %d are possible",
                             BATCH_SEGMENTS_MAX);
    sizes = arena_array(d->arena, count + 1, sizeof *sizes);
    d->segments = arena_array(d->arena, count + 1, sizeof *d->segments);
    if (!sizes || !d->segments)
        return no_room(d);
    for (const struct json *v = json_first(array); v && !st; v = json_next(v)) {
        char pointer[PROBLEM_POINTER_BYTES];
        snprintf(pointer, sizeof pointer, "/segments/%u", d->segments_count);
        st = decode_segment(d, v, pointer, &total);
    }
    for (unsigned i = 0; i < d->segments_count; i++)
        sizes[i] = d->segments[i].bytes;
    spec->segments = sizes;
    spec->segments_count = d->segments_count;
    return st;
}

static enum status use_segment(struct decoding *d, struct span id, int *out)
{
    *out = segment_find(d, id);
    if (*out == BATCH_NO_SEGMENT)
        return wrong(d, "/segment", "not_found", "the batch has no segment with this id");
    if (d->used[*out])
        return wrong(d, "/segment", "conflict", "another operation uses this segment");
    d->used[*out] = true;
    return STATUS_OK;
}

static enum status all_used(struct decoding *d)
{
    for (unsigned i = 0; i < d->segments_count; i++) {
        char pointer[PROBLEM_POINTER_BYTES];
        if (d->used[i])
            continue;
        snprintf(pointer, sizeof pointer, "/segments/%u", i);
        return wrong(d, pointer, "unused", "no operation uses this segment");
    }
    return STATUS_OK;
}

/* ---- names ---- */

static enum status check_buffer(struct decoding *d, struct span name, const char *pointer)
{
    const struct name *own;

    if (!span_starts(name, "$"))
        return name.bytes ? STATUS_OK : wrong(d, pointer, "value", "buffer name required");
    own = (struct name *)table_get(&d->names, name);
    return own && !own->freed ? STATUS_OK : wrong(d, pointer, "not_found", "the batch has no buffer with this name at this operation");
}

static enum status add_name(struct decoding *d, struct span name)
{
    struct name *n = arena_alloc(d->arena, sizeof *n);

    if (!span_starts(name, "$") || !client_id_valid(span_from(name, 1)))
        return wrong(d, "/as", "format", "a name must be $ and an id of a-z, 0-9, '_' and '-'");
    if (table_get(&d->names, name))
        return wrong(d, "/as", "conflict",
                     "an operation before has made a buffer of this name: give each alloc a name of its own, also after a free");
    if (!n || !span_copy(name, n->entry.id, sizeof n->entry.id) || table_put(&d->names, &n->entry))
        return no_room(d);
    return STATUS_OK;
}

/* ---- operations ---- */

static enum status finish_alloc(struct decoding *d, const struct op_request *q, struct batch_op *op)
{
    enum status st = add_name(d, q->as);

    op->to = q->as;
    if (st)
        return st;
    if (q->has_size == q->has_segment)
        return wrong(d, "/size", "value", "alloc needs either a size or a segment");
    if (q->has_size && q->size == 0)
        return wrong(d, "/size", "range", "a buffer must have at least 1 byte");
    if (q->has_size)
        return STATUS_OK;
    st = use_segment(d, q->segment, &op->segment);
    if (!st && d->segments[op->segment].bytes == 0)
        st = wrong(d, "/segment", "range", "a buffer must have at least 1 byte");
    return st;
}

static enum status finish_fill(struct decoding *d, const struct op_request *q, struct batch_op *op)
{
    struct launch_arg pattern;
    enum status       st = check_buffer(d, q->to, "/to");

    if (!st)
        st = scalar_decode(q->pattern, "/pattern", &pattern, d->why);
    if (st)
        return st;
    op->pattern = pattern.value;
    op->pattern_bytes = pattern.scalar_bytes;
    return STATUS_OK;
}

static enum status finish_launch(struct decoding *d, const struct op_request *q, struct batch_op *op)
{
    struct launch_spec *spec = arena_alloc(d->arena, sizeof *spec);
    enum status         st;

    if (!spec)
        return no_room(d);
    op->launch = spec;
    spec->stream = q->stream;
    st = launch_fields_decode(&q->fields, spec, d->why);
    return st ? st : args_decode(q->args, d->arena, spec, d->why);
}

static enum status finish_read(struct decoding *d, const struct op_request *q, struct batch_op *op)
{
    size_t index = (size_t)(op - d->ops);

    if (q->segment.bytes == 0)
        return wrong(d, "/segment", "value", "segment name required");
    for (size_t i = 0; i < index; i++)
        if (span_equal(d->outputs[i], q->segment))
            return wrong(d, "/segment", "conflict", "another operation writes this segment of the answer");
    if (d->outputs_count == BATCH_SEGMENTS_MAX)
        return problem_field(d->why, STATUS_INVALID_FIELD, "/segment", "count", "too many segments in the answer, at most %d are possible",
                             BATCH_SEGMENTS_MAX);
    d->outputs[index] = q->segment;
    d->outputs_count++;
    return check_buffer(d, q->from, "/from");
}

static enum status finish_free(struct decoding *d, const struct op_request *q, struct batch_op *op)
{
    enum status  st = check_buffer(d, q->buf, "/buf");
    struct name *own = st ? NULL : (struct name *)table_get(&d->names, q->buf);

    op->to = q->buf;
    if (own)
        own->freed = true;
    return st;
}

static enum status finish_copy(struct decoding *d, const struct op_request *q, struct batch_op *op)
{
    enum status st = check_buffer(d, q->from, "/from");

    (void)op;
    return st ? st : check_buffer(d, q->to, "/to");
}

static enum status finish_write(struct decoding *d, const struct op_request *q, struct batch_op *op)
{
    enum status st = check_buffer(d, q->to, "/to");

    return st ? st : use_segment(d, q->segment, &op->segment);
}

static enum status finish_event(struct decoding *d, const struct op_request *q, struct batch_op *op)
{
    op->to = q->event;
    return q->event.bytes ? STATUS_OK : wrong(d, "/event", "value", "event name required");
}

static const struct op_kind {
    const char              *name;
    enum batch_kind          kind;
    const struct json_field *fields;
    size_t                   count;
    enum status (*finish)(struct decoding *d, const struct op_request *q, struct batch_op *op); /* NULL: that is all */
} kinds[] = {
    {"launch", BATCH_LAUNCH, launch_fields, COUNT(launch_fields), finish_launch},
    {"write", BATCH_WRITE, write_fields, COUNT(write_fields), finish_write},
    {"copy", BATCH_COPY, copy_fields, COUNT(copy_fields), finish_copy},
    {"fill", BATCH_FILL, fill_fields, COUNT(fill_fields), finish_fill},
    {"alloc", BATCH_ALLOC, alloc_fields, COUNT(alloc_fields), finish_alloc},
    {"read", BATCH_READ, read_fields, COUNT(read_fields), finish_read},
    {"free", BATCH_FREE, free_fields, COUNT(free_fields), finish_free},
    {"record", BATCH_RECORD, event_fields, COUNT(event_fields), finish_event},
    {"wait", BATCH_WAIT, event_fields, COUNT(event_fields), finish_event},
    {"elapsed", BATCH_ELAPSED, elapsed_fields, COUNT(elapsed_fields), NULL},
    {"sync", BATCH_SYNC, sync_fields, COUNT(sync_fields), NULL},
};

static void note_op(const struct op_request *q, enum batch_kind kind, struct batch_op *out)
{
    *out = (struct batch_op){.kind = kind,
                             .to = q->to,
                             .from = q->from,
                             .offset = q->offset,
                             .from_offset = q->from_offset,
                             .has_bytes = q->has_size,
                             .bytes = q->size,
                             .segment = BATCH_NO_SEGMENT,
                             .stream = q->stream,
                             .has_stream = q->has_stream};
}

static const struct op_kind *kind_of(const struct json *v)
{
    struct span name = json_text(json_member(v, "op"));

    for (size_t i = 0; i < COUNT(kinds); i++)
        if (span_is(name, kinds[i].name))
            return &kinds[i];
    return NULL;
}

static enum status unknown_op(struct decoding *d, const char *pointer)
{
    return wrong(d, pointer, "value",
                 "an operation must be an object with \"op\": alloc, write, copy, fill, launch, read, free, record, "
                 "wait, elapsed or sync");
}

/* Pointers are written, and members decoded once more, only for an operation in which something is wrong. */
static enum status decode_op(struct decoding *d, const struct json *v, unsigned index)
{
    const struct op_kind *k = kind_of(v);
    struct op_request     q = {.fields.timing = d->timing};
    char                  pointer[PROBLEM_POINTER_BYTES];
    enum status           st = k ? json_decode(v, k->fields, k->count, "", d->lenient, &q, NULL) : STATUS_INVALID_FIELD;

    if (!st) {
        note_op(&q, k->kind, &d->ops[index]);
        st = k->finish ? k->finish(d, &q, &d->ops[index]) : STATUS_OK;
        if (!st)
            return STATUS_OK;
        problem_pointer(pointer, "/ops", index);
        problem_within(d->why, pointer);
        return st;
    }
    problem_pointer(pointer, "/ops", index);
    st = k ? json_decode(v, k->fields, k->count, pointer, d->lenient, &q, d->why) : unknown_op(d, pointer);
    assert(st); /* what was wrong is still */
    return st;
}

static enum status decode_ops(struct decoding *d, const struct json *array, struct batch_spec *spec)
{
    size_t      count = json_count(array);
    unsigned    i = 0;
    enum status st = STATUS_OK;

    if (json_type_of(array) != JSON_ARRAY)
        return wrong(d, "/ops", "type", "ops must be an array");
    if (count > BATCH_OPS_MAX)
        return problem_field(d->why, STATUS_INVALID_FIELD, "/ops", "count", "too many operations, at most %d are possible", BATCH_OPS_MAX);
    d->ops = arena_array(d->arena, count, sizeof *d->ops);
    d->outputs = arena_array(d->arena, count, sizeof *d->outputs);
    if (!d->ops || !d->outputs)
        return no_room(d);
    for (const struct json *v = json_first(array); v && !st; v = json_next(v))
        st = decode_op(d, v, i++);
    spec->ops = d->ops;
    spec->ops_count = (unsigned)count;
    return st ? st : all_used(d);
}

/* ---- the rest ---- */

static bool listed(const struct span *names, unsigned count, struct span name)
{
    for (unsigned i = 0; i < count; i++)
        if (span_equal(names[i], name))
            return true;
    return false;
}

static enum status decode_keep(struct decoding *d, const struct json *array, struct batch_spec *spec)
{
    struct span *names;

    if (!array)
        return STATUS_OK;
    if (json_type_of(array) != JSON_ARRAY || json_count(array) > d->names.count)
        return wrong(d, "/keep", "value", "keep must be an array of different names that the batch allocates");
    names = arena_array(d->arena, json_count(array), sizeof *names);
    if (!names)
        return no_room(d);
    for (const struct json *v = json_first(array); v; v = json_next(v)) {
        const struct name *own = (struct name *)table_get(&d->names, json_text(v));
        if (!own || own->freed || listed(names, spec->keep_count, json_text(v)))
            return wrong(d, "/keep", "value", "keep must be an array of different names that the batch allocates");
        names[spec->keep_count++] = json_text(v);
    }
    spec->keep = names;
    return STATUS_OK;
}

static enum status decode_module(struct decoding *d, const struct json *v, struct batch_spec *spec)
{
    struct module_spec *source;

    if (!v)
        return STATUS_OK;
    if (json_type_of(v) == JSON_STRING) {
        spec->module = json_text(v);
        return spec->module.bytes ? STATUS_OK : wrong(d, "/module", "value", "a module's id must not be empty");
    }
    source = arena_alloc(d->arena, sizeof *source);
    if (!source)
        return no_room(d);
    spec->source = source;
    return module_decode(v, "/module", d->lenient, d->arena, source, d->why);
}

static enum status decode_all(struct decoding *d, const struct batch_request *q, struct batch_spec *spec)
{
    enum status st = decode_segments(d, q->segments, spec);

    d->timing = q->timing;
    if (!st)
        st = decode_module(d, q->module, spec);
    if (!st)
        st = decode_ops(d, q->ops, spec);
    return st ? st : decode_keep(d, q->keep, spec);
}

enum status batch_decode(const struct json *root, bool inline_json, bool lenient, struct arena *a, struct batch_message *out,
                         struct problem *why)
{
    struct decoding      d = {.inline_json = inline_json, .lenient = lenient, .arena = a, .why = why};
    struct batch_request q = {.timeout_ms = EXECUTION_TIMEOUT_MS_DEFAULT, .timing = true};
    enum status          st = json_decode(root, batch_fields, COUNT(batch_fields), "", lenient, &q, why);

    *out = (struct batch_message){0};
    if (!st && q.timeout_ms == 0)
        st = wrong(&d, "/timeout_ms", "range", "timeout_ms must be at least 1");
    if (!st)
        st = decode_all(&d, &q, &out->spec);
    table_finish(&d.names);
    out->spec.timeout_ms = q.timeout_ms;
    out->spec.answer_bytes_max = inline_json ? BATCH_INLINE_BYTES_MAX : BATCH_ANSWER_BYTES_MAX;
    out->spec.answer_limit = inline_json ? "batch_inline_bytes" : "batch_answer_bytes";
    out->segments = d.segments;
    out->outputs = d.outputs;
    out->outputs_count = d.outputs_count;
    return st;
}

enum status batch_segments_decode(const struct json *array, bool inline_json, bool lenient, struct arena *a,
                                  const struct batch_segment **out, unsigned *count, struct problem *why)
{
    struct decoding   d = {.inline_json = inline_json, .lenient = lenient, .arena = a, .why = why};
    struct batch_spec spec = {0};
    enum status       st = decode_segments(&d, array, &spec);

    *out = d.segments;
    *count = d.segments_count;
    return st;
}
