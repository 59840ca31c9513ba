/* Writes and reads what went wrong. */
#include "api/decode/problem_json.h"

void problem_json_add(struct json_writer *w, const struct problem *p)
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

static enum status status_of_code(struct span code)
{
    enum status st = STATUS_OK + 1;

    while (st < STATUS_COUNT && !span_is(code, status_code(st)))
        st++;
    return st;
}

bool problem_json_read(const struct json *v, struct problem *out)
{
    struct failure q = {0};
    struct problem why;
    enum status    st;

    if (json_type_of(v) != JSON_OBJECT || json_decode(v, failure_fields, COUNT(failure_fields), "/problem", false, &q, &why))
        return false;
    st = status_of_code(q.code);
    if (st == STATUS_COUNT)
        return false;
    problem_set(out, st, "%.*s", SPAN_ARG(q.detail));
    out->has_op = q.has_op;
    out->op_index = q.op_index;
    out->op_index_last = q.op_index_last;
    out->completed_ops = q.completed_ops;
    return true;
}
