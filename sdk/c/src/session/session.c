/* Sessions: open, close, checks, names, buffers. */
#include "session/session.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/platform.h"
#include "session/op.h"

/* ---- open and close ---- */

void session_hold(gpurest_session *s)
{
    atomic_fetch_add(&s->references, 1);
}

void session_drop(gpurest_session *s)
{
    if (!s || atomic_fetch_sub(&s->references, 1) != 1)
        return;
    detour_finish(&s->detour);
    handles_finish(&s->buffers);
    failure_finish(&s->lost);
    free(s->spec);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->lane_changed);
    client_drop(s->client);
    free(s);
}

static void write_options(struct buf *b, const gpurest_session_options *o)
{
    json_open(b, NULL, '{');
    if (o->device)
        json_string(b, "device", o->device);
    if (o->memory_limit)
        json_u64(b, "memory_limit", o->memory_limit);
    if (o->memory_fraction)
        json_string(b, "memory_fraction", o->memory_fraction);
    if (o->pool_bytes_max)
        json_u64(b, "pool_bytes_max", o->pool_bytes_max);
    if (o->idle_timeout_s)
        json_u64(b, "idle_timeout_s", o->idle_timeout_s);
    if (o->lease_s)
        json_u64(b, "lease_s", o->lease_s);
    if (o->memcheck)
        json_bool(b, "memcheck", true);
    if (o->fault_domain)
        json_string(b, "fault_domain", o->fault_domain);
    if (o->fault_domain && o->fault_domain_optional)
        json_bool(b, "fault_domain_required", false);
    json_close(b, '}');
}

void session_keep_addresses(gpurest_session *s)
{
    s->addressed = true;
}

uint64_t session_generation(const gpurest_session *s)
{
    return s->addressed ? atomic_load(&s->generation) : 0;
}

void session_note_generation(gpurest_session *s, const struct json *told)
{
    atomic_store(&s->generation, json_integer_or(json_member(told, "generation"), 0));
}

gpurest_status session_take_answer(gpurest_session *s, const struct exchange *x)
{
    struct json   *answer;
    gpurest_status st = GPUREST_OK;

    if (x->followed) /* its id at another node; by the one that it has here, requests follow it */
        return GPUREST_OK;
    answer = json_parse(x->body.data, x->body.bytes);
    if (!json_copy(json_member(answer, "id"), s->id, sizeof s->id) || !session_id_valid(s->id))
        st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to a new session has no id");
    else
        detour_make(&s->detour, s->client, answer);
    session_note_generation(s, answer);
    json_destroy(answer);
    return st;
}

gpurest_status session_make(gpurest_session *s)
{
    struct path     path = session_path(s, "%s", "");
    struct exchange x;
    gpurest_status  st;

    exchange_init(&x, "PUT", path.text);
    st = client_json(s->client, &x, s->spec);
    if (!st)
        st = session_take_answer(s, &x);
    exchange_finish(&x);
    return st;
}

/* The library chooses a name if the caller gives none, so the request can be retried. */
static void choose_name(gpurest_session *s, const gpurest_session_options *o)
{
    if (o->name)
        snprintf(s->id, sizeof s->id, "%s", o->name);
    else
        snprintf(s->id, sizeof s->id, "c-%08x%016llx", s->nonce, (unsigned long long)random_u64());
}

static gpurest_status create_session(gpurest_session *s, const gpurest_session_options *o)
{
    struct buf body;

    choose_name(s, o);
    buf_init(&body, REQUEST_HEAD_BYTES_MAX);
    write_options(&body, o);
    s->spec = body.failed ? NULL : buf_take(&body);
    buf_finish(&body);
    return s->spec ? session_make(s) : fail_memory();
}

/* A session that is gone says so at its next use. */
static bool send_heartbeat(struct leased *l, struct cancel *cancel, bool *failed)
{
    gpurest_session *s = (gpurest_session *)((char *)l - offsetof(gpurest_session, leased));
    struct path      path = session_path(s, "/heartbeat");
    struct exchange  x;
    gpurest_status   st;

    exchange_init(&x, "POST", path.text);
    x.repeatable = true;
    x.cancel = cancel;
    x.hurries = x.bounded = true; /* the thread has other sessions to keep */
    st = client_json(s->client, &x, "{}");
    exchange_finish(&x);
    *failed = st != GPUREST_OK;
    if (!st || strcmp(failure_last()->code, "session_not_found") != 0)
        return true;
    session_note_failure(s, failure_last());
    return false;
}

