/* Memory that this process and the service map for one buffer. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "gpurest/share.h"
#include "json.h"
#include "op.h"
#include "session.h"

static gpurest_status check(gpurest_session *s, gpurest_buffer buffer, size_t offset, size_t bytes, struct buffer_entry *e)
{
    gpurest_status st = session_check(s);
    gpurest_batch *b = st ? NULL : session_batch(s);

    if (!st && b)
        st = fail_invalid("memory is not shared, nor shared memory copied, while a batch is recorded");
    if (!st)
        st = session_range(s, buffer, NULL, offset, bytes, e);
    if (!st)
        lane_drain(s);
    return st;
}

static gpurest_status check_local(const gpurest_session *s)
{
    const struct pool *p = &s->client->pool;

    if (p->target.endpoint.scheme == SCHEME_UNIX && p->transport == &transport_socket)
        return GPUREST_OK;
    return fail(GPUREST_E_UNSUPPORTED, "open the client with a unix:// URL, without use_libcurl", "memory is shared over a Unix socket only");
}

static gpurest_status map(struct exchange *x, size_t bytes, void **memory)
{
    void *at = x->descriptor < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, x->descriptor, 0);

    if (x->descriptor < 0)
        return fail(GPUREST_E_PROTO, "is a proxy in front of the service?", "the service sent no descriptor");
    if (at == MAP_FAILED)
        return fail(GPUREST_E_NOMEM_HOST, NULL, "%zu bytes of shared memory cannot be mapped: %s", bytes, strerror(errno));
    *memory = at;
    return GPUREST_OK;
}

gpurest_status gpurest_share(gpurest_session *s, gpurest_buffer buffer, void **memory)
{
    struct buffer_entry e;
    struct path         path;
    struct exchange     x;
    gpurest_status      st = check(s, buffer, 0, 0, &e);

    if (!st && !memory)
        st = fail_invalid("memory is NULL");
    if (!st)
        st = check_local(s);
    if (st)
        return st;
    path = session_path(s, "/buffers/%s/share", e.name);
    exchange_init(&x, "POST", path.text);
    x.takes_descriptor = true;
    x.repeatable = true; /* asked again, it is the same memory */
    st = session_perform(s, &x);
    if (!st)
        st = map(&x, e.bytes, memory);
    exchange_finish(&x);
    return st;
}

static gpurest_status move(gpurest_session *s, gpurest_buffer buffer, const char *direction, size_t offset, size_t bytes)
{
    struct buffer_entry e;
    struct path         path;
    struct exchange     x;
    struct buf          body;
    gpurest_status      st = check(s, buffer, offset, bytes, &e);

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
    return move(s, buffer, "to_device", offset, bytes);
}

gpurest_status gpurest_share_from_device(gpurest_session *s, gpurest_buffer buffer, size_t offset, size_t bytes)
{
    return move(s, buffer, "from_device", offset, bytes);
}

void gpurest_unshare(void *memory, size_t bytes)
{
    if (memory && bytes)
        munmap(memory, bytes);
}

gpurest_status gpurest_share_end(gpurest_session *s, gpurest_buffer buffer)
{
    struct buffer_entry e;
    struct path         path;
    struct exchange     x;
    gpurest_status      st = check(s, buffer, 0, 0, &e);

    if (st)
        return st;
    path = session_path(s, "/buffers/%s/share", e.name);
    exchange_init(&x, "DELETE", path.text);
    st = session_perform(s, &x);
    exchange_finish(&x);
    return st;
}
