/* Memory shared with the service. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "gpurest/share.h"
#include "session/op.h"
#include "session/session.h"

static gpurest_status check_share(gpurest_session *s, gpurest_buffer buffer, size_t offset, size_t bytes, struct buffer_entry *e)
{
    gpurest_status st = session_check(s);
    gpurest_batch *b = st ? NULL : session_batch(s);

    if (!st && b)
        st = fail_invalid("a batch cannot share memory or copy shared memory");
    if (!st)
        st = session_range(s, buffer, NULL, offset, bytes, e);
    if (!st)
        lane_drain(s);
    return st;
}

static gpurest_status check_local(const gpurest_session *s)
{
    const struct pool *p = &s->client->pool;

    if (!sharing_supported())
        return fail(GPUREST_E_UNSUPPORTED, "use gpurest_read and gpurest_write", "shared memory needs Linux, on the service's own host");
    if (p->target.endpoint.scheme == SCHEME_UNIX && p->transport == &transport_socket)
        return GPUREST_OK;
    return fail(GPUREST_E_UNSUPPORTED, "open the client with a unix:// URL, without use_libcurl", "sharing memory needs a Unix socket");
}

static gpurest_status no_descriptor(void)
{
    return fail(GPUREST_E_PROTO, "connect without a proxy", "the service sent no descriptor");
}

/* The buffer starts within the first page; gpurest_unshare() relies on it. */
static gpurest_status map_shared(struct exchange *x, size_t bytes, void **memory)
{
    struct json *answer = json_parse(x->body.data, x->body.bytes);
    uint64_t     offset = 0;
    void        *at;

    json_integer(json_member(answer, "offset"), &offset);
    json_destroy(answer);
    if (x->descriptor < 0)
        return no_descriptor();
    if (offset >= page_bytes() || bytes > SIZE_MAX - offset)
        return fail(GPUREST_E_PROTO, NULL, "invalid offset of the shared memory");
    at = memory_map(x->descriptor, offset + bytes);
    if (!at)
        return fail(GPUREST_E_NOMEM_HOST, NULL, "cannot map %zu bytes of shared memory: %s", bytes, strerror(errno));
    *memory = (char *)at + offset;
    return GPUREST_OK;
}

/* Prepares the request for a descriptor of the buffer's memory. On success the caller performs and finishes `x`, which borrows `path`. */
static gpurest_status prepare_share(gpurest_session *s, gpurest_buffer buffer, const void *out, struct buffer_entry *e, struct path *path,
                                    struct exchange *x)
{
    gpurest_status st = check_share(s, buffer, 0, 0, e);

    if (!st && !out)
        st = fail_invalid("the out parameter is NULL");
    if (!st)
        st = check_local(s);
    if (st)
        return st;
    *path = session_path(s, "/buffers/%s/share", e->name);
    exchange_init(x, "POST", path->text);
    x->takes_descriptor = x->repeatable = true;
    return GPUREST_OK;
}

gpurest_status gpurest_share(gpurest_session *s, gpurest_buffer buffer, void **memory)
{
    struct buffer_entry e;
    struct path         path;
    struct exchange     x;
    gpurest_status      st = prepare_share(s, buffer, memory, &e, &path, &x);

    if (st)
        return st;
    st = session_perform(s, &x);
    if (!st)
        st = map_shared(&x, e.bytes, memory);
    exchange_finish(&x);
    return st;
}

/* Moves the descriptor to the caller. */
static gpurest_status take_handle(struct exchange *x, gpurest_cuda_memory *out)
{
    struct json *answer = json_parse(x->body.data, x->body.bytes);
    uint64_t     size = 0, unit = 0;
    bool told = json_integer(json_member(answer, "allocation_size"), &size) && json_integer(json_member(answer, "granularity"), &unit);

    json_destroy(answer);
    if (x->descriptor < 0)
        return no_descriptor();
    if (!told || size > SIZE_MAX || unit > size)
        return fail(GPUREST_E_PROTO, NULL, "invalid allocation size");
    *out = (gpurest_cuda_memory){x->descriptor, (size_t)size, (size_t)unit};
    x->descriptor = -1;
    return GPUREST_OK;
}

gpurest_status gpurest_share_cuda(gpurest_session *s, gpurest_buffer buffer, gpurest_cuda_memory *out)
{
    static const char   body[] = "{\"as\":\"cuda_fd\"}";
    struct buffer_entry e;
    struct path         path;
    struct exchange     x;
    gpurest_status      st = prepare_share(s, buffer, out, &e, &path, &x);

    if (st)
        return st;
    st = session_json(s, &x, body);
    if (!st)
        st = take_handle(&x, out);
    exchange_finish(&x);
    return st;
}

static gpurest_status copy_shared(gpurest_session *s, gpurest_buffer buffer, const char *direction, size_t offset, size_t bytes)
{
    struct buffer_entry e;
    struct path         path;
    struct exchange     x;
    struct buf          body;
    gpurest_status      st = check_share(s, buffer, offset, bytes, &e);

    if (st || bytes == 0)
        return st;
    path = session_path(s, "/buffers/%s/share", e.name);
    exchange_init(&x, "PUT", path.text);
    buf_init(&body, REQUEST_HEAD_BYTES_MAX);
    json_open(&body, NULL, '{');
    json_string(&body, "direction", direction);
    json_u64(&body, "offset", offset);
    json_u64(&body, "size", bytes);
    json_close(&body, '}');
    st = body.failed ? fail_memory() : session_json(s, &x, buf_text(&body));
    buf_finish(&body);
    exchange_finish(&x);
    return st;
}

gpurest_status gpurest_share_to_device(gpurest_session *s, gpurest_buffer buffer, size_t offset, size_t bytes)
{
    return copy_shared(s, buffer, "to_device", offset, bytes);
}

gpurest_status gpurest_share_from_device(gpurest_session *s, gpurest_buffer buffer, size_t offset, size_t bytes)
{
    return copy_shared(s, buffer, "from_device", offset, bytes);
}

void gpurest_unshare(void *memory, size_t bytes)
{
    size_t offset = (uintptr_t)memory % page_bytes();

    if (memory && bytes)
        memory_unmap((char *)memory - offset, offset + bytes);
}

gpurest_status gpurest_share_end(gpurest_session *s, gpurest_buffer buffer)
{
    struct buffer_entry e;
    struct path         path;
    struct exchange     x;
    gpurest_status      st = check_share(s, buffer, 0, 0, &e);

    if (st)
        return st;
    path = session_path(s, "/buffers/%s/share", e.name);
    exchange_init(&x, "DELETE", path.text);
    x.bounded = false; /* kernels of others may use it still */
    st = session_perform(s, &x);
    exchange_finish(&x);
    return st;
}