static gpurest_session *make_session(gpurest_client *c)
{
    gpurest_session *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    atomic_init(&s->references, 1);
    atomic_init(&s->names, 0);
    s->client = c;
    client_hold(c);
    s->nonce = (uint32_t)random_u64();
    handles_init(&s->buffers, s->nonce);
    failure_init(&s->lost);
    pthread_mutex_init(&s->lock, NULL);
    condition_init(&s->lane_changed);
    s->lane_job.run = lane_run;
    s->leased.beat = send_heartbeat;
    return s;
}

void session_keep(gpurest_session *s)
{
    if (!heartbeats_add(&s->client->heartbeats, &s->leased))
        log_write(&s->client->log, "session", GPUREST_LOG_WARN, "%s: no thread for heartbeats, its lease holds while it is used", s->id);
}

static const char *behind_node(const char *id)
{
    const char *dot = strchr(id, '.');

    return dot ? dot + 1 : id;
}

static bool wanted_name_valid(const char *name)
{
    return session_id_valid(name) && strlen(behind_node(name)) <= 63;
}

gpurest_status gpurest_session_open(gpurest_session **out, gpurest_client *client, const gpurest_session_options *options)
{
    gpurest_session_options o = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *s;
    gpurest_status          st = client_check(client);

    if (st)
        return st;
    if (!out || (options && !struct_copy_in(&o, sizeof o, options)) || (o.name && !wanted_name_valid(o.name)))
        return fail_invalid(
            "out is NULL, options.struct_size is not set, or the name does not match [a-z0-9][a-z0-9_-]{0,62}, or that behind "
            "a node and a dot");
    if (o.lease_s > LEASE_S_MAX)
        return fail_invalid("lease_s must be at most %d", LEASE_S_MAX);
    s = make_session(client);
    if (!s)
        return fail_memory();
    s->keep = o.keep;
    s->leased.lease_ms = (uint64_t)o.lease_s * 1000;
    st = create_session(s, &o);
    if (st) {
        session_drop(s);
        return st;
    }
    log_write(&client->log, "session", GPUREST_LOG_INFO, "%s is open", s->id);
    session_keep(s);
    *out = s;
    return GPUREST_OK;
}

static gpurest_status load_session(gpurest_session *s, const char *path, const gpurest_session_options *o)
{
    choose_name(s, o);
    s->spec = strdup("{}"); /* of what a reset of a session that has ended makes */
    return s->spec ? session_restore(s, path, o->device) : fail_memory();
}

gpurest_status gpurest_session_load(gpurest_session **out, gpurest_client *client, const char *path, const gpurest_session_options *options)
{
    gpurest_session_options o = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *s;
    gpurest_status          st = client_check(client);

    if (st)
        return st;
    if (!out || !path || (options && !struct_copy_in(&o, sizeof o, options)) || (o.name && !wanted_name_valid(o.name)))
        return fail_invalid("out or the path is NULL, options.struct_size is not set, or the name is invalid");
    if (o.device && strspn(o.device, "abcdefghijklmnopqrstuvwxyz0123456789:_-") != strlen(o.device))
        return fail_invalid("a device is an id such as cuda:0, or a backend");
    s = make_session(client);
    if (!s)
        return fail_memory();
    s->keep = o.keep;
    st = load_session(s, path, &o);
    if (st) {
        session_drop(s);
        return st;
    }
    log_write(&client->log, "session", GPUREST_LOG_INFO, "%s is restored", s->id);
    session_keep(s);
    *out = s;
    return GPUREST_OK;
}

static void delete_at_service(gpurest_session *s)
{
    struct path     path = session_path(s, "%s", "");
    struct exchange x;

    exchange_init(&x, "DELETE", path.text);
    client_perform(s->client, &x);
    exchange_finish(&x);
}

/* Best effort: keeps the thread's last error. */
void gpurest_session_close(gpurest_session *s)
{
    struct failure before;

    if (!s || client_check(s->client))
        return;
    pthread_mutex_lock(&s->lock);
    s->closed = true;
    pthread_mutex_unlock(&s->lock);
    lane_drain(s);
    heartbeats_remove(&s->client->heartbeats, &s->leased);
    failure_init(&before);
    failure_copy(&before, failure_last());
    log_write(&s->client->log, "session", GPUREST_LOG_INFO, s->keep ? "%s is left open" : "%s is deleted", s->id);
    if (!s->keep)
        delete_at_service(s);
    moves_forget(&s->client->moves, s->id);
    failure_raise(&before);
    failure_finish(&before);
    session_drop(s);
}

