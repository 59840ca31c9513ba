/* Textures: make, list, look at, free. Their texels: api/memory/data.c. */
#include "api/memory/textures.h"

#include "api/endpoints.h"

#include <stdio.h>

struct texture_request {
    struct span        dimension, format, filter, read, buffer;
    const struct json *extent, *addressing;
    uint32_t           channels, layers, mip_levels;
    bool               normalized_coordinates, surface;
    uint64_t           offset, pitch;
    bool               has_normalized;
};
static const struct json_field create_fields[] = {
    JSON_FIELD(FIELD_STRING, struct texture_request, dimension, true, ID_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct texture_request, format, true, ID_BYTES - 1),
    JSON_FIELD(FIELD_ANY, struct texture_request, extent, true, 0),
    JSON_FIELD(FIELD_U32, struct texture_request, channels, false, UINT32_MAX),
    JSON_FIELD(FIELD_U32, struct texture_request, layers, false, UINT32_MAX),
    JSON_FIELD(FIELD_U32, struct texture_request, mip_levels, false, UINT32_MAX),
    JSON_FIELD(FIELD_ANY, struct texture_request, addressing, false, 0),
    JSON_FIELD(FIELD_STRING, struct texture_request, filter, false, ID_BYTES - 1),
    JSON_FIELD(FIELD_STRING, struct texture_request, read, false, ID_BYTES - 1),
    JSON_FIELD_SEEN(FIELD_BOOL, struct texture_request, normalized_coordinates, has_normalized, 0),
    JSON_FIELD(FIELD_BOOL, struct texture_request, surface, false, 0),
    JSON_FIELD(FIELD_STRING, struct texture_request, buffer, false, ID_BYTES - 1),
    JSON_FIELD(FIELD_U64, struct texture_request, offset, false, UINT64_MAX),
    JSON_FIELD(FIELD_U64, struct texture_request, pitch, false, UINT64_MAX),
};

static enum status decode_word(enum texture_word of, struct span word, const char *pointer, uint32_t *out, struct problem *why)
{
    int    found = texture_word_find(of, word);
    char   all[160] = "";
    size_t used = 0;

    if (found >= 0) {
        *out = (uint32_t)found;
        return STATUS_OK;
    }
    for (unsigned i = 0; texture_word_at(of, i) && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", texture_word_at(of, i));
    return problem_field(why, STATUS_INVALID_FIELD, pointer, "value", "expected one of %s", all);
}

/* The axes that the dimension has, x first; the others have one texel. */
static enum status decode_extent(const struct json *v, struct texture_desc *t, struct problem *why)
{
    unsigned axes = texture_dimension_of(t)->axes, i = 0;

    t->extent[0] = t->extent[1] = t->extent[2] = 1;
    if (json_type_of(v) != JSON_ARRAY || json_count(v) != axes)
        return problem_field(why, STATUS_INVALID_FIELD, "/extent", "count",
                             "expected an array of %u sizes in texels for a texture that is %s", axes, texture_dimension_of(t)->name);
    for (const struct json *e = json_first(v); e; e = json_next(e), i++) {
        uint64_t texels;
        char     at[PROBLEM_POINTER_BYTES];

        problem_pointer(at, "/extent", i);
        if (!json_u64(e, &texels) || texels > UINT32_MAX)
            return problem_field(why, STATUS_INVALID_FIELD, at, "range", "expected a number of texels");
        t->extent[i] = (uint32_t)texels;
    }
    return STATUS_OK;
}

/* One word for all axes, or one for each coordinate. */
static enum status decode_addressing(const struct json *v, struct texture_desc *t, struct problem *why)
{
    unsigned    axes = texture_dimension_of(t)->axes, i = 0;
    enum status st = STATUS_OK;

    if (!v || json_type_of(v) == JSON_NULL)
        return STATUS_OK;
    if (json_type_of(v) == JSON_STRING) {
        st = decode_word(TEXTURE_WORD_ADDRESSING, json_text(v), "/addressing", &t->addressing[0], why);
        for (i = 1; i < axes; i++)
            t->addressing[i] = t->addressing[0];
        return st;
    }
    if (json_type_of(v) != JSON_ARRAY || json_count(v) != axes)
        return problem_field(why, STATUS_INVALID_FIELD, "/addressing", "count", "expected a word, or an array of %u words", axes);
    for (const struct json *e = json_first(v); e && !st; e = json_next(e), i++)
        st = decode_word(TEXTURE_WORD_ADDRESSING, json_text(e), "/addressing", &t->addressing[i], why);
    return st;
}

static enum status decode_words(const struct texture_request *q, struct texture_desc *t, struct problem *why)
{
    enum status st = decode_word(TEXTURE_WORD_DIMENSION, q->dimension, "/dimension", &t->dimension, why);

    if (!st)
        st = decode_word(TEXTURE_WORD_FORMAT, q->format, "/format", &t->format, why);
    if (!st && q->filter.data)
        st = decode_word(TEXTURE_WORD_FILTER, q->filter, "/filter", &t->filter, why);
    if (!st && q->read.data)
        st = decode_word(TEXTURE_WORD_READ, q->read, "/read", &t->read, why);
    return st;
}

enum status texture_decode(const struct json *body, bool lenient, struct texture_spec *out, struct problem *why)
{
    struct texture_request q = {.channels = 1, .layers = 1, .mip_levels = 1};
    struct texture_desc   *t = &out->desc;
    enum status            st;

