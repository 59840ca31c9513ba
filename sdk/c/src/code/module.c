/* Modules: compile, load, inspect, unload. */
#include "code/module.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "session/op.h"

/* ---- kernels ---- */

static void kernel_finish(gpurest_kernel *k)
{
    free(k->name);
    free(k->mangled);
    free(k->params);
}

void module_destroy(gpurest_module *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->kernels_count; i++)
        kernel_finish(&m->kernels[i]);
    free(m->kernels);
    free(m->log);
    session_drop(m->session);
    free(m);
}

static bool take_param(const struct json *v, struct param *p)
{
    uint64_t offset, bytes;

    if (!json_integer(json_member(v, "offset"), &offset) || !json_integer(json_member(v, "size"), &bytes) || offset > PARAM_BYTES_MAX ||
        bytes > PARAM_BYTES_MAX || bytes == 0)
        return false;
    p->offset = (size_t)offset;
    p->bytes = (size_t)bytes;
    if (!json_copy(json_member(v, "type"), p->type, sizeof p->type))
        p->type[0] = '\0';
    return true;
}

static bool take_kernel(const struct json *v, gpurest_kernel *k)
{
    const struct json *params = json_member(v, "params");
    const char        *name = json_text_or(json_member(v, "name"), NULL), *mangled = json_text_or(json_member(v, "mangled"), name);
    size_t             count = json_count(params);

    if (!name || count > PARAMS_MAX)
        return false;
    k->info = (gpurest_kernel_info_t){.struct_size = sizeof k->info,
                                      .registers = (uint32_t)json_integer_or(json_member(v, "registers"), 0),
                                      .max_threads = (uint32_t)json_integer_or(json_member(v, "max_threads"), 0),
                                      .shared_bytes = json_integer_or(json_member(v, "shared_bytes"), 0),
                                      .local_bytes = json_integer_or(json_member(v, "local_bytes"), 0),
                                      .const_bytes = json_integer_or(json_member(v, "const_bytes"), 0)};
    k->name = strdup(name);
    k->mangled = strdup(mangled);
    k->params = calloc(count ? count : 1, sizeof *k->params);
    if (!k->name || !k->mangled || !k->params)
        return false;
    for (const struct json *p = json_first(params); p; p = json_next(p))
        if (!take_param(p, &k->params[k->params_count++]))
            return false;
    return true;
}

static bool take_kernels(const struct json *list, gpurest_module *m)
{
    size_t count = json_count(list);

    if (count > KERNELS_MAX)
        return false;
    m->kernels = calloc(count ? count : 1, sizeof *m->kernels);
    if (!m->kernels)
        return false;
    for (const struct json *v = json_first(list); v; v = json_next(v)) {
        gpurest_kernel *k = &m->kernels[m->kernels_count++];
        k->module = m;
        if (!take_kernel(v, k))
            return false;
    }
    return true;
}

static gpurest_status take_module(const struct exchange *x, gpurest_module *m)
{
    struct json   *d = json_parse(x->body.data, x->body.bytes);
    gpurest_status st = GPUREST_OK;

    if (!json_is_object(d) || !json_member(d, "kernels") || !take_kernels(json_member(d, "kernels"), m))
        st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to a new module has no kernels");
    m->log = strdup(json_text_or(json_member(d, "log"), ""));
    if (!st && !m->log)
        st = fail_memory();
    if (!json_copy(json_member(d, "arch"), m->arch, sizeof m->arch))
        m->arch[0] = '\0';
    m->compile_ms = json_number_or(json_member(d, "compile_ms"), 0);
    m->cached = json_true(json_member(d, "cached"));
    json_destroy(d);
    return st;
}

/* ---- compile and load ---- */

/* The library chooses the name, so the request can be retried and modules of the same source stay separate. */
static gpurest_status create_module(gpurest_session *s, gpurest_module **out, const char *type, const void *body, size_t bytes)
{
    gpurest_module *m = calloc(1, sizeof *m);
    struct piece    piece = {body, bytes};
    struct path     path;
    struct exchange x;
    gpurest_status  st;

    if (!m)
        return fail_memory();
    m->session = s;
    session_hold(s);
    session_name(s, 'm', m->id);
    path = session_path(s, "/modules/%s", m->id);
    exchange_init(&x, "PUT", path.text);
    x.content_type = type;
    x.upload = &piece;
    x.upload_count = 1;
    x.idle_ms = s->client->idle_ms > SLACK_MS ? s->client->idle_ms : SLACK_MS;
    st = session_perform(s, &x);
    if (!st)
        st = take_module(&x, m);
    exchange_finish(&x);
    if (st)
        module_destroy(m);
    else
        *out = m;
    return st;
}

