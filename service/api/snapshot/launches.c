/* Writes and reads launches that have ended. */
#include "api/snapshot/launches.h"

#include <math.h>

#include "api/bounds.h"
#include "api/decode/launch_json.h"
#include "api/decode/problem_json.h"
#include "base/deadline.h"
#include "session/life/table.h"

/* ---- writing ---- */

struct writing {
    struct json_writer w;
    unsigned           count;
};

static void add_output(struct json_writer *w, const struct launch_info *i)
{
    if (i->output.bytes)
        json_add_base64(w, "output", i->output);
    if (i->output_truncated)
        json_add_bool(w, "output_truncated", true);
}

static void add_launch(void *context, const struct launch_info *i, const unsigned char digest[SHA256_BYTES])
{
    struct writing     *x = context;
    struct json_writer *w = &x->w;
    char                hex[SHA256_HEX_BYTES];

    if (!x->count++)
        json_open_array(w, "launches");
    digest_hex(digest, hex);
    json_open_object(w, NULL);
    json_add_text(w, "id", i->id);
    json_add_text(w, "digest", hex);
    json_add_text(w, "module", i->module);
    json_add_text(w, "dtype", i->dtype);
    json_add_bool(w, "vendor", i->vendor);
    json_add_text(w, "kernel", i->kernel);
    launch_dims_add(w, "grid", i->grid);
    launch_dims_add(w, "block", i->block);
    json_add_u64(w, "shared_bytes", i->shared_bytes);
    json_add_text(w, "stream", i->stream);
    json_add_text(w, "state", work_state_name(i->state));
    json_add_exact(w, "created_ns", i->created_wall_ns);
    json_add_exact(w, "started_ns", i->started_wall_ns);
    json_add_exact(w, "finished_ns", i->finished_wall_ns);
    json_add_bool(w, "timed", !i->untimed);
    json_add_exact(w, "gpu_ns", (uint64_t)llround(i->gpu_us * (double)NS_PER_US));
    add_output(w, i);
    if (i->state == WORK_FAILED)
        problem_json_add(w, i->problem);
    json_close_object(w);
}

void launches_write(struct session *s, struct buf *out)
{
    struct writing x = {.count = 0};

    json_writer_init(&x.w, out);
    json_open_object(&x.w, NULL);
    if (!launch_each_ended(s, add_launch, &x))
        out->failed = true;
    if (x.count)
        json_close_array(&x.w);
    json_close_object(&x.w);
    if (!x.count && !out->failed)
        buf_clear(out);
}

/* ---- reading ---- */

struct past {
    struct span        id, digest, module, dtype, kernel, stream, state, output;
    bool               vendor, timed, output_truncated;
    const struct json *grid, *block, *problem;
    uint32_t           shared_bytes;
    uint64_t           created_ns, started_ns, finished_ns, gpu_ns;
};
static const struct json_field past_fields[] = {
    JSON_FIELD(FIELD_STRING, struct past, id, true, ID_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct past, digest, true, SHA256_HEX_BYTES),
    JSON_FIELD(FIELD_STRING, struct past, module, true, ID_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct past, dtype, true, DTYPE_NAME_BYTES - 1),
    JSON_FIELD(FIELD_BOOL, struct past, vendor, true, 0),
    JSON_FIELD(FIELD_STRING, struct past, kernel, true, KERNEL_NAME_BYTES - 1),
    JSON_FIELD(FIELD_ANY, struct past, grid, true, 0),
    JSON_FIELD(FIELD_ANY, struct past, block, true, 0),
    JSON_FIELD(FIELD_U32, struct past, shared_bytes, true, UINT32_MAX),
    JSON_FIELD(FIELD_STRING, struct past, stream, true, STREAM_NAME_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct past, state, true, 16),
    JSON_FIELD(FIELD_U64, struct past, created_ns, true, INT64_MAX),
    JSON_FIELD(FIELD_U64, struct past, started_ns, true, INT64_MAX),
    JSON_FIELD(FIELD_U64, struct past, finished_ns, true, INT64_MAX),
    JSON_FIELD(FIELD_BOOL, struct past, timed, true, 0),
    JSON_FIELD(FIELD_U64, struct past, gpu_ns, true, INT64_MAX),
    JSON_FIELD(FIELD_STRING, struct past, output, false, SNAPSHOT_TEXT_BYTES_MAX),
    JSON_FIELD(FIELD_BOOL, struct past, output_truncated, false, 0),
    JSON_FIELD(FIELD_ANY, struct past, problem, false, 0),
};

