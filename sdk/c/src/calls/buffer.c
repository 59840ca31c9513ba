/* Buffers: allocate, free, open, copy, fill. */
#include <stdio.h>

#include "base/json.h"
#include "batch/batch.h"
#include "gpurest/share.h"
#include "session/op.h"
#include "session/session.h"

static uint64_t address_in(const struct exchange *x)
{
    struct json *d = json_parse(x->body.data, x->body.bytes);
    uint64_t     address = json_integer_or(json_member(d, "address"), 0);

    json_destroy(d);
    return address;
}

/* The library chooses the name, so the request can be retried. */
static gpurest_status create_buffer(gpurest_session *s, gpurest_buffer *out, struct exchange *x, const struct piece *body, size_t bytes,
                                    const char *name)
{
    gpurest_status st;

    x->upload = body;
    x->upload_count = 1;
    st = session_perform(s, x);
    if (!st)
        st = session_add_buffer(s, name, bytes, NULL, out);
    if (!st)
        session_set_address(s, *out, address_in(x));
    return st;
}

/* `more`: further JSON members, each after a comma. */
static gpurest_status alloc_sized(gpurest_session *s, gpurest_buffer *out, size_t bytes, const char *more)
{
    char            name[NAME_BYTES], json[64];
    struct path     path;
    struct exchange x;
    gpurest_buffer  made;
    gpurest_status  st;

    lane_drain(s);
    session_name(s, 'b', name);
    path = session_path(s, "/buffers/%s", name);
    snprintf(json, sizeof json, "{\"size\":%zu%s}", bytes, more);
    exchange_init(&x, "PUT", path.text);
    x.content_type = "application/json";
    st = create_buffer(s, &made, &x, &(struct piece){json, strlen(json)}, bytes, name);
    exchange_finish(&x);
    if (!st)
        *out = made;
    return st;
}

static gpurest_status alloc_check(gpurest_session *s, const gpurest_buffer *out, size_t bytes)
{
    gpurest_status st = session_check(s);

    return st || (out && bytes) ? st : fail_invalid("out is NULL, or bytes is 0");
}

gpurest_status gpurest_alloc(gpurest_session *s, gpurest_buffer *out, size_t bytes)
{
    gpurest_status st = alloc_check(s, out, bytes);
    gpurest_batch *b = st ? NULL : session_batch(s);

    if (st || b)
        return st ? st : batch_alloc(b, out, NULL, bytes);
    return alloc_sized(s, out, bytes, "");
}

gpurest_status gpurest_alloc_shareable(gpurest_session *s, gpurest_buffer *out, size_t bytes)
{
    gpurest_status st = alloc_check(s, out, bytes);

    if (!st && session_batch(s))
        st = fail_invalid("a batch cannot allocate a shareable buffer");
    return st ? st : alloc_sized(s, out, bytes, ",\"shareable\":true");
}

/* Allocates first, so that several connections can write. */
static gpurest_status alloc_and_write(gpurest_session *s, gpurest_buffer *out, const void *src, size_t bytes)
{
    gpurest_buffer made;
    struct failure why;
    gpurest_status st = gpurest_alloc(s, &made, bytes);

    if (st)
        return st;
    st = gpurest_write(s, made, 0, src, bytes);
    if (!st) {
        *out = made;
        return GPUREST_OK;
    }
    failure_init(&why);
    failure_copy(&why, failure_last());
    gpurest_free(s, made);
    failure_raise(&why);
    failure_finish(&why);
    return st;
}

gpurest_status gpurest_alloc_from(gpurest_session *s, gpurest_buffer *out, const void *src, size_t bytes)
{
    char            name[NAME_BYTES];
    struct path     path;
    struct exchange x;
    struct progress progress;
    gpurest_buffer  made;
    gpurest_status  st = session_check(s);
    gpurest_batch  *b = st ? NULL : session_batch(s);

    if (!st && (!out || !src || bytes == 0))
        st = fail_invalid("out or src is NULL, or bytes is 0");
    if (st || b)
        return st ? st : batch_alloc(b, out, src, bytes);
    if (bytes >= BULK_BYTES_MIN)
        return alloc_and_write(s, out, src, bytes);
    lane_drain(s);
    session_name(s, 'b', name);
    path = session_path(s, "/buffers/%s", name);
    client_progress(s->client, &progress, bytes);
    exchange_init(&x, "PUT", path.text);
    x.content_type = "application/octet-stream";
    x.sending = &progress;
    st = create_buffer(s, &made, &x, &(struct piece){src, bytes}, bytes, name);
    exchange_finish(&x);
    progress_finish(&progress);
    if (!st)
        *out = made;
    return st;
}

