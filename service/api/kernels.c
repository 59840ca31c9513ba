/* Lists and describes the built-in kernels. */
#include "kernels/kernels.h"

#include "api/call.h"
#include "api/decode/launch_json.h"
#include "api/endpoints.h"

static const char *const access_names[] = {
    [BUILTIN_IN] = "read", [BUILTIN_OUT] = "write", [BUILTIN_INOUT] = "read_write", [BUILTIN_VALUE] = "value"};

static const char *const rule_texts[] = {
    [BUILTIN_FLAT] = "each thread processes vectors of 16 bytes; the blocks cover all the work",
    [BUILTIN_SHARES] = "each thread processes vectors of 16 bytes, each block an equal share; a few blocks per multiprocessor, the last of "
                       "which combines the results",
    [BUILTIN_ROWS] = "one block per row; its width depends on the row",
    [BUILTIN_AXIS] = "last axis: one warp per result if the axis is short, one block if it is long; other axes: one block per 32 or more "
                     "neighbouring results",
    [BUILTIN_TILES] = "one block per tile of the result",
    [BUILTIN_POOL] = "a few blocks per multiprocessor share the tiles of the result",
    [BUILTIN_WHOLE] = "cooperative: as many blocks as can run at once; they wait for each other",
};

static void add_dtypes(struct json_writer *w, uint32_t dtypes)
{
    const char *name;

    json_open_array(w, "dtypes");
    for (unsigned i = 0; (name = builtin_dtype_name(i)) != NULL; i++)
        if (dtypes >> i & 1)
            json_add_text(w, NULL, name);
    json_close_array(w);
}

/* The first engine that the device has is the default. */
static void add_engines(struct json_writer *w, const struct builtin *k)
{
    uint32_t             dtypes;
    enum builtin_library library = builtin_library_of(k, 0, &dtypes);

    json_open_array(w, "engines");
    if (library)
        json_add_text(w, NULL, engine_name(true));
    json_add_text(w, NULL, engine_name(false));
    json_close_array(w);
    json_open_array(w, "libraries");
    for (unsigned nth = 0; (library = builtin_library_of(k, nth, &dtypes)) != BUILTIN_LIBRARY_NONE; nth++) {
        json_open_object(w, NULL);
        json_add_text(w, "name", builtin_library_name(library));
        add_dtypes(w, dtypes);
        json_close_object(w);
    }
    json_close_array(w);
}

static void add_param(struct json_writer *w, const struct builtin_param *p)
{
    bool whole = p->access == BUILTIN_VALUE && p->type >= BUILTIN_DTYPE_i8 && p->type < BUILTIN_DTYPES;

    json_open_object(w, NULL);
    json_add_text(w, "name", p->name);
    json_add_text(w, "access", access_names[p->access]);
    json_add_text(w, "type", builtin_type_name(p));
    if (p->access != BUILTIN_VALUE)
        json_add_text(w, "elements", p->elements);
    if (whole && p->least)
        json_add_u64(w, "minimum", p->least);
    if (whole && p->most != UINT64_MAX)
        json_add_u64(w, "maximum", p->most);
    json_add_text(w, "meaning", p->meaning);
    json_close_object(w);
}

static void add_members(struct json_writer *w, const struct builtin *k)
{
    json_add_text(w, "name", k->name);
    json_add_text(w, "family", k->family);
    json_add_text(w, "summary", k->summary);
    add_dtypes(w, k->dtypes);
    json_open_array(w, "params");
    for (unsigned i = 0; i < k->params_count; i++)
        add_param(w, &k->params[i]);
    json_close_array(w);
    add_engines(w, k);
    json_add_text(w, "shape", rule_texts[k->shape.rule]);
    json_add_text_or_null(w, "scratch_bytes", k->shape.scratch);
}

/* In the order of their rows; a cursor is a name. */
static void add_kernels(struct list *l)
{
    const struct builtin *k;
    unsigned              i = 0, sent = 0;

    while (l->page.cursor.bytes && (k = builtin_at(i)) != NULL) {
        i++;
        if (span_is(l->page.cursor, k->name))
            break;
    }
    for (; sent < l->page.limit && (k = builtin_at(i)) != NULL; i++, sent++) {
        json_open_object(l->w, NULL);
        add_members(l->w, k);
        json_close_object(l->w);
    }
    if (sent && builtin_at(i))
        span_copy(span_of(builtin_at(i - 1)->name), l->page.next, sizeof l->page.next);
}

enum status kernels_list(struct request *r)
{
    return answer_list(r, 0, 0, add_kernels);
}

/* The headers besides common.cuh that the source includes. */
static void add_headers(struct json_writer *w, struct span source)
{
    const struct builtin_source *header;

    json_open_object(w, "headers");
    for (unsigned i = 0; (header = builtin_header_at(i)) != NULL; i++)
        if (header != builtin_common_source() && memmem(source.data, source.bytes, header->name, strlen(header->name)))
            json_add_string(w, header->name, header->text);
    json_close_object(w);
}

enum status kernels_get(struct request *r)
{
    const struct builtin *k = builtin_find(r->params[0]);
    struct answer         a;

    if (!k)
        return problem_set(&r->problem, STATUS_KERNEL_NOT_FOUND, "unknown built-in kernel; GET /v1/kernels lists them");
    answer_begin(&a);
    add_members(&a.w, k);
    json_add_text(&a.w, "notes", builtin_source_of(k)->notes);
    json_add_string(&a.w, "source", builtin_source_of(k)->text);
    json_add_string(&a.w, "common", builtin_common_source()->text);
    add_headers(&a.w, builtin_source_of(k)->text);
    return answer_end(&a, r, 200);
}
