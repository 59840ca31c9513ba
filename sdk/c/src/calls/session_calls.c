/* Sessions: reset, info, hibernation, sync, streams, memory usage. */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "batch/batch.h"
#include "session/op.h"

gpurest_status gpurest_session_reset(gpurest_session *s)
{
    struct exchange x;
    struct path     path;
    struct json    *told;
    gpurest_status  st = s ? client_check(s->client) : fail_invalid("the session is NULL");

    if (st)
        return st;
    lane_drain(s);
    path = session_path(s, "/reset");
    exchange_init(&x, "POST", path.text);
    st = client_json(s->client, &x, "{}");
    if (!st) {
        told = json_parse(x.body.data, x.body.bytes);
        session_note_generation(s, told);
        json_destroy(told);
    }
    exchange_finish(&x);
    if (st && strcmp(failure_last()->code, "session_not_found") == 0)
        st = session_make(s);
    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    handles_clear(&s->buffers);
    failure_finish(&s->lost);
    pthread_mutex_unlock(&s->lock);
    session_keep(s);
    return GPUREST_OK;
}

static gpurest_status take_info(const gpurest_session *s, const struct exchange *x, gpurest_session_info_t *out)
{
    gpurest_session_info_t i = GPUREST_SESSION_INFO_INIT;
    struct json           *d = json_parse(x->body.data, x->body.bytes);
    bool                   whole =
        json_copy(json_member(d, "device"), i.device, sizeof i.device) && json_copy(json_member(d, "state"), i.state, sizeof i.state);

    json_destroy(d);
    if (!whole)
        return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service",
                    "the answer does not tell a session's device and state");
    snprintf(i.id, sizeof i.id, "%s", s->id); /* by which requests name it, also at another node */
    if (out)
        struct_copy_out(out, &i, sizeof i);
    return GPUREST_OK;
}

/* A second time changes nothing. Lasts as long as the buffers' bytes take. */
static gpurest_status info_request(gpurest_session *s, const char *method, const char *what, gpurest_session_info_t *out)
{
    struct path     path = session_path(s, "%s", what);
    struct exchange x;
    gpurest_status  st;

    exchange_init(&x, method, path.text);
    x.repeatable = true;
    x.idle_ms = TIMEOUT_MS_MAX;
    st = session_json(s, &x, strcmp(method, "POST") == 0 ? "{}" : NULL);
    if (!st)
        st = take_info(s, &x, out);
    exchange_finish(&x);
    return st;
}

gpurest_status gpurest_session_info(gpurest_session *s, gpurest_session_info_t *out)
{
    gpurest_status st = session_check(s);

    if (st)
        return st;
    return out ? info_request(s, "GET", "", out) : fail_invalid("out is NULL");
}

gpurest_status gpurest_session_hibernate(gpurest_session *s, gpurest_session_info_t *out_or_null)
{
    gpurest_status st = session_enter(s);

    return st ? st : info_request(s, "POST", "/hibernate", out_or_null);
}

gpurest_status gpurest_session_wake(gpurest_session *s, gpurest_session_info_t *out_or_null)
{
    gpurest_status st = session_enter(s);

    return st ? st : info_request(s, "POST", "/wake", out_or_null);
}

/* A sync lasts as long as kernels run, which the service bounds. */
static gpurest_status sync_stream(gpurest_session *s, const char *name)
{
    struct path     path = session_path(s, "/sync");
    struct exchange x;
    struct buf      body;
    gpurest_status  st;

    buf_init(&body, REQUEST_HEAD_BYTES_MAX);
    json_open(&body, NULL, '{');
    if (name && name[0])
        json_string(&body, "stream", name);
    json_close(&body, '}');
    exchange_init(&x, "POST", path.text);
    x.repeatable = true;
    x.idle_ms = TIMEOUT_MS_MAX;
    st = body.failed ? fail_memory() : session_json(s, &x, buf_text(&body));
    exchange_finish(&x);
    buf_finish(&body);
    return st;
}

gpurest_status gpurest_sync(gpurest_session *s)
{
    gpurest_status st = session_check(s);
    gpurest_batch *b = st ? NULL : session_batch(s);

    if (st || b)
        return st ? st : batch_sync(b, NULL);
    lane_drain(s);
    return sync_stream(s, NULL);
}

gpurest_status gpurest_flush(gpurest_session *s)
{
    return session_enter(s);
}

gpurest_status gpurest_stream_create(gpurest_session *s, gpurest_stream *out)
{
    gpurest_status st = session_check(s);

    if (st)
        return st;
    if (!out)
        return fail_invalid("out is NULL");
    pthread_mutex_lock(&s->lock);
    if (s->streams >= STREAMS_MAX)
        st = fail(GPUREST_E_LIMIT, "reuse streams", "a session has at most %d streams", STREAMS_MAX);
    else
        out->id = (uint64_t)s->nonce << 32 | ++s->streams;
    pthread_mutex_unlock(&s->lock);
    return st;
}

gpurest_status gpurest_stream_sync(gpurest_session *s, gpurest_stream stream)
{
    char           name[NAME_BYTES];
    gpurest_status st = session_check(s);
    gpurest_batch *b = st ? NULL : session_batch(s);

    if (!st)
        st = session_stream(s, stream, name);
    if (st || b)
        return st ? st : batch_sync(b, name);
    lane_drain(s);
    return sync_stream(s, name);
}

static gpurest_status memory_request(gpurest_session *s, const char *method, const char *what, gpurest_memory_info_t *out)
{
    gpurest_memory_info_t m = GPUREST_MEMORY_INFO_INIT;
    struct path           path = session_path(s, "%s", what);
    struct exchange       x;
    struct json          *d = NULL;
    gpurest_status        st;

    exchange_init(&x, method, path.text);
    x.repeatable = true;
    st = session_json(s, &x, strcmp(method, "POST") == 0 ? "{}" : NULL);
    if (!st) {
        d = json_parse(x.body.data, x.body.bytes);
        if (!json_is_object(d))
            st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to a memory request is not JSON");
    }
    if (!st && out) {
        m.allocated_bytes = json_integer_or(json_member(d, "allocated_bytes"), 0);
        m.cached_bytes = json_integer_or(json_member(d, "cached_bytes"), 0);
        m.reserved_bytes = json_integer_or(json_member(d, "reserved_bytes"), 0);
        m.free_bytes = json_integer_or(json_member(d, "free_bytes"), 0);
        m.peak_bytes = json_integer_or(json_member(d, "peak_bytes"), 0);
        m.limit_bytes = json_integer_or(json_member(d, "limit_bytes"), UINT64_MAX);
        m.fragmentation = json_number_or(json_member(d, "fragmentation"), (double)NAN);
        struct_copy_out(out, &m, sizeof m);
    }
    json_destroy(d);
    exchange_finish(&x);
    return st;
}

gpurest_status gpurest_memory_info(gpurest_session *s, gpurest_memory_info_t *out)
{
    gpurest_status st = session_enter(s);

    if (st)
        return st;
    return out ? memory_request(s, "GET", "/memory", out) : fail_invalid("out is NULL");
}

gpurest_status gpurest_memory_trim(gpurest_session *s, gpurest_memory_info_t *out_or_null)
{
    gpurest_status st = session_enter(s);

    return st ? st : memory_request(s, "POST", "/memory/trim", out_or_null);
}

gpurest_status gpurest_memory_reset_peak(gpurest_session *s, gpurest_memory_info_t *out_or_null)
{
    gpurest_status st = session_enter(s);

    return st ? st : memory_request(s, "POST", "/memory/peak/reset", out_or_null);
}
