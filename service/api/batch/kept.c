/* Writes and reads ended batches. Of a failure the code, the text and the operation travel; a compiler's log does not. */
#include "api/batch/kept.h"

#include <stdlib.h>

#include "api/batch/request.h"
#include "api/decode/problem_json.h"

enum { LINE_BYTES_MAX = 8 * 1024 };

/* ---- writing ---- */

void batch_kept_write(struct batch_job *j, struct buf *out)
{
    const struct batch_request *b = (const struct batch_request *)j;
    struct batch_job_info       i;
    struct json_writer          w;

    batch_job_info_of(j, &i);
    json_writer_init(&w, out);
    json_open_object(&w, NULL);
    json_add_text(&w, "state", work_state_name(i.state));
    json_add_bool(&w, "json", b->inline_json);
    json_add_exact(&w, "created_ns", i.created_wall_ns);
    json_add_exact(&w, "started_ns", i.started_wall_ns);
    json_add_exact(&w, "finished_ns", i.finished_wall_ns);
    if (i.state == WORK_FAILED)
        problem_json_add(&w, &i.problem);
    json_close_object(&w);
    buf_add_span(out, SPAN_LITERAL("\n"));
    for (unsigned n = 0; i.state == WORK_SUCCEEDED && n < b->answer.parts_count; n++)
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
static enum status wrong(struct problem *why)
{
    return problem_set(why, STATUS_SNAPSHOT_INVALID, "this is no result of a batch");
}

static enum status read_line(struct span text, struct batch_job_info *was, bool *json, struct problem *why)
{
    struct json_document *doc;
    struct line           q = {0};
    enum status           st = text.bytes > LINE_BYTES_MAX ? STATUS_SNAPSHOT_INVALID : json_parse(text, &doc, why);

    if (st)
        return st == STATUS_OUT_OF_MEMORY ? st : wrong(why);
    if (json_type_of(json_root(doc)) != JSON_OBJECT || json_decode(json_root(doc), line_fields, COUNT(line_fields), "", false, &q, why) ||
        !work_state_find_ended(q.state, &was->state) || !q.finished_ns)
        st = wrong(why);
    was->created_wall_ns = q.created_ns;
    was->started_wall_ns = q.started_ns;
    was->finished_wall_ns = q.finished_ns;
    *json = q.json;
    if (!st && was->state == WORK_FAILED)
        st = problem_json_read(q.problem, &was->problem) ? STATUS_OK : wrong(why);
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
    if ((was->state == WORK_SUCCEEDED) != (bytes.bytes > 0))
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