const char *gpurest_session_id(const gpurest_session *s)
{
    return s ? s->id : "";
}

/* ---- checks ---- */

static gpurest_status check_locked(gpurest_session *s)
{
    struct failure f;

    if (s->closed)
        return fail_invalid("the session is closed");
    if (!s->lost.status)
        return GPUREST_OK;
    failure_init(&f);
    failure_copy(&f, &s->lost);
    f.status = GPUREST_E_SESSION_LOST;
    snprintf(f.message, sizeof f.message, "the session is lost: %.*s", MESSAGE_BYTES - 64, s->lost.message);
    failure_raise(&f);
    failure_finish(&f);
    return GPUREST_E_SESSION_LOST;
}

gpurest_status session_check(gpurest_session *s)
{
    gpurest_status st = s ? client_check(s->client) : fail_invalid("the session is NULL");

    if (st)
        return st;
    pthread_mutex_lock(&s->lock);
    st = check_locked(s);
    pthread_mutex_unlock(&s->lock);
    return st;
}

gpurest_status session_enter(gpurest_session *s)
{
    gpurest_status st = session_check(s);

    if (!st)
        lane_drain(s);
    return st;
}

void session_note_failure(gpurest_session *s, const struct failure *f)
{
    bool first;

    if (!f->fatal_for_session)
        return;
    pthread_mutex_lock(&s->lock);
    first = !s->lost.status;
    if (first)
        failure_copy(&s->lost, f);
    pthread_mutex_unlock(&s->lock);
    if (first)
        log_write(&s->client->log, "session", GPUREST_LOG_WARN, "%s is lost: %s", s->id, f->message);
}

gpurest_status session_perform(gpurest_session *s, struct exchange *x)
{
    gpurest_status st;

    leased_note(&s->leased);
    st = detour_perform(&s->detour, s->client, x);
    if (st)
        session_note_failure(s, failure_last());
    return st;
}

gpurest_status session_json(gpurest_session *s, struct exchange *x, const char *json)
{
    gpurest_status st;

    leased_note(&s->leased);
    st = client_json(s->client, x, json);
    if (st)
        session_note_failure(s, failure_last());
    return st;
}

/* ---- names ---- */

bool session_id_valid(const char *id)
{
    const char *dot = strchr(id, '.');
    size_t      node = dot ? (size_t)(dot - id) : 0;

    if (dot && (!node || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != node))
        return false;
    return strlen(id) < SESSION_ID_BYTES && name_valid(behind_node(id));
}

bool name_valid(const char *name)
{
    size_t chars = strlen(name);

    return chars >= 1 && chars < NAME_BYTES && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:") == chars;
}

struct path session_path(const gpurest_session *s, const char *format, ...)
{
    struct path p;
    va_list     arguments;
    int         n = snprintf(p.text, sizeof p.text, "/v1/sessions/%s", s->id);

    va_start(arguments, format);
    vsnprintf(p.text + n, sizeof p.text - (size_t)n, format, arguments);
    va_end(arguments);
    return p;
}

void session_name(gpurest_session *s, char kind, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%c%08x-%llx", kind, s->nonce, (unsigned long long)atomic_fetch_add(&s->names, 1));
}

gpurest_status session_stream(gpurest_session *s, gpurest_stream stream, char out[NAME_BYTES])
{
    uint64_t made;

    out[0] = '\0';
    if (!stream.id)
        return GPUREST_OK;
    pthread_mutex_lock(&s->lock);
    made = s->streams;
    pthread_mutex_unlock(&s->lock);
    if (stream.id >> 32 != s->nonce || (uint32_t)stream.id > made)
        return fail_invalid("the stream belongs to another session");
    snprintf(out, NAME_BYTES, "q%08x-%x", s->nonce, (uint32_t)stream.id);
    return GPUREST_OK;
}

/* ---- recording ---- */