void write_texts(struct buf *b, const char *name, const char *const *texts, size_t count)
{
    if (!count)
        return;
    json_open(b, name, '[');
    for (size_t i = 0; i < count; i++)
        json_string(b, NULL, texts[i]);
    json_close(b, ']');
}

void compile_spec_write(struct buf *b, const char *source, const gpurest_compile_options *o)
{
    json_open(b, NULL, '{');
    if (o->language)
        json_string(b, "language", o->language);
    json_string(b, "source", source);
    write_texts(b, "options", o->options, o->options_count);
    write_texts(b, "name_expressions", o->name_expressions, o->name_expressions_count);
    if (o->headers_count) {
        json_open(b, "headers", '{');
        for (size_t i = 0; i < o->headers_count; i++)
            json_string(b, o->headers[i].name, o->headers[i].text);
        json_close(b, '}');
    }
    json_close(b, '}');
}

bool texts_set(const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!texts || !texts[i])
            return false;
    return true;
}

gpurest_status compile_options_take(const gpurest_compile_options *theirs, gpurest_compile_options *out)
{
    gpurest_compile_options o = GPUREST_COMPILE_OPTIONS_INIT;

    if (theirs && !struct_copy_in(&o, sizeof o, theirs))
        return fail_invalid("options.struct_size is not set: start from the _INIT macro");
    if (!texts_set(o.options, o.options_count) || !texts_set(o.name_expressions, o.name_expressions_count))
        return fail_invalid("an option or a name expression is NULL");
    for (size_t i = 0; i < o.headers_count; i++)
        if (!o.headers || !o.headers[i].name || !o.headers[i].text)
            return fail_invalid("a header is NULL");
    *out = o;
    return GPUREST_OK;
}

static gpurest_status check_module(gpurest_session *s, gpurest_module **out, const void *source)
{
    gpurest_status st = session_check(s);

    if (!st && (!out || !source))
        st = fail_invalid("out, the source or the image is NULL");
    if (!st && session_batch(s))
        st = fail(GPUREST_E_UNSUPPORTED, "compile before gpurest_batch_begin", "a batch cannot compile");
    if (!st)
        lane_drain(s);
    return st;
}

gpurest_status gpurest_compile_with(gpurest_session *s, gpurest_module **out, const char *source, const gpurest_compile_options *options)
{
    gpurest_compile_options o;
    struct buf              body;
    gpurest_status          st = check_module(s, out, source);

    if (!st)
        st = compile_options_take(options, &o);
    if (st)
        return st;
    if (!o.options_count && !o.headers_count && !o.name_expressions_count && !o.language)
        return create_module(s, out, "text/x-cuda", source, strlen(source));
    buf_init(&body, SOURCE_BYTES_MAX);
    compile_spec_write(&body, source, &o);
    st = body.failed ? fail_memory() : create_module(s, out, "application/json", body.data, body.bytes);
    buf_finish(&body);
    return st;
}

gpurest_status gpurest_compile(gpurest_session *s, gpurest_module **out, const char *source, const char *const *options,
                               size_t options_count)
{
    gpurest_compile_options o = GPUREST_COMPILE_OPTIONS_INIT;

    o.options = options;
    o.options_count = options_count;
    return gpurest_compile_with(s, out, source, &o);
}

static bool has_version(const char *text, size_t bytes)
{
    static const char word[] = ".version";
    const size_t      chars = sizeof word - 1;

    for (const char *end = text + bytes, *at = text; (at = memchr(at, '.', (size_t)(end - at))); at++)
        if ((size_t)(end - at) >= chars && memcmp(at, word, chars) == 0)
            return true;
    return false;
}

static bool is_spirv(const char *image, size_t bytes)
{
    return bytes >= 4 && memcmp(image, "\x03\x02\x23\x07", 4) == 0;
}

static const char *image_type(const char *image, size_t bytes)
{
    static const unsigned char fatbin[] = {0x50, 0xed, 0x55, 0xba};

    if (bytes >= 4 && memcmp(image, "\177ELF", 4) == 0)
        return "application/vnd.gpurest.cubin";
    if (bytes >= 4 && memcmp(image, fatbin, 4) == 0)
        return "application/vnd.gpurest.fatbin";
    if (is_spirv(image, bytes))
        return "application/spirv";
    if (bytes >= 8 && memcmp(image, "\x89GLK\r\n\x1a\n", 8) == 0) /* several, to be linked */
        return "application/vnd.gpurest.images";
    return has_version(image, bytes) ? "application/vnd.gpurest.ptx" : NULL;
}

