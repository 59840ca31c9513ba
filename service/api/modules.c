/* Modules: compile and load, look at, take their code, unload. */
#include "api/modules.h"

#include <stdio.h>

#include "api/endpoints.h"
#include "api/precondition.h"

#define PTX_TYPE "application/vnd.gpurest.ptx"
#define CUBIN_TYPE "application/vnd.gpurest.cubin"
#define FATBIN_TYPE "application/vnd.gpurest.fatbin"

enum { SHA_ETAG_BYTES = 96 };

/* ---- what came ---- */

static bool is_type(const struct request *r, const char *type)
{
    return span_equal_nocase(request_media_type(r), span_of(type));
}

static enum status check_type(struct request *r)
{
    if (is_type(r, "text/x-cuda") || is_type(r, "application/json") || is_type(r, PTX_TYPE))
        return STATUS_OK;
    if (is_type(r, CUBIN_TYPE) || is_type(r, FATBIN_TYPE))
        return problem_set(&r->problem, STATUS_FEATURE_DISABLED, "binary images are not taken; send source or PTX");
    return problem_set(&r->problem, STATUS_UNSUPPORTED_MEDIA_TYPE, "a module is text/x-cuda, application/json or " PTX_TYPE);
}

struct module_request {
    struct span        source;
    const struct json *options, *headers, *name_expressions;
};
static const struct json_field create_fields[] = {
    JSON_FIELD(FIELD_STRING, struct module_request, source, true, SOURCE_BODY_BYTES_MAX),
    JSON_FIELD(FIELD_ANY, struct module_request, options, false, 0),
    JSON_FIELD(FIELD_ANY, struct module_request, headers, false, 0),
    JSON_FIELD(FIELD_ANY, struct module_request, name_expressions, false, 0),
};

static enum status wrong(struct request *r, const char *pointer, const char *what, unsigned most)
{
    return problem_field(&r->problem, STATUS_INVALID_FIELD, pointer, "value", "expected %s, at most %u of them", what, most);
}

static enum status decode_texts(struct request *r, const struct json *v, const char *pointer, unsigned most, const struct span **out,
                                unsigned *count)
{
    struct span *texts;
    unsigned     n = 0;

    if (!v)
        return STATUS_OK;
    if (json_type_of(v) != JSON_ARRAY || json_count(v) > most)
        return wrong(r, pointer, "an array of strings", most);
    texts = arena_array(&r->arena, json_count(v), sizeof *texts);
    if (!texts)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "the request does not fit");
    for (const struct json *e = json_first(v); e; e = json_next(e)) {
        if (json_type_of(e) != JSON_STRING)
            return wrong(r, pointer, "an array of strings", most);
        texts[n++] = json_text(e);
    }
    *out = texts;
    *count = n;
    return STATUS_OK;
}

static enum status decode_headers(struct request *r, const struct json *v, struct module_spec *spec)
{
    struct span *names, *texts;
    unsigned     n = 0;

    if (!v)
        return STATUS_OK;
    if (json_type_of(v) != JSON_OBJECT || json_count(v) > COMPILE_HEADERS_MAX)
        return wrong(r, "/headers", "an object of strings", COMPILE_HEADERS_MAX);
    names = arena_array(&r->arena, json_count(v), sizeof *names);
    texts = arena_array(&r->arena, json_count(v), sizeof *texts);
    if (!names || !texts)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "the request does not fit");
    for (const struct json *m = json_first(v); m; m = json_next(m), n++) {
        if (json_type_of(m) != JSON_STRING)
            return wrong(r, "/headers", "an object of strings", COMPILE_HEADERS_MAX);
        names[n] = json_name(m);
        texts[n] = json_text(m);
    }
    spec->header_names = names;
    spec->header_texts = texts;
    spec->headers_count = n;
    return STATUS_OK;
}

/* The spans in *spec borrow from *doc. */
static enum status decode(struct request *r, struct module_spec *spec, struct json_document **doc)
{
    struct module_request q = {0};
    enum status           st;

    spec->kind = is_type(r, PTX_TYPE) ? IMAGE_PTX : IMAGE_CUDA;
    spec->source = r->body;
    if (!is_type(r, "application/json"))
        return r->body.bytes ? STATUS_OK : problem_set(&r->problem, STATUS_INVALID_FIELD, "the source is empty");
    st = body_decode(r, create_fields, COUNT(create_fields), &q, doc);
    if (!st)
        st = decode_texts(r, q.options, "/options", COMPILE_OPTIONS_MAX, &spec->options, &spec->options_count);
    if (!st)
        st = decode_texts(r, q.name_expressions, "/name_expressions", COMPILE_NAME_EXPRESSIONS_MAX, &spec->name_expressions,
                          &spec->name_expressions_count);
    if (!st)
        st = decode_headers(r, q.headers, spec);
    spec->source = q.source;
    return st;
}

/* ---- what goes ---- */

static enum status answer_module(struct request *r, const struct module *m, unsigned http_status)
{
    struct module_view v;
    struct answer      a;

    module_view_of(m, &v);
    if (http_status == 201)
        reply_header(&r->reply, "Location", "/v1/sessions/%.*s/modules/%s", SPAN_ARG(r->params[0]), v.id);
    answer_begin(&a);
    module_members(&a.w, r, &v, true);
    return answer_end(&a, r, http_status);
}

