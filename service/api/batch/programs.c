/* Programs: prepared batches, put once and run many times. */
#include "api/batch/program_decode.h"
#include "api/call.h"
#include "api/endpoints.h"

/* ---- a program as JSON ---- */

static void program_members(struct json_writer *w, const struct program_info *i)
{
    json_add_text(w, "name", i->name);
    json_add_u64(w, "ops", i->ops);
    json_add_u64(w, "segments", i->segments);
    json_add_u64(w, "launches", i->launches);
    json_add_u64(w, "prepared_launches", i->prepared_launches);
    json_add_u64(w, "graphs", i->graphs);
    json_add_u64(w, "memory_bytes", i->memory_bytes);
    json_add_u64(w, "runs", i->runs);
    json_add_time(w, "created_at", i->created_wall_ns);
}

static enum status answer_program(struct request *r, struct program *p, unsigned http_status)
{
    struct program_info i;
    struct answer       a;

    program_info_of(p, &i);
    if (http_status == 201)
        reply_header(&r->reply, "Location", "/v1/sessions/%.*s/programs/%s", SPAN_ARG(sid_of(r)), i.name);
    answer_begin(&a);
    program_members(&a.w, &i);
    return answer_end(&a, r, http_status);
}

/* ---- create ---- */

enum status programs_put_begin(struct request *r)
{
    if (span_equal_nocase(request_media_type(r), SPAN_LITERAL(BATCH_TYPE)))
        return problem_set(&r->problem, STATUS_UNSUPPORTED_MEDIA_TYPE,
                           "the Content-Type of a program must be application/json; send bytes with its runs");
    return STATUS_OK;
}

static enum status put_in(struct request *r, struct session *s)
{
    struct program_message *m;
    struct program         *p;
    bool                    created;
    enum status             st = program_decode(r->body, request_prefer(r).lenient, &m, &r->problem);

    if (st)
        return st;
    if (m->text.spec.source && !(r->caller->scopes & SCOPE_COMPILE)) {
        m->text.destroy(&m->text);
        return problem_set(&r->problem, STATUS_INSUFFICIENT_SCOPE, "a module's source needs the scope compile");
    }
    st = program_put(s, r->params[1], &m->text, &r->arena, &p, &created, &r->problem);
    if (st)
        return st;
    st = answer_program(r, p, created ? 201 : 200);
    program_return(p);
    return st;
}

enum status programs_put(struct request *r)
{
    return on_session(r, put_in);
}

/* ---- get and delete ---- */

static void add_programs(struct list *l)
{
    struct program_info *items = l->items;
    unsigned             n = program_list(l->session, &l->page, items);

    for (unsigned i = 0; i < n; i++) {
        json_open_object(l->w, NULL);
        program_members(l->w, &items[i]);
        json_close_object(l->w);
    }
}

enum status programs_list(struct request *r)
{
    return answer_list(r, PROGRAMS_PER_SESSION_MAX, sizeof(struct program_info), add_programs);
}

enum status programs_get(struct request *r, struct session *s)
{
    struct program *p;
    enum status     st = program_borrow(s, r->params[1], &p, &r->problem);

    if (st)
        return st;
    st = answer_program(r, p, 200);
    program_return(p);
    return st;
}

enum status programs_delete(struct request *r, struct session *s)
{
    enum status st = program_delete(s, r->params[1], &r->problem);

    return st ? st : reply_empty(&r->reply, 204);
}