static gpurest_status load_image(gpurest_session *s, gpurest_module **out, const void *image, size_t bytes)
{
    const char *type;

    while (bytes && ((const char *)image)[bytes - 1] == '\0' && memchr(image, '\0', bytes - 1) == NULL)
        bytes--; /* PTX passed with its NUL */
    type = image_type(image, bytes);
    return type ? create_module(s, out, type, image, bytes) : fail_invalid("the image is not PTX, SPIR-V, cubin or fatbin");
}

static gpurest_status load_spirv(gpurest_session *s, gpurest_module **out, const void *image, size_t bytes, const char *const *options,
                                 size_t options_count)
{
    struct buf     body;
    gpurest_status st;

    buf_init(&body, SOURCE_BYTES_MAX);
    json_open(&body, NULL, '{');
    json_string(&body, "language", "spirv");
    json_base64(&body, "source", image, bytes);
    write_texts(&body, "options", options, options_count);
    json_close(&body, '}');
    st = body.failed ? fail_memory() : create_module(s, out, "application/json", body.data, body.bytes);
    buf_finish(&body);
    return st;
}

gpurest_status gpurest_module_load_with(gpurest_session *s, gpurest_module **out, const void *image, size_t bytes,
                                        const char *const *options, size_t options_count)
{
    gpurest_status st = check_module(s, out, image);

    if (!st && !texts_set(options, options_count))
        st = fail_invalid("an option is NULL");
    if (!st && options_count && !is_spirv(image, bytes))
        st = fail(GPUREST_E_INVAL, "load it without, or compile its source", "only SPIR-V is loaded with options");
    if (st)
        return st;
    return options_count ? load_spirv(s, out, image, bytes, options, options_count) : load_image(s, out, image, bytes);
}

gpurest_status gpurest_module_load(gpurest_session *s, gpurest_module **out, const void *image, size_t bytes)
{
    return gpurest_module_load_with(s, out, image, bytes, NULL, 0);
}

/* Best effort: the outcome is not reported. */
void gpurest_module_unload(gpurest_module *m)
{
    struct failure  before;
    struct path     path;
    struct exchange x;

    if (!m)
        return;
    failure_init(&before);
    failure_copy(&before, failure_last());
    if (!m->builtin && session_enter(m->session) == GPUREST_OK) {
        path = session_path(m->session, "/modules/%s", m->id);
        exchange_init(&x, "DELETE", path.text);
        session_perform(m->session, &x);
        exchange_finish(&x);
    }
    failure_raise(&before);
    failure_finish(&before);
    module_destroy(m);
}

/* ---- inspect ---- */

const char *gpurest_module_id(const gpurest_module *m)
{
    return m ? m->id : "";
}

const char *gpurest_module_log(const gpurest_module *m)
{
    return m ? m->log : "";
}

const char *gpurest_module_arch(const gpurest_module *m)
{
    return m ? m->arch : "";
}

double gpurest_module_compile_ms(const gpurest_module *m, int *cached_or_null)
{
    if (cached_or_null)
        *cached_or_null = m && m->cached;
    return m ? m->compile_ms : 0;
}

size_t gpurest_module_kernel_count(const gpurest_module *m)
{
    return m ? m->kernels_count : 0;
}

gpurest_status gpurest_module_code(gpurest_module *m, const char *format, void **out, size_t *out_bytes)
{
    struct path     path;
    struct exchange x;
    gpurest_status  st = m ? session_enter(m->session) : fail_invalid("the module is NULL");

    if (st)
        return st;
    if (m->builtin)
        return fail(GPUREST_E_UNSUPPORTED, "GET /v1/kernels/{name} has its source", "a built-in kernel has no code to download");
    if (!format || !name_valid(format) || !out || !out_bytes)
        return fail_invalid("format must be \"ptx\", \"cubin\" or \"spirv\", and out and out_bytes not NULL");
    path = session_path(m->session, "/modules/%s/code?format=%s", m->id, format);
    exchange_init(&x, "GET", path.text);
    st = session_perform(m->session, &x);
    if (!st) {
        *out_bytes = x.body.bytes;
        *out = buf_take(&x.body);
        st = *out ? GPUREST_OK : fail_memory();
    }
    exchange_finish(&x);
    return st;
}