static enum status create_in(struct request *r, struct session *s, struct module_spec *spec)
{
    struct json_document *doc = NULL;
    struct module        *m;
    bool                  created = false;
    enum status           st = decode(r, spec, &doc);

    if (!st)
        st = module_create(s, spec, &r->arena, &m, &created, &r->problem);
    if (!st) {
        st = answer_module(r, m, created ? 201 : 200);
        module_return(s, m);
    }
    json_document_destroy(doc);
    return st;
}

static enum status create(struct request *r, struct span id)
{
    struct module_spec spec = {.id = id};
    struct session    *s;
    enum status        st = session_of(r, &s);

    if (st)
        return st;
    st = create_in(r, s, &spec);
    session_return(s);
    return st;
}

static enum status create_begin(struct request *r)
{
    enum status st = query_check(r, NULL);
    return st ? st : check_type(r);
}

enum status modules_create_begin(struct request *r)
{
    return create_begin(r);
}

enum status modules_put_begin(struct request *r)
{
    return create_begin(r);
}

enum status modules_create(struct request *r)
{
    return create(r, (struct span){0});
}

enum status modules_put(struct request *r)
{
    return create(r, r->params[1]);
}

/* Calls `answer` with the module named by the path. */
static enum status with_module(struct request *r, enum status (*answer)(struct request *r, const struct module *m))
{
    struct session *s;
    struct module  *m;
    enum status     st = session_of(r, &s);

    if (st)
        return st;
    st = module_borrow(s, r->params[1], &m, &r->problem);
    if (!st) {
        st = answer(r, m);
        module_return(s, m);
    }
    session_return(s);
    return st;
}

static enum status answer_ok(struct request *r, const struct module *m)
{
    return answer_module(r, m, 200);
}

enum status modules_get(struct request *r)
{
    enum status st = query_check(r, NULL);
    return st ? st : with_module(r, answer_ok);
}

static enum status answer_log(struct request *r, const struct module *m)
{
    struct module_view v;

    module_view_of(m, &v);
    return reply_text(&r->reply, 200, "text/plain; charset=utf-8", v.log);
}

enum status modules_log(struct request *r)
{
    enum status st = query_check(r, NULL);
    return st ? st : with_module(r, answer_log);
}

/* The hash names what was loaded; the format tells its two representations apart. */
static enum status answer_code(struct request *r, const struct module *m)
{
    struct module_view v;
    struct span        format = SPAN_LITERAL("ptx"), code;
    char               etag[SHA_ETAG_BYTES];
    bool               cubin;

    request_query(r, "format", &format);
    cubin = span_is(format, "cubin");
    if (!cubin && !span_is(format, "ptx"))
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "format", "value", "format must be ptx or cubin");
    module_view_of(m, &v);
    code = cubin ? v.cubin : v.ptx;
    if (code.bytes == 0)
        return problem_set(&r->problem, STATUS_NOT_FOUND, "the module has no %s", cubin ? "cubin" : "PTX");
    snprintf(etag, sizeof etag, "\"%.80s-%s\"", v.code_hash, cubin ? "cubin" : "ptx");
    reply_header(&r->reply, "ETag", "%s", etag);
    if (precondition_check((struct span){0}, request_header(r, "If-None-Match"), span_of(etag), true) == PRECONDITION_NOT_MODIFIED)
        return reply_empty(&r->reply, 304);
    return reply_text(&r->reply, 200, cubin ? CUBIN_TYPE : PTX_TYPE, code);
}

enum status modules_code(struct request *r)
{
    static const char *const names[] = {"format", NULL};
    enum status              st = query_check(r, names);

    return st ? st : with_module(r, answer_code);
}

enum status modules_delete(struct request *r)
{
    struct session *s;
    enum status     st = query_check(r, NULL);

    if (!st)
        st = session_of(r, &s);
    if (st)
        return st;
    st = module_delete(s, r->params[1], &r->problem);
    session_return(s);
    return st ? st : reply_empty(&r->reply, 204);
}

/* One that was deleted since its id was listed is left out. */
static void add_item(struct json_writer *w, struct request *r, struct session *s, const char *id)
{
    struct module_view v;
    struct module     *m;

    if (module_borrow(s, span_of(id), &m, NULL))
        return;
    module_view_of(m, &v);
    json_open_object(w, NULL);
    module_members(w, r, &v, false);
    json_close_object(w);
    module_return(s, m);
}

enum status modules_list(struct request *r)
{
    char(*ids)[ID_BYTES];
    struct session *s;
    struct page     page;
    struct answer   a;
    unsigned        n;
    enum status     st = page_of(r, 0, &page);

    if (st)
        return st;
    ids = arena_array(&r->arena, page.limit, sizeof *ids);
    if (!ids)
        return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "the list does not fit; ask for fewer items");
    st = session_of(r, &s);
    if (st)
        return st;
    n = module_list(s, &page, ids);
    answer_list_begin(&a);
    for (unsigned i = 0; i < n; i++)
        add_item(&a.w, r, s, ids[i]);
    session_return(s);
    return answer_list_end(&a, r, &page);
}
