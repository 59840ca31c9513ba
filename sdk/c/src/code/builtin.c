/* Built-in kernels, each as a module with one kernel. The service keeps nothing for such a module. */
#include <gpurest/builtin.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "code/module.h"
#include "session/op.h"

/* ---- types ---- */

static const struct dtype {
    const char *name, *declared; /* the PTX type */
    size_t      bytes;
    char        kind; /* real, integer, unsigned or boolean */
} dtypes[] = {
#define DTYPE(name, declared, bytes, kind) {name, declared, bytes, kind},
#include "code/dtypes.def"
#undef DTYPE
};

static const struct dtype *dtype_find(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

/* "T", "accumulator" and "real" depend on the type of the elements. */
static const struct dtype *resolve_dtype(const char *type, const struct dtype *of)
{
    if (strcmp(type, "T") == 0)
        return of;
    if (strcmp(type, "accumulator") == 0)
        return of->kind == 'r' ? of : dtype_find(of->kind == 'i' ? "i64" : "u64");
    if (strcmp(type, "real") == 0)
        return of->kind == 'r' ? of : dtype_find("f64");
    return dtype_find(type);
}

/* ---- the description ---- */

static bool take_builtin_param(const struct json *v, const struct dtype *of, size_t *offset, struct param *p)
{
    const struct dtype *t = resolve_dtype(json_text_or(json_member(v, "type"), ""), of);
    const char         *access = json_text_or(json_member(v, "access"), "");

    if (!t)
        return false;
    if (strcmp(access, "value") != 0) /* a buffer: its address */
        t = dtype_find("u64");
    p->bytes = t->bytes;
    p->offset = (*offset + t->bytes - 1) / t->bytes * t->bytes;
    *offset = p->offset + p->bytes;
    snprintf(p->type, sizeof p->type, "%s", t->declared);
    return true;
}

static bool take_builtin_params(const struct json *params, const struct dtype *of, gpurest_kernel *k)
{
    size_t count = json_count(params), offset = 0;

    if (!params || count > PARAMS_MAX)
        return false;
    k->params = calloc(count ? count : 1, sizeof *k->params);
    for (const struct json *p = json_first(params); p && k->params; p = json_next(p))
        if (!take_builtin_param(p, of, &offset, &k->params[k->params_count++]))
            return false;
    return k->params != NULL;
}

static bool list_contains(const struct json *list, const char *text)
{
    for (const struct json *v = json_first(list); v; v = json_next(v))
        if (strcmp(json_text_or(v, ""), text) == 0)
            return true;
    return false;
}

static gpurest_status take_description(const struct json *d, gpurest_module *m)
{
    const struct dtype *of = dtype_find(m->dtype);

    if (!json_is_object(d) || !json_member(d, "dtypes"))
        return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "invalid description of a built-in kernel");
    if (!of || !list_contains(json_member(d, "dtypes"), m->dtype))
        return fail(GPUREST_E_INVAL, "GET /v1/kernels lists the types of each kernel", "%.64s does not support dtype %.16s", m->id,
                    m->dtype);
    m->kernels = calloc(1, sizeof *m->kernels);
    m->log = strdup("");
    if (!m->kernels || !m->log)
        return fail_memory();
    m->kernels_count = 1;
    m->kernels[0] =
        (gpurest_kernel){.module = m, .name = strdup(m->id), .mangled = strdup(m->id), .info = {.struct_size = sizeof m->kernels[0].info}};
    if (!m->kernels[0].name || !m->kernels[0].mangled)
        return fail_memory();
    if (!take_builtin_params(json_member(d, "params"), of, &m->kernels[0]))
        return fail(GPUREST_E_PROTO, "update the library to the service's version", "the parameters of %.64s are of an unknown kind",
                    m->id);
    return GPUREST_OK;
}

static gpurest_status get_description(gpurest_session *s, gpurest_module *m)
{
    struct exchange x;
    struct json    *d;
    gpurest_status  st;
    char            path[NAME_BYTES + sizeof "/v1/kernels/"];

    snprintf(path, sizeof path, "/v1/kernels/%s", m->id);
    exchange_init(&x, "GET", path);
    st = session_perform(s, &x);
    if (!st) {
        d = json_parse(x.body.data, x.body.bytes);
        st = take_description(d, m);
        json_destroy(d);
    }
    exchange_finish(&x);
    return st;
}

/* ---- public functions ---- */

gpurest_status builtin_check(const char *name, const char *dtype, const char *engine_or_null)
{
    if (!name || !name_valid(name))
        return fail_invalid("the name of a built-in kernel is NULL or invalid");
    if (!dtype || !dtype_find(dtype))
        return fail_invalid("unknown dtype %.32s: expected an element type such as f32, i64 or bool", dtype ? dtype : "NULL");
    if (engine_or_null && strcmp(engine_or_null, "builtin") != 0 && strcmp(engine_or_null, "vendor") != 0)
        return fail_invalid("engine must be \"builtin\", \"vendor\" or NULL");
    return GPUREST_OK;
}

void builtin_write(struct buf *b, const char *name, const char *dtype, const char *engine)
{
    json_string(b, "builtin", name);
    json_string(b, "dtype", dtype);
    if (engine && engine[0])
        json_string(b, "engine", engine);
}

gpurest_status gpurest_module_builtin(gpurest_session *s, gpurest_module **out, const char *name, const char *dtype,
                                      const char *engine_or_null)
{
    gpurest_status  st = session_check(s);
    gpurest_module *m;

    if (!st)
        st = out ? builtin_check(name, dtype, engine_or_null) : fail_invalid("out is NULL");
    if (st)
        return st;
    m = calloc(1, sizeof *m);
    if (!m)
        return fail_memory();
    *m = (gpurest_module){.session = s, .builtin = true, .cached = true};
    session_hold(s);
    snprintf(m->id, sizeof m->id, "%s", name);
    snprintf(m->dtype, sizeof m->dtype, "%s", dtype);
    snprintf(m->engine, sizeof m->engine, "%s", engine_or_null ? engine_or_null : "");
    st = get_description(s, m);
    if (st)
        module_destroy(m);
    else
        *out = m;
    return st;
}
