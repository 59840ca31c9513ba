/* Writes and reads ended batches. Of a failure the code, the text and the operation travel; a compiler's log does not. */
#include "api/batch/kept.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/batch/request.h"

enum { LINE_BYTES_MAX = 8 * 1024 };

/* ---- writing ---- */

static void add_exact(struct json_writer *w, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    json_add_text(w, name, text);
}

static void add_why(struct json_writer *w, const struct problem *p)
{
    json_open_object(w, "problem");
    json_add_text(w, "code", status_code(p->status));
    json_add_text(w, "detail", p->detail);
    if (p->has_op) {
        json_add_u64(w, "op_index", p->op_index);
        json_add_u64(w, "op_index_last", p->op_index_last);
        json_add_u64(w, "completed_ops", p->completed_ops);
    }
    json_close_object(w);
}

void batch_kept_write(struct batch_job *j, struct buf *out)
{
    const struct batch_request *b = (const struct batch_request *)j;
    struct batch_job_info       i;
    struct json_writer          w;

    batch_job_info_of(j, &i);
    json_writer_init(&w, out);
    json_open_object(&w, NULL);
    json_add_text(&w, "state", batch_job_state_name(i.state));
    json_add_bool(&w, "json", b->inline_json);
    add_exact(&w, "created_ns", i.created_wall_ns);
    add_exact(&w, "started_ns", i.started_wall_ns);
    add_exact(&w, "finished_ns", i.finished_wall_ns);
    if (i.state == BATCH_JOB_FAILED)
        add_why(&w, &i.problem);
    json_close_object(&w);
    buf_add_span(out, SPAN_LITERAL("\n"));
    for (unsigned n = 0; i.state == BATCH_JOB_SUCCEEDED && n < b->answer.parts_count; n++)
        buf_add_span(out, b->answer.parts[n].held);
}

/* ---- reading ---- */

struct line {
    struct span        state;
    bool               json;
    uint64_t           created_ns, started_ns, finished_ns;
    const struct json *problem;
};
static const struct json_field line_fields[] = {
    JSON_FIELD(FIELD_STRING, struct line, state, true, 16),           JSON_FIELD(FIELD_BOOL, struct line, json, true, 0),
    JSON_FIELD(FIELD_U64, struct line, created_ns, true, INT64_MAX),  JSON_FIELD(FIELD_U64, struct line, started_ns, true, INT64_MAX),
    JSON_FIELD(FIELD_U64, struct line, finished_ns, true, INT64_MAX), JSON_FIELD(FIELD_ANY, struct line, problem, false, 0),
};
struct failure {
    struct span code, detail;
    uint32_t    op_index, op_index_last, completed_ops;
    bool        has_op;
};
static const struct json_field failure_fields[] = {
    JSON_FIELD(FIELD_STRING, struct failure, code, true, PROBLEM_NAME_BYTES),
    JSON_FIELD(FIELD_STRING, struct failure, detail, true, PROBLEM_DETAIL_BYTES - 1),
    JSON_FIELD_SEEN(FIELD_U32, struct failure, op_index, has_op, UINT32_MAX),
    JSON_FIELD(FIELD_U32, struct failure, op_index_last, false, UINT32_MAX),
    JSON_FIELD(FIELD_U32, struct failure, completed_ops, false, UINT32_MAX),
};

static enum status wrong(struct problem *why)
{
    return problem_set(why, STATUS_SNAPSHOT_INVALID, "this is no result of a batch");
}

static bool read_state(struct span text, enum batch_job_state *out)
{
    for (*out = BATCH_JOB_SUCCEEDED; *out <= BATCH_JOB_CANCELLED; (*out)++)
        if (span_is(text, batch_job_state_name(*out)))
            return true;
    return false;
}

static enum status status_of_code(struct span code)
{
    enum status st = STATUS_OK + 1;

    while (st < STATUS_COUNT && !span_is(code, status_code(st)))
        st++;
    return st;
}

static enum status read_failure(const struct json *v, struct problem *out, struct problem *why)
{
    struct failure q = {0};
    enum status    st;

    if (json_type_of(v) != JSON_OBJECT || json_decode(v, failure_fields, COUNT(failure_fields), "/problem", false, &q, why))
        return wrong(why);
    st = status_of_code(q.code);
    if (st == STATUS_COUNT)
        return wrong(why);
    problem_set(out, st, "%.*s", SPAN_ARG(q.detail));
    out->has_op = q.has_op;
    out->op_index = q.op_index;
    out->op_index_last = q.op_index_last;
    out->completed_ops = q.completed_ops;
    return STATUS_OK;
}

static enum status read_line(struct span text, struct batch_job_info *was, bool *json, struct problem *why)
{
    struct json_document *doc;
    struct line           q = {0};
    enum status           st = text.bytes > LINE_BYTES_MAX ? STATUS_SNAPSHOT_INVALID : json_parse(text, &doc, why);

    if (st)
        return st == STATUS_OUT_OF_MEMORY ? st : wrong(why);
    if (json_type_of(json_root(doc)) != JSON_OBJECT || json_decode(json_root(doc), line_fields, COUNT(line_fields), "", false, &q, why) ||
        !read_state(q.state, &was->state) || !q.finished_ns)
        st = wrong(why);
    was->created_wall_ns = q.created_ns;
    was->started_wall_ns = q.started_ns;
    was->finished_wall_ns = q.finished_ns;
    *json = q.json;
    if (!st && was->state == BATCH_JOB_FAILED)
        st = read_failure(q.problem, &was->problem, why);
    json_document_destroy(doc);
    return st;
}

static bool hold_answer(struct batch_request *b, struct span bytes)
{
    struct batch_answer *a = &b->answer;

    a->parts = calloc(1, sizeof *a->parts);
    if (!a->parts)
        return false;
    a->parts_count = 1;
    a->parts[0].owned = malloc(bytes.bytes);
    if (!a->parts[0].owned)
        return false;
    memcpy(a->parts[0].owned, bytes.data, bytes.bytes);
    a->parts[0].held = (struct span){a->parts[0].owned, bytes.bytes};
    a->parts[0].bytes = a->bytes = a->held_bytes = bytes.bytes;
    b->job.bytes = sizeof *b + batch_answer_bytes(a);
    return true;
}

enum status batch_kept_read(struct span bytes, struct registry *r, const struct tenant *owner, struct batch_job **out,
                            struct batch_job_info *was, struct problem *why)
{
    struct span           line = span_cut(&bytes, '\n');
    struct batch_request *b;
    bool                  json = false;
    enum status           st = read_line(line, was, &json, why);

    if (st)
        return st;
    if ((was->state == BATCH_JOB_SUCCEEDED) != (bytes.bytes > 0))
        return wrong(why);
    b = batch_request_of_before(r, owner);
    if (!b)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a result");
    b->inline_json = json;
    if (bytes.bytes && !hold_answer(b, bytes)) {
        batch_job_return(&b->job);
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a result");
    }
    *out = &b->job;
    return STATUS_OK;
}
