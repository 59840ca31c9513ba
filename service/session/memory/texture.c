/* Textures: by id, as buffers are. Each has its texels as a buffer, which is named "<texture>.texels" wherever a buffer can stand, so that
 * everything that reads and writes buffers does it. Kernels take "<texture>.tex" and "<texture>.surf", two numbers that the device gave. */
#include "base/threads/held.h"
#include "session/memory/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEPARATOR = '.' }; /* no id has it, and no path needs to escape it; a variable's name has ':' before it */

static_assert(CLIENT_ID_CHARS_MAX + sizeof ".texels" <= ID_BYTES, "the id of a texture's texels is an id");

static enum status texture_not_found(struct problem *why)
{
    return problem_set(why, STATUS_TEXTURE_NOT_FOUND, "the session has no texture with this id");
}

/* ---- by id ---- */

static struct buffer *find_texture(const struct worker_session *c, struct span id)
{
    struct buffer *b = (struct buffer *)table_get(&c->textures, id);

    assert(held(&c->session->lock));
    return b && b->ready ? b : NULL;
}

/* "t.texels" in two. False: there is no separator. */
static bool split(struct span name, struct span *id, struct span *part)
{
    const char *at = name.bytes ? memchr(name.data, SEPARATOR, name.bytes) : NULL;

    if (!at)
        return false;
    *id = (struct span){name.data, (size_t)(at - name.data)};
    *part = span_from(name, id->bytes + 1);
    return true;
}

bool texture_is_name(struct span name)
{
    struct span id, part;

    return split(name, &id, &part);
}

struct buffer *texture_texels(const struct worker_session *c, struct span name)
{
    struct span id, part;

    return split(name, &id, &part) && span_is(part, "texels") ? find_texture(c, id) : NULL;
}

bool texture_where(const struct worker_session *c, struct span name, uint64_t *number)
{
    struct span          id, part;
    const struct buffer *b = split(name, &id, &part) ? find_texture(c, id) : NULL;

    if (!b || (!span_is(part, "tex") && !span_is(part, "surf")))
        return false;
    *number = span_is(part, "tex") ? b->texture->number : b->texture->surface;
    return *number != 0;
}

bool texture_lies_in_order(const struct buffer *b)
{
    return !b->texture || (b->texture->of && !b->texture->desc.view);
}

void texels_id(const char *texture, char id[ID_BYTES])
{
    int n = snprintf(id, ID_BYTES, "%.*s%ctexels", CLIENT_ID_CHARS_MAX, texture, SEPARATOR);

    assert(n > 0 && n < ID_BYTES);
}

enum status texels_id_of(struct session *s, struct span texture, char id[ID_BYTES], struct problem *why)
{
    const struct buffer *b;
    enum status          st;