gpurest_status gpurest_free(gpurest_session *s, gpurest_buffer buffer)
{
    struct buffer_entry e;
    struct path         path;
    gpurest_status      st = session_check(s);
    gpurest_batch      *b = st ? NULL : session_batch(s);

    if (!st)
        st = session_buffer(s, buffer, b, &e);
    if (st || b)
        return st ? st : batch_free(b, buffer, &e);
    lane_drain(s);
    path = session_path(s, "/buffers/%s", e.name);
    return session_free_buffer(s, buffer, path.text);
}

gpurest_status gpurest_buffer_open(gpurest_session *s, gpurest_buffer *out, const char *name)
{
    struct path     path;
    struct exchange x;
    struct json    *answer;
    uint64_t        bytes = 0;
    gpurest_status  st = session_enter(s);

    if (st)
        return st;
    if (!out || !name || !name_valid(name))
        return fail_invalid("out is NULL, or the name is not a valid buffer name");
    path = session_path(s, "/buffers/%s", name);
    exchange_init(&x, "GET", path.text);
    st = session_perform(s, &x);
    if (!st) {
        answer = json_parse(x.body.data, x.body.bytes);
        if (!json_integer(json_member(answer, "size"), &bytes))
            st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to %s has no size", path.text);
        json_destroy(answer);
    }
    exchange_finish(&x);
    return st ? st : session_add_buffer(s, name, bytes, NULL, out);
}

/* ---- on the device ---- */

static gpurest_status post_buffer_request(gpurest_session *s, const char *name, const char *what, struct buf *body)
{
    struct path     path = session_path(s, "/buffers/%s/%s", name, what);
    struct exchange x;
    gpurest_status  st;

    exchange_init(&x, "POST", path.text);
    st = body->failed ? fail_memory() : session_json(s, &x, buf_text(body));
    exchange_finish(&x);
    return st;
}

gpurest_status gpurest_copy(gpurest_session *s, gpurest_buffer to, size_t to_offset, gpurest_buffer from, size_t from_offset, size_t bytes,
                            gpurest_stream stream)
{
    struct buffer_entry t, f;
    char                name[NAME_BYTES];
    struct buf          body;
    gpurest_status      st = session_check(s);
    gpurest_batch      *b = st ? NULL : session_batch(s);

    if (!st)
        st = session_range(s, to, b, to_offset, bytes, &t);
    if (!st)
        st = session_range(s, from, b, from_offset, bytes, &f);
    if (!st)
        st = session_stream(s, stream, name);
    if (st || bytes == 0)
        return st;
    if (b)
        return batch_copy(b, &t, to_offset, &f, from_offset, bytes, name);
    lane_drain(s);
    buf_init(&body, REQUEST_HEAD_BYTES_MAX);
    json_open(&body, NULL, '{');
    json_string(&body, "from", f.name);
    json_u64(&body, "from_offset", from_offset);
    json_u64(&body, "offset", to_offset);
    json_u64(&body, "size", bytes);
    if (name[0])
        json_string(&body, "stream", name);
    json_close(&body, '}');
    st = post_buffer_request(s, t.name, "copy", &body);
    buf_finish(&body);
    return st;
}

static const char *pattern_type(unsigned width_bytes)
{
    return width_bytes == 1 ? "u8" : width_bytes == 2 ? "u16" : width_bytes == 4 ? "u32" : NULL;
}

gpurest_status gpurest_fill(gpurest_session *s, gpurest_buffer buffer, size_t offset, uint32_t value, unsigned width_bytes, size_t count,
                            gpurest_stream stream)
{
    struct buffer_entry e;
    char                name[NAME_BYTES];
    struct buf          body;
    const char         *type = pattern_type(width_bytes);
    gpurest_status      st = session_check(s);
    gpurest_batch      *b = st ? NULL : session_batch(s);

    if (!st && (!type || count > SIZE_MAX / width_bytes))
        st = fail_invalid("width_bytes must be 1, 2 or 4, and count * width_bytes must fit in size_t");
    if (!st)
        st = session_range(s, buffer, b, offset, count * width_bytes, &e);
    if (!st)
        st = session_stream(s, stream, name);
    if (st || count == 0)
        return st;
    value &= UINT32_MAX >> (32 - 8 * width_bytes);
    if (b)
        return batch_fill(b, &e, offset, type, value, count * width_bytes, name);
    lane_drain(s);
    buf_init(&body, REQUEST_HEAD_BYTES_MAX);
    json_open(&body, NULL, '{');
    json_open(&body, "pattern", '{');
    json_u64(&body, type, value);
    json_close(&body, '}');
    json_u64(&body, "offset", offset);
    json_u64(&body, "size", count * width_bytes);
    if (name[0])
        json_string(&body, "stream", name);
    json_close(&body, '}');
    st = post_buffer_request(s, e.name, "fill", &body);
    buf_finish(&body);
    return st;
}