static enum status wrong(struct problem *why)
{
    return problem_set(why, STATUS_SNAPSHOT_INVALID, "this is no list of launches");
}

/* A library's has none. */
static bool read_dims(const struct json *v, uint32_t out[3])
{
    unsigned n = 0;

    if (json_type_of(v) != JSON_ARRAY || json_count(v) != 3)
        return false;
    for (const struct json *e = json_first(v); e; e = json_next(e)) {
        uint64_t value;

        if (!json_u64(e, &value) || value > UINT32_MAX)
            return false;
        out[n++] = (uint32_t)value;
    }
    return true;
}

/* A client's, or one that a service has made, with a node in it or none. */
static bool is_id(struct span id)
{
    return client_id_valid(id) || (id.bytes > 2 && span_starts(id, "l_") && span_holds_only(id, "_-"));
}

/* A file is set aside as damaged only when it is: not for want of memory. */
static enum status read_texts(const struct past *q, struct arena *a, struct launch_info *out, struct problem *why)
{
    bool whole = base64_decode(q->output, a, &out->output);

    out->kernel = arena_copy(a, q->kernel).data;
    if (!out->kernel || !out->output.data)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a launch");
    whole = whole && span_copy(q->id, out->id, sizeof out->id) && span_copy(q->module, out->module, sizeof out->module) &&
            span_copy(q->dtype, out->dtype, sizeof out->dtype) && span_copy(q->stream, out->stream, sizeof out->stream);
    return whole ? STATUS_OK : wrong(why);
}

static enum status read_problem(const struct json *v, struct arena *a, const struct problem **out, struct problem *why)
{
    struct problem *p = arena_alloc(a, sizeof *p);

    if (!p)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a launch");
    *out = p;
    return problem_json_read(v, p) ? STATUS_OK : wrong(why);
}

static enum status read_launch(const struct json *v, struct arena *a, struct launch_info *out, unsigned char digest[SHA256_BYTES],
                               struct problem *why)
{
    struct past q = {0};
    enum status st = STATUS_OK;

    memset(out, 0, sizeof *out);
    if (json_type_of(v) != JSON_OBJECT || json_decode(v, past_fields, COUNT(past_fields), "", false, &q, why) || !is_id(q.id) ||
        !digest_of_hex(q.digest, digest) || !read_dims(q.grid, out->grid) || !read_dims(q.block, out->block) ||
        !work_state_find_ended(q.state, &out->state) || !q.finished_ns)
        return wrong(why);
    if (out->state == WORK_FAILED)
        st = read_problem(q.problem, a, &out->problem, why);
    if (st)
        return st;
    out->vendor = q.vendor;
    out->untimed = !q.timed;
    out->output_truncated = q.output_truncated;
    out->shared_bytes = q.shared_bytes;
    out->created_wall_ns = q.created_ns;
    out->started_wall_ns = q.started_ns;
    out->finished_wall_ns = q.finished_ns;
    out->gpu_us = (double)q.gpu_ns / (double)NS_PER_US;
    return read_texts(&q, a, out, why);
}

/* `s` NULL: they are only looked at. */
static enum status take_launch(const struct json *v, struct session *s, struct problem *why)
{
    struct launch_info was;
    unsigned char      digest[SHA256_BYTES];
    struct arena       a;
    enum status        st;

    arena_init(&a, SNAPSHOT_TEXT_BYTES_MAX);
    st = read_launch(v, &a, &was, digest, why);
    if (!st && s)
        st = launch_restore(s, &was, digest, why);
    arena_finish(&a);
    return st;
}

enum status launches_read(struct span text, struct session *s, struct problem *why)
{
    struct json_document *doc;
    const struct json    *launches;
    enum status           st = json_parse_up_to(text, SNAPSHOT_VALUES_MAX, &doc, why);

    if (st)
        return st == STATUS_OUT_OF_MEMORY ? st : wrong(why);
    launches = json_member(json_root(doc), "launches");
    if (json_type_of(launches) != JSON_ARRAY || json_count(json_root(doc)) != 1 || json_count(launches) > LAUNCHES_KEPT_MAX)
        st = wrong(why);
    for (const struct json *v = json_first(launches); v && !st; v = json_next(v))
        st = take_launch(v, s, why);
    json_document_destroy(doc);
    return st;
}