    if (json_type_of(body) != JSON_OBJECT)
        return problem_field(why, STATUS_INVALID_FIELD, "", "type", "the body must be a JSON object");
    st = json_decode(body, create_fields, COUNT(create_fields), "", lenient, &q, why);
    if (!st && q.mip_levels != 1)
        st = problem_field(why, STATUS_INVALID_FIELD, "/mip_levels", "value", "textures have no mip levels here: leave it out, or send 1");
    if (!st)
        st = decode_words(&q, t, why);
    if (!st)
        st = decode_extent(q.extent, t, why);
    if (!st)
        st = decode_addressing(q.addressing, t, why);
    if (st)
        return st;
    t->channels = q.channels;
    t->layers = q.layers;
    t->normalized = q.has_normalized ? q.normalized_coordinates : texture_dimension_of(t)->faces > 1;
    t->surface = q.surface;
    t->pitch = q.pitch;
    out->buffer = q.buffer;
    out->offset = q.offset;
    return STATUS_OK;
}

/* ---- answers ---- */

static void add_shape(struct json_writer *w, const struct texture_desc *t)
{
    const struct texture_dimension_row *row = texture_dimension_of(t);

    json_add_text(w, "dimension", row->name);
    json_add_text(w, "format", texture_format_of(t)->name);
    json_add_u64(w, "channels", t->channels);
    json_open_array(w, "extent");
    for (unsigned i = 0; i < row->axes; i++)
        json_add_u64(w, NULL, t->extent[i]);
    json_close_array(w);
    if (row->layered)
        json_add_u64(w, "layers", t->layers);
}

static void add_sampling(struct json_writer *w, const struct texture_desc *t)
{
    json_open_array(w, "addressing");
    for (unsigned i = 0; i < texture_dimension_of(t)->axes; i++)
        json_add_text(w, NULL, texture_word_at(TEXTURE_WORD_ADDRESSING, t->addressing[i]));
    json_close_array(w);
    json_add_text(w, "filter", texture_word_at(TEXTURE_WORD_FILTER, t->filter));
    json_add_text(w, "read", texture_word_at(TEXTURE_WORD_READ, t->read));
    json_add_bool(w, "normalized_coordinates", t->normalized != 0);
    json_add_bool(w, "surface", t->surface != 0);
}

void texture_write(struct json_writer *w, const struct texture_info *i)
{
    add_shape(w, &i->desc);
    add_sampling(w, &i->desc);
    if (!i->buffer[0])
        return;
    json_add_text(w, "buffer", i->buffer);
    json_add_u64(w, "offset", i->offset);
    if (i->desc.pitch)
        json_add_u64(w, "pitch", i->desc.pitch);
}

static void add_members(struct json_writer *w, const struct texture_info *i)
{
    char texels[ID_BYTES];

    texels_id(i->id, texels);
    json_add_text(w, "id", i->id);
    add_shape(w, &i->desc);
    json_add_u64(w, "size", i->bytes);
    add_sampling(w, &i->desc);
    json_add_text(w, "texels", texels);
    json_add_u64(w, "object", i->number);
    if (i->surface)
        json_add_u64(w, "surface_object", i->surface);
    if (i->buffer[0]) {
        json_add_text(w, "buffer", i->buffer);
        json_add_u64(w, "offset", i->offset);
        json_add_u64(w, "pitch", texture_row_bytes(&i->desc));
    }
    json_add_time(w, "created_at", i->created_wall_ns);
}

static enum status answer_texture(struct request *r, const struct texture_info *i, unsigned http_status)
{
    struct answer a;

    if (http_status == 201)
        reply_header(&r->reply, "Location", "/v1/sessions/%.*s/textures/%s", SPAN_ARG(sid_of(r)), i->id);
    answer_begin(&a);
    add_members(&a.w, i);
    return answer_end(&a, r, http_status);
}

/* ---- handlers ---- */

enum status textures_create(struct request *r, struct session *s)
{
    struct texture_spec spec = {.offset = 0};
    struct texture_info info;
    bool                created = false;
    const struct json  *body;
    enum status         st = body_parse(r, &body);

    if (!st)
        st = texture_decode(body, request_prefer(r).lenient, &spec, &r->problem);
    if (!st)
        st = texture_create(s, r->params[1], &spec, &info, &created, &r->problem);
    return st ? st : answer_texture(r, &info, created ? 201 : 200);
}

enum status textures_get(struct request *r, struct session *s)
{
    struct texture_info info;
    enum status         st = texture_info_of(s, r->params[1], &info, &r->problem);

    return st ? st : answer_texture(r, &info, 200);
}

enum status textures_delete(struct request *r, struct session *s)
{
    enum status st = texture_delete(s, r->params[1], &r->problem);

    return st ? st : reply_empty(&r->reply, 204);
}

static void add_textures(struct list *l)
{
    struct texture_info *items = l->items;
    unsigned             n = texture_list(l->session, &l->page, items);

    for (unsigned i = 0; i < n; i++) {
        json_open_object(l->w, NULL);
        add_members(l->w, &items[i]);
        json_close_object(l->w);
    }
}

enum status textures_list(struct request *r)
{
    return answer_list(r, 0, sizeof(struct texture_info), add_textures);
}
