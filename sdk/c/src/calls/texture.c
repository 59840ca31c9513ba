/* Textures: made, opened and freed. Their handles are those of buffers, named "<texture>.texels". */
#include "gpurest/texture.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "code/args.h"
#include "session/op.h"
#include "session/session.h"

static const char texels[] = ".texels";

static unsigned axes_of(const char *dimension)
{
    return dimension[0] == '3' ? 3 : dimension[0] == '2' ? 2 : 1;
}

static void write_words(struct buf *b, const gpurest_texture_desc *d, unsigned axes)
{
    json_open(b, "addressing", '[');
    for (unsigned i = 0; i < axes; i++)
        json_string(b, NULL, d->addressing[i] ? d->addressing[i] : "clamp");
    json_close(b, ']');
    if (d->filter)
        json_string(b, "filter", d->filter);
    if (d->read)
        json_string(b, "read", d->read);
    if (d->normalized_coordinates)
        json_bool(b, "normalized_coordinates", true);
    if (d->surface)
        json_bool(b, "surface", true);
}

static void write_memory(struct buf *b, const gpurest_texture_desc *d, const char *buffer)
{
    if (!buffer[0])
        return;
    json_string(b, "buffer", buffer);
    json_u64(b, "offset", d->offset);
    if (d->pitch)
        json_u64(b, "pitch", d->pitch);
}

static void write_desc(struct buf *b, const gpurest_texture_desc *d, const char *buffer)
{
    const char *dimension = d->dimension ? d->dimension : "2d";
    unsigned    axes = axes_of(dimension);

    json_open(b, NULL, '{');
    json_string(b, "dimension", dimension);
    json_string(b, "format", d->format ? d->format : "f32");
    json_u64(b, "channels", d->channels);
    json_open(b, "extent", '[');
    for (unsigned i = 0; i < axes; i++)
        json_u64(b, NULL, d->extent[i]);
    json_close(b, ']');
    json_u64(b, "layers", d->layers);
    write_words(b, d, axes);
    write_memory(b, d, buffer);
    json_close(b, '}');
}

static gpurest_status take_texture(gpurest_session *s, const char *name, const struct exchange *x, gpurest_buffer *out)
{
    struct json   *answer = json_parse(x->body.data, x->body.bytes);
    char           handle[NAME_BYTES];
    uint64_t       bytes = 0, object = json_integer_or(json_member(answer, "object"), 0);
    uint64_t       surface = json_integer_or(json_member(answer, "surface_object"), 0);
    gpurest_status st = GPUREST_OK;

    if (!json_integer(json_member(answer, "size"), &bytes))
        st = fail(GPUREST_E_PROTO, "the service may be older than this library", "the description of the texture has no size");
    json_destroy(answer);
    if (st)
        return st;
    snprintf(handle, sizeof handle, "%.*s%s", (int)(sizeof handle - sizeof texels), name, texels);
    st = session_add_buffer(s, handle, bytes, NULL, out);
    if (!st)
        session_set_objects(s, *out, object, surface);
    return st;
}

static gpurest_status not_in_batch(gpurest_session *s)
{
    return session_batch(s) ? fail_invalid("a batch makes and frees no textures; do it before or after") : GPUREST_OK;
}

static gpurest_status buffer_named(gpurest_session *s, gpurest_buffer buffer, char name[NAME_BYTES])
{
    struct buffer_entry e;
    gpurest_status      st = buffer.id ? session_buffer(s, buffer, NULL, &e) : GPUREST_OK;

    snprintf(name, NAME_BYTES, "%s", buffer.id && !st ? e.name : "");
    return st;
}

static gpurest_status create(gpurest_session *s, gpurest_buffer *out, const gpurest_texture_desc *d)
{
    char            name[NAME_BYTES], buffer[NAME_BYTES];
    struct path     path;
    struct exchange x;
    struct buf      body;
    gpurest_status  st = buffer_named(s, d->buffer, buffer);

    if (st)
        return st;
    lane_drain(s);
    session_name(s, 't', name);
    path = session_path(s, "/textures/%s", name);
    buf_init(&body, REQUEST_HEAD_BYTES_MAX);
    write_desc(&body, d, buffer);
    exchange_init(&x, "PUT", path.text);
    st = body.failed ? fail_memory() : session_json(s, &x, buf_text(&body));
    if (!st)
        st = take_texture(s, name, &x, out);
    exchange_finish(&x);
    buf_finish(&body);
    return st;
}

gpurest_status gpurest_texture_create(gpurest_session *s, gpurest_buffer *out, const gpurest_texture_desc *desc)
{
    gpurest_texture_desc d = GPUREST_TEXTURE_DESC_INIT;
    gpurest_buffer       made;
    gpurest_status       st = session_check(s);

    if (!st && (!out || !desc || !struct_copy_in(&d, sizeof d, desc)))
        st = fail_invalid("out or desc is NULL, or desc.struct_size is not set: start from the _INIT macro");
    if (!st)
        st = not_in_batch(s);
    if (!st)
        st = create(s, &made, &d);
    if (!st)
        *out = made;
    return st;
}

gpurest_status gpurest_texture_open(gpurest_session *s, gpurest_buffer *out, const char *name)
{
    struct path     path;
    struct exchange x;
    gpurest_status  st = session_enter(s);

    if (st)
        return st;
    if (!out || !name || !name_valid(name) || strlen(name) + sizeof texels > NAME_BYTES)
        return fail_invalid("out is NULL, or the name is not a valid name of a texture");
    path = session_path(s, "/textures/%s", name);
    exchange_init(&x, "GET", path.text);
    st = session_perform(s, &x);
    if (!st)
        st = take_texture(s, name, &x, out);
    exchange_finish(&x);
    return st;
}

gpurest_status gpurest_texture_free(gpurest_session *s, gpurest_buffer texture)
{
    struct buffer_entry e;
    char                name[NAME_BYTES];
    struct path         path;
    gpurest_status      st = session_check(s);

    if (!st)
        st = not_in_batch(s);
    if (!st)
        st = session_buffer(s, texture, NULL, &e);
    if (!st && !args_texture(&e, name))
        st = fail_invalid("the handle is no texture's; gpurest_free frees buffers");
    if (st)
        return st;
    lane_drain(s);
    path = session_path(s, "/textures/%s", name);
    return session_free_buffer(s, texture, path.text);
}