/* The row of that variable in a description of the module. NULL: none. */
static const struct json *global_row(const struct json *module, const char *name)
{
    for (const struct json *v = json_first(json_member(module, "globals")); v; v = json_next(v))
        if (strcmp(json_text_or(json_member(v, "name"), ""), name) == 0 || strcmp(json_text_or(json_member(v, "mangled"), ""), name) == 0)
            return v;
    return NULL;
}

static gpurest_status open_global(gpurest_session *s, const struct json *module, const char *name, gpurest_buffer *out)
{
    const struct json *row = global_row(module, name);
    const char        *id = json_text_or(json_member(row, "buffer"), "");
    uint64_t           bytes;

    if (!row && json_member(module, "globals"))
        return fail(GPUREST_E_NOTFOUND, "extern \"C\" keeps a variable's name unmangled; static ones have no name",
                    "none of the %zu variables of the module is %.200s", json_count(json_member(module, "globals")), name);
    if (!row || !name_valid(id) || !json_integer(json_member(row, "bytes"), &bytes))
        return fail(GPUREST_E_PROTO, "the service may be older than this library", "the description of the module lacks its variables");
    if (session_add_buffer(s, id, bytes, NULL, out))
        return fail_memory();
    session_set_address(s, *out, json_integer_or(json_member(row, "address"), 0));
    return GPUREST_OK;
}

gpurest_status gpurest_module_global(gpurest_module *m, const char *name, gpurest_buffer *out)
{
    struct path     path;
    struct exchange x;
    struct json    *answer;
    gpurest_status  st = m ? session_enter(m->session) : fail_invalid("the module is NULL");

    if (!st && (!name || !out))
        st = fail_invalid("the name or out is NULL");
    if (!st && m->builtin)
        st = fail(GPUREST_E_UNSUPPORTED, NULL, "variables of built-in kernels are the service's own");
    if (st)
        return st;
    path = session_path(m->session, "/modules/%s", m->id);
    exchange_init(&x, "GET", path.text);
    st = session_perform(m->session, &x);
    if (!st) {
        answer = json_parse(x.body.data, x.body.bytes);
        st = open_global(m->session, answer, name, out);
        json_destroy(answer);
    }
    exchange_finish(&x);
    return st;
}

gpurest_status gpurest_kernel_get(gpurest_module *m, const char *name, const gpurest_kernel **out)
{
    if (!m || !name || !out)
        return fail_invalid("the module, the name or out is NULL");
    for (size_t i = 0; i < m->kernels_count; i++)
        if (strcmp(m->kernels[i].name, name) == 0 || strcmp(m->kernels[i].mangled, name) == 0) {
            *out = &m->kernels[i];
            return GPUREST_OK;
        }
    return fail(GPUREST_E_NOTFOUND, "extern \"C\" keeps a kernel's name unmangled; gpurest_kernel_at lists all",
                "none of the %zu kernels of the module is %.200s", m->kernels_count, name);
}

gpurest_status gpurest_kernel_at(gpurest_module *m, size_t index, const gpurest_kernel **out)
{
    if (!m || !out || index >= m->kernels_count)
        return fail_invalid("the module or out is NULL, or the index is out of range");
    *out = &m->kernels[index];
    return GPUREST_OK;
}

const char *gpurest_kernel_name(const gpurest_kernel *k)
{
    return k ? k->name : "";
}

size_t gpurest_kernel_param_count(const gpurest_kernel *k)
{
    return k ? k->params_count : 0;
}

gpurest_status gpurest_kernel_param(const gpurest_kernel *k, size_t index, size_t *offset, size_t *bytes)
{
    if (!k || index >= k->params_count)
        return fail_invalid("the kernel is NULL, or the index is out of range");
    if (offset)
        *offset = k->params[index].offset;
    if (bytes)
        *bytes = k->params[index].bytes;
    return GPUREST_OK;
}

const char *gpurest_kernel_param_type(const gpurest_kernel *k, size_t index)
{
    return k && index < k->params_count ? k->params[index].type : "";
}

gpurest_status gpurest_kernel_info(const gpurest_kernel *k, gpurest_kernel_info_t *out)
{
    if (!k || !out)
        return fail_invalid("the kernel or out is NULL");
    struct_copy_out(out, &k->info, sizeof k->info);
    return GPUREST_OK;
}
