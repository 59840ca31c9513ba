/* Modules: compile and load, look at, take their code, unload. */
#include "api/modules.h"

#include <stdio.h>

#include "api/endpoints.h"
#include "http/message/precondition.h"

#define PTX_TYPE    "application/vnd.gpurest.ptx"
#define CUBIN_TYPE  "application/vnd.gpurest.cubin"
#define FATBIN_TYPE "application/vnd.gpurest.fatbin"
#define IMAGES_TYPE "application/vnd.gpurest.images"
#define GLSL_TYPE   "text/x-glsl"
#define SPIRV_TYPE  "application/spirv"

enum { SHA_ETAG_BYTES = 96 };

/* ---- what came ---- */

static bool is_type(const struct request *r, const char *type)
{
    return span_equal_nocase(request_media_type(r), span_of(type));
}

static bool is_binary(const struct request *r)
{
    return is_type(r, CUBIN_TYPE) || is_type(r, FATBIN_TYPE);
}

static enum status refuse_binary(struct request *r)
{
    return problem_set(&r->problem, STATUS_FEATURE_DISABLED, "binary images are not accepted; send source or PTX");
}

enum status modules_create_begin(struct request *r)
{
    if (is_type(r, "text/x-cuda") || is_type(r, "application/json") || is_type(r, PTX_TYPE) || is_type(r, IMAGES_TYPE) ||
        is_type(r, GLSL_TYPE) || is_type(r, SPIRV_TYPE))
        return STATUS_OK;
    if (is_binary(r) && app_of(r)->config->allow_binary_images)
        return STATUS_OK;
    if (is_binary(r))
        return refuse_binary(r);
    return problem_set(&r->problem, STATUS_UNSUPPORTED_MEDIA_TYPE,
                       "the Content-Type of a module must be text/x-cuda, " GLSL_TYPE ", " SPIRV_TYPE ", " IMAGES_TYPE
                       ", application/json or " PTX_TYPE);
}

/* Checked. The spans in *spec borrow from the request. */
static enum status decode(struct request *r, struct module_spec *spec)
{
    const struct json *root;
    enum status        st;

    spec->kind = is_type(r, PTX_TYPE)      ? IMAGE_PTX
                 : is_binary(r)            ? IMAGE_BINARY
                 : is_type(r, IMAGES_TYPE) ? IMAGE_LINKED
                 : is_type(r, GLSL_TYPE)   ? IMAGE_GLSL
                 : is_type(r, SPIRV_TYPE)  ? IMAGE_SPIRV
                                           : IMAGE_CUDA;
    spec->source = r->body;
    if (!is_type(r, "application/json")) {
        st = module_spec_check(spec, &r->arena, &r->problem);
        return !st && spec->binary && !app_of(r)->config->allow_binary_images ? refuse_binary(r) : st;
    }
    st = body_parse(r, &root);
    return st ? st : module_decode(root, "", request_prefer(r).lenient, &r->arena, spec, &r->problem);
}

/* ---- what goes ---- */

static enum status answer_module(struct request *r, const struct module *m, unsigned http_status)
{
    struct module_view v;
    struct answer      a;

    module_view_of(m, &v);
    if (http_status == 201)
        reply_header(&r->reply, "Location", "/v1/sessions/%.*s/modules/%s", SPAN_ARG(sid_of(r)), v.id);
    answer_begin(&a);
    module_members(&a.w, r, &v, true);
    return answer_end(&a, r, http_status);
}

/* The path has no id when the service is to choose one. */
static enum status create_in(struct request *r, struct session *s)
{
    struct module_spec spec = {.id = r->params[1]};
    struct module     *m;
    bool               created = false;
    enum status        st = decode(r, &spec);

    if (!st)
        st = module_create(s, &spec, &r->arena, &m, &created, &r->problem);
    if (st)
        return st;
    st = answer_module(r, m, created ? 201 : 200);
    module_return(s, m);
    return st;
}

enum status modules_create(struct request *r)
{
    return on_session(r, create_in);
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
    return with_module(r, answer_ok);
}

static enum status answer_log(struct request *r, const struct module *m)
{
    struct module_view v;

    module_view_of(m, &v);
    return reply_text(&r->reply, 200, "text/plain; charset=utf-8", v.log);
}

enum status modules_log(struct request *r)
{
    return with_module(r, answer_log);
}

/* Of the forms that a module's code has; all but PTX are what the device loads. */
static const struct code_format {
    const char *name, *type, *title;
    bool        shader; /* of devices that take SPIR-V alone */
} code_formats[] = {{"ptx", PTX_TYPE, "PTX", false}, {"cubin", CUBIN_TYPE, "cubin", false}, {"spirv", SPIRV_TYPE, "SPIR-V", true}};

static const struct code_format *find_format(struct span name)
{
    for (size_t i = 0; i < COUNT(code_formats); i++)
        if (span_is(name, code_formats[i].name))
            return &code_formats[i];
    return NULL;
}

/* The hash names what was loaded; the format tells its representations apart. */
static enum status answer_code(struct request *r, const struct module *m)
{
    const struct code_format *f;
    struct module_view        v;
    struct span               format = SPAN_LITERAL("ptx"), code;
    bool                      shader = image_is_shader(module_spec_of(m)->kind);
    char                      etag[SHA_ETAG_BYTES];

    if (shader)
        format = SPAN_LITERAL("spirv");
    request_query(r, "format", &format);
    f = find_format(format);
    if (!f)
        return problem_field(&r->problem, STATUS_INVALID_FIELD, "format", "value", "format must be ptx, cubin or spirv");
    module_view_of(m, &v);
    code = f->shader != shader ? (struct span){0} : f == code_formats ? v.ptx : v.cubin;
    if (code.bytes == 0)
        return problem_set(&r->problem, STATUS_NOT_FOUND, "the module has no %s", f->title);
    snprintf(etag, sizeof etag, "\"%.80s-%s\"", v.code_hash, f->name);
    reply_header_text(&r->reply, "ETag", etag);
    if (precondition_check((struct span){0}, request_header(r, "If-None-Match"), span_of(etag), true) == PRECONDITION_NOT_MODIFIED)
        return reply_empty(&r->reply, 304);
    return reply_text(&r->reply, 200, f->type, code);
}

enum status modules_code(struct request *r)
{
    return with_module(r, answer_code);
}

enum status modules_delete(struct request *r, struct session *s)
{
    enum status st = module_delete(s, r->params[1], &r->problem);

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

static void add_modules(struct list *l)
{
    char(*ids)[ID_BYTES] = l->items;
    unsigned n = module_list(l->session, &l->page, ids);

    for (unsigned i = 0; i < n; i++)
        add_item(l->w, l->request, l->session, ids[i]);
}

enum status modules_list(struct request *r)
{
    return answer_list(r, 0, ID_BYTES, add_modules);
}