gpurest_batch *session_batch(gpurest_session *s)
{
    const struct recording *r;
    gpurest_batch          *b;

    pthread_mutex_lock(&s->lock);
    for (r = s->recordings; r && !pthread_equal(r->owner, pthread_self()); r = r->next)
        continue;
    b = r ? r->batch : NULL;
    pthread_mutex_unlock(&s->lock);
    return b;
}

void session_start_recording(gpurest_session *s, struct recording *r, gpurest_batch *batch)
{
    r->owner = pthread_self();
    r->batch = batch;
    pthread_mutex_lock(&s->lock);
    r->next = s->recordings;
    s->recordings = r;
    pthread_mutex_unlock(&s->lock);
}

void session_stop_recording(gpurest_session *s, const struct recording *r)
{
    pthread_mutex_lock(&s->lock);
    for (struct recording **at = &s->recordings; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    pthread_mutex_unlock(&s->lock);
}

/* ---- buffers ---- */

gpurest_status session_buffer(gpurest_session *s, gpurest_buffer b, const gpurest_batch *batch, struct buffer_entry *out)
{
    const struct buffer_entry *e;
    gpurest_status             st = GPUREST_OK;

    pthread_mutex_lock(&s->lock);
    e = handles_get(&s->buffers, b.id);
    if (!e || e->freed_in_batch)
        st = fail_invalid("the buffer handle is stale or belongs to another session");
    else if (e->made_in && e->made_in != batch)
        st = fail_invalid("the buffer belongs to a batch that has not completed");
    else
        *out = *e;
    pthread_mutex_unlock(&s->lock);
    return st;
}

gpurest_status session_range(gpurest_session *s, gpurest_buffer b, const gpurest_batch *batch, size_t offset, size_t bytes,
                             struct buffer_entry *out)
{
    gpurest_status st = session_buffer(s, b, batch, out);

    if (!st && (offset > out->bytes || bytes > out->bytes - offset))
        st = fail_invalid("%zu bytes at offset %zu exceed the buffer of %llu bytes", bytes, offset, (unsigned long long)out->bytes);
    return st;
}

gpurest_status session_add_buffer(gpurest_session *s, const char *name, uint64_t bytes, gpurest_batch *batch, gpurest_buffer *out)
{
    struct buffer_entry *e;

    pthread_mutex_lock(&s->lock);
    e = handles_add(&s->buffers, &out->id);
    if (e) {
        snprintf(e->name, sizeof e->name, "%s", name);
        e->bytes = bytes;
        e->made_in = batch;
    }
    pthread_mutex_unlock(&s->lock);
    return e ? GPUREST_OK : fail_memory();
}

void session_set_address(gpurest_session *s, gpurest_buffer b, uint64_t address)
{
    struct buffer_entry *e;

    pthread_mutex_lock(&s->lock);
    e = handles_get(&s->buffers, b.id);
    if (e)
        e->address = address;
    pthread_mutex_unlock(&s->lock);
}

void session_set_objects(gpurest_session *s, gpurest_buffer b, uint64_t object, uint64_t surface)
{
    struct buffer_entry *e;

    pthread_mutex_lock(&s->lock);
    e = handles_get(&s->buffers, b.id);
    if (e) {
        e->object = object;
        e->surface = surface;
    }
    pthread_mutex_unlock(&s->lock);
}

void session_remove_buffer(gpurest_session *s, gpurest_buffer b)
{
    pthread_mutex_lock(&s->lock);
    handles_remove(&s->buffers, b.id);
    pthread_mutex_unlock(&s->lock);
}

gpurest_status session_free_buffer(gpurest_session *s, gpurest_buffer b, const char *path)
{
    struct exchange x;
    gpurest_status  st;

    exchange_init(&x, "DELETE", path);
    x.bounded = false; /* kernels may use it still */
    st = session_perform(s, &x);
    exchange_finish(&x);
    if (st == GPUREST_E_NOTFOUND) /* freed by an earlier try or another client */
        st = GPUREST_OK;
    if (!st)
        session_remove_buffer(s, b);
    return st;
}

size_t gpurest_buffer_bytes(gpurest_session *s, gpurest_buffer b)
{
    const struct buffer_entry *e;
    size_t                     bytes;

    if (!s || client_check(s->client))
        return 0;
    pthread_mutex_lock(&s->lock);
    e = handles_get(&s->buffers, b.id);
    bytes = e ? (size_t)e->bytes : 0;
    pthread_mutex_unlock(&s->lock);
    return bytes;
}