    pthread_mutex_lock(&s->lock);
    st = session_usable_locked(s, why);
    b = st ? NULL : find_texture(s->worker_session, texture);
    if (b)
        texels_id(b->entry.id, id);
    else if (!st)
        st = texture_not_found(why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* The id of the memory that it reads; "": it has its own. */
static void memory_id(const struct buffer *b, char id[ID_BYTES])
{
    const struct buffer *of = b->texture->of;

    if (of && of->texture)
        texels_id(of->entry.id, id);
    else
        memcpy(id, of ? of->entry.id : "", of ? ID_BYTES : 1);
}

static void describe_texture(const struct buffer *b, struct texture_info *out)
{
    memcpy(out->id, b->entry.id, sizeof out->id);
    out->desc = b->texture->desc;
    out->bytes = b->bytes;
    out->offset = b->texture->offset;
    out->created_wall_ns = b->created_wall_ns;
    out->number = b->texture->number;
    out->surface = b->texture->surface;
    memory_id(b, out->buffer);
}

enum status texture_info_of(struct session *s, struct span id, struct texture_info *out, struct problem *why)
{
    const struct buffer *b;
    enum status          st;

    pthread_mutex_lock(&s->lock);
    st = session_usable_locked(s, why);
    b = st ? NULL : find_texture(s->worker_session, id);
    if (b)
        describe_texture(b, out);
    else if (!st)
        st = texture_not_found(why);
    pthread_mutex_unlock(&s->lock);
    return st;
}

unsigned texture_list(struct session *s, struct page *page, struct texture_info *items)
{
    struct entry *const *at;
    unsigned             n;

    pthread_mutex_lock(&s->lock);
    n = table_page(s->worker_session ? &s->worker_session->textures : NULL, page, &at);
    for (unsigned i = 0; i < n; i++)
        describe_texture((struct buffer *)at[i], &items[i]);
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---- making ---- */

/* A view has the shape of the texture whose texels it reads, which has memory of its own. */
static enum status check_view(const struct texture_desc *view, const struct texture *of, struct problem *why)
{
    if (of->of)
        return problem_field(why, STATUS_INVALID_FIELD, "/buffer", "value", "that texture reads other memory itself: name that memory");
    if (!texture_same_shape(view, &of->desc))
        return problem_field(why, STATUS_INVALID_FIELD, "/buffer", "value",
                             "expected the dimension, format, channels, extent and layers of the texture whose texels it reads");
    if (view->surface && !of->desc.surface)
        return problem_field(why, STATUS_INVALID_FIELD, "/surface", "value", "the texture whose texels it reads is no surface");
    return STATUS_OK;
}

/* With session.lock held: the memory that it reads is there, fits, and stays. */
static enum status hold_buffer(struct worker_session *c, struct buffer *b, struct span id, struct problem *why)
{
    bool           view = b->texture->desc.view;
    struct buffer *of = view ? texture_texels(c, id) : (struct buffer *)table_get(&c->buffers, id);
    enum status    st;

    assert(held(&c->session->lock));
    if (!of || !of->ready)
        return problem_field(why, STATUS_BUFFER_NOT_FOUND, "/buffer", "not_found", "the session has no %s with this id%s",
                             view ? "texels" : "buffer", view ? "" : " of its own");
    st = view ? check_view(&b->texture->desc, of->texture, why) : STATUS_OK;
    if (st)
        return st;
    if (b->texture->offset > of->bytes || b->bytes > of->bytes - b->texture->offset)
        return problem_field(why, STATUS_INVALID_FIELD, "/buffer", "range",
                             "%" PRIu64 " bytes at offset %" PRIu64 " are outside the buffer of %" PRIu64 " bytes", b->bytes,
                             b->texture->offset, of->bytes);
    of->refs++;
    of->textures++;
    b->texture->of = of;
    b->texture->desc.address = of->address + b->texture->offset;
    return STATUS_OK;
}

static void drop_hold(struct buffer *b)
{
    struct buffer *of = b->texture->of;

    b->texture->of = NULL;
    if (!of)
        return;
    of->textures--;
    buffer_unref(of);
}

static bool is_same(const struct buffer *a, const struct buffer *b, struct span buffer)
{
    struct texture_desc left = a->texture->desc, right = b->texture->desc;
    char                memory[ID_BYTES];

    memory_id(a, memory);
    left.address = right.address = 0;
    return memcmp(&left, &right, sizeof left) == 0 && a->texture->offset == b->texture->offset && span_equal(span_of(memory), buffer);
}

/* With session.lock held: quota and a place in the table for b, which is not ready yet; or the one that exists. */
static enum status place_texture(struct worker_session *c, struct buffer *b, struct span buffer, struct texture_info *out, bool *created,
                                 struct problem *why)
{
    const struct buffer *known = (struct buffer *)table_get(&c->textures, span_of(b->entry.id));
    enum status          st;

    assert(held(&c->session->lock));
    *created = !known;
    if (known && !known->ready)
        return problem_set(why, STATUS_BUFFER_BUSY, "a texture with this id is being created or deleted");
    if (known && !is_same(known, b, buffer))
        return problem_set(why, STATUS_SPEC_CONFLICT, "a texture with this id exists with other properties; delete it first");
    if (known) {
        describe_texture(known, out);
        return STATUS_OK;
    }
    if (c->textures.count >= TEXTURES_PER_SESSION_MAX)
        return problem_limit(why, STATUS_QUOTA_EXCEEDED, "textures", TEXTURES_PER_SESSION_MAX, c->textures.count, 1);
    st = buffer.bytes ? hold_buffer(c, b, buffer, why) : STATUS_OK;
    if (st)
        return st;
    st = quota_reserve(c, b->charged, why);
    if (!st && table_put(&c->textures, &b->entry)) {
        quota_release(c, b->charged);
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a texture");
    }
    if (st)
        drop_hold(b);
    else
        b->number = ++c->session->buffers_made;
    return st;
}

void texture_unplace(struct worker_session *c, struct buffer *b)
{
    table_remove(&c->textures, &b->entry);
    quota_release(c, b->charged);
    drop_hold(b);
    buffer_unref(b);
}

static enum status ask_worker(struct worker_session *c, void *what, uint64_t deadline_ns, struct problem *why)
{
    struct buffer                  *b = what;
    struct msg_texture_create_reply got = {0};
    enum status st = worker_texture_create(c->worker, &(struct msg_texture_create){b->texture->desc}, &got, deadline_ns, why);

    b->address = got.address;
    b->texture->number = got.texture;
    b->texture->surface = got.surface;
    return st;
}

static enum status allocate_texture(struct worker_session *c, struct buffer *b, struct texture_info *out, struct problem *why)
{
    enum status st = memory_allocate_by(c, b->charged, ask_worker, b, why);

    pthread_mutex_lock(&c->session->lock);
    if (st) {
        texture_unplace(c, b);
    } else {
        b->ready = true;
        pending_free_reused(c, b->charged);
        describe_texture(b, out);
    }
    pthread_mutex_unlock(&c->session->lock);
    return st;
}

/* Of linear memory the last row ends with its last texel. */
static uint64_t bytes_of(const struct texture_desc *t)
{
    uint64_t row = (uint64_t)t->extent[0] * texture_texel_bytes(t);

    return texture_bytes(t) - (texture_row_bytes(t) - row);
}

static enum status check_spec(const struct texture_spec *spec, struct problem *why)
{
    struct texture_desc t = spec->desc;

    t.address = spec->buffer.bytes ? TEXTURE_OFFSET_ALIGN : 0; /* not known yet */
    t.view = texture_is_name(spec->buffer);
    if (t.view && spec->offset)
        return problem_field(why, STATUS_INVALID_FIELD, "/offset", "value", "a texture reads all texels of another one: leave it out");
    if (spec->offset % TEXTURE_OFFSET_ALIGN || (spec->offset && !spec->buffer.bytes))
        return problem_field(why, STATUS_INVALID_FIELD, "/offset", "alignment", "must be a multiple of %d bytes, in a buffer",
                             TEXTURE_OFFSET_ALIGN);
    return texture_check(&t, why);
}

static enum status make_texture(const struct session *s, struct span id, const struct texture_spec *spec, struct buffer **out,
                                struct problem *why)
{
    struct buffer *b;
    enum status    st = check_spec(spec, why);

    if (st)
        return st;
    b = calloc(1, sizeof *b);
    if (b)
        b->texture = calloc(1, sizeof *b->texture);
    if (!b || !b->texture) {
        free(b);
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for a texture");
    }
    b->texture->desc = spec->desc;
    b->texture->desc.view = texture_is_name(spec->buffer);
    b->texture->offset = spec->offset;
    st = buffer_init(b, bytes_of(&spec->desc), 1, why);
    if (!st && id.bytes)
        st = session_name_object(s, &b->entry, id, "b_", why);
    b->charged = spec->buffer.bytes ? 0 : b->bytes;
    if (st)
        buffer_unref(b);
    else
        *out = b;
    return st;
}

enum status texture_create(struct session *s, struct span id, const struct texture_spec *spec, struct texture_info *out, bool *created,
                           struct problem *why)
{
    struct buffer         *b = NULL;
    struct worker_session *c;
    enum status            st = worker_session_enter_to_change(s, &c, why);

    if (st)
        return st;
    st = make_texture(s, id, spec, &b, why);
    if (!st) {
        pthread_mutex_lock(&s->lock);
        st = place_texture(c, b, spec->buffer, out, created, why);
        if (st || !*created)
            buffer_unref(b);
        pthread_mutex_unlock(&s->lock);
        if (!st && *created)
            st = allocate_texture(c, b, out, why);
    }
    return worker_session_leave_with(c, st, why);
}

/* ---- ending ---- */

/* Removes the texture from look-ups; its id stays in use until it is freed. With session.lock held. */
static enum status detach_texture(struct worker_session *c, struct span id, struct buffer **out, struct problem *why)
{
    struct buffer *b = find_texture(c, id);

    if (!b)
        return texture_not_found(why);
    if (b->pins)
        return problem_set(why, STATUS_BUFFER_BUSY, "the texture is being read, written or copied");
    if (b->textures)
        return problem_set(why, STATUS_BUFFER_BUSY, "%u of the session's textures read its texels; delete them first", b->textures);
    b->ready = false;
    c->names_ended++;
    *out = b;
    return STATUS_OK;
}

enum status texture_delete(struct session *s, struct span id, struct problem *why)
{
    struct buffer         *b = NULL;
    struct worker_session *c;
    enum status            st = worker_session_enter_to_change(s, &c, why);

    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    st = detach_texture(c, id, &b, why);
    pthread_mutex_unlock(&s->lock);
    if (!st)
        st = buffer_release(c, b, why);
    return worker_session_leave_with(c, st, why);
}

void texture_drop_all(struct worker_session *c)
{
    struct entry *e;

    assert(held(&c->session->lock));
    while ((e = table_pop(&c->textures)) != NULL) {
        drop_hold((struct buffer *)e);
        buffer_unref((struct buffer *)e);
    }
}
