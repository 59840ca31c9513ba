/* Clients: open, close, and requests with retries. */
#include "client/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "transport/problem.h"

/* ---- structs, random numbers, references ---- */

void struct_copy_out(void *out, const void *ours, size_t ours_bytes)
{
    size_t bytes;

    memcpy(&bytes, out, sizeof bytes);
    if (bytes > ours_bytes)
        bytes = ours_bytes;
    if (bytes > sizeof bytes)
        memcpy((char *)out + sizeof bytes, (const char *)ours + sizeof bytes, bytes - sizeof bytes);
}

bool struct_copy_in(void *ours, size_t ours_bytes, const void *theirs)
{
    size_t bytes;

    memcpy(&bytes, theirs, sizeof bytes);
    if (bytes < sizeof bytes)
        return false;
    memcpy(ours, theirs, bytes < ours_bytes ? bytes : ours_bytes);
    memcpy(ours, &ours_bytes, sizeof ours_bytes);
    return true;
}

uint64_t random_u64(void)
{
    static atomic_uint_least64_t counter;
    uint64_t                     value = 0;

    if (!random_fill(&value, sizeof value))
        value = clock_ms() << 20 ^ (uint64_t)getpid() << 44 ^ atomic_fetch_add(&counter, 1);
    return value ? value : 1;
}

void client_hold(gpurest_client *c)
{
    atomic_fetch_add(&c->references, 1);
}

void client_drop(gpurest_client *c)
{
    if (!c || atomic_fetch_sub(&c->references, 1) != 1)
        return;
    pool_finish(&c->pool);
    moves_finish(&c->moves);
    workers_finish(&c->transfers);
    workers_finish(&c->followers);
    heartbeats_finish(&c->heartbeats);
    pthread_mutex_destroy(&c->lock);
    free(c->version);
    free(c);
}

gpurest_status client_check(const gpurest_client *c)
{
    if (!c)
        return fail_invalid("the client is NULL");
    if (c->owner != getpid())
        return fail(GPUREST_E_FORK, "open a client after fork()", "the client was opened by another process");
    return GPUREST_OK;
}

/* ---- what closing cancels ---- */

bool client_closed(gpurest_client *c)
{
    bool closed;

    pthread_mutex_lock(&c->lock);
    closed = c->closed;
    pthread_mutex_unlock(&c->lock);
    return closed;
}

bool client_add_pending(gpurest_client *c, struct pending *p)
{
    bool open;

    pthread_mutex_lock(&c->lock);
    open = !c->closed;
    if (open) {
        p->next = c->pending;
        if (p->next)
            p->next->previous = p;
        c->pending = p;
    }
    pthread_mutex_unlock(&c->lock);
    return open;
}

void client_remove_pending(gpurest_client *c, struct pending *p)
{
    pthread_mutex_lock(&c->lock);
    if (p->next)
        p->next->previous = p->previous;
    if (p->previous)
        p->previous->next = p->next;
    else
        c->pending = p->next;
    pthread_mutex_unlock(&c->lock);
}

static void cancel_pending(gpurest_client *c)
{
    pthread_mutex_lock(&c->lock);
    for (struct pending *p = c->pending; p; p = p->next)
        cancel_ask(&p->cancel);
    pthread_mutex_unlock(&c->lock);
}

/* ---- progress, output and log ---- */

void client_progress(gpurest_client *c, struct progress *p, uint64_t total)
{
    gpurest_progress_cb report;
    void               *arg;

    pthread_mutex_lock(&c->lock);
    report = c->progress;
    arg = c->progress_arg;
    pthread_mutex_unlock(&c->lock);
    progress_init(p, total >= PROGRESS_BYTES_MIN ? report : NULL, arg, total);
}

void gpurest_client_set_progress(gpurest_client *c, gpurest_progress_cb progress, void *arg)
{
    if (client_check(c))
        return;
    pthread_mutex_lock(&c->lock);
    c->progress = progress;
    c->progress_arg = arg;
    pthread_mutex_unlock(&c->lock);
}

void client_output(gpurest_client *c, const char *text, bool truncated)
{
    gpurest_output_cb output;
    void             *arg;

    pthread_mutex_lock(&c->lock);
    output = c->output;
    arg = c->output_arg;
    pthread_mutex_unlock(&c->lock);
    if (output && text[0])
        output(arg, text, truncated);
}

void gpurest_client_set_output(gpurest_client *c, gpurest_output_cb output, void *arg)
{
    if (client_check(c))
        return;
    pthread_mutex_lock(&c->lock);
    c->output = output;
    c->output_arg = arg;
    pthread_mutex_unlock(&c->lock);
}

void gpurest_client_log(const gpurest_client *c, gpurest_log_level level, const char *category, const char *message)
{
    if (c && category && message && level >= GPUREST_LOG_WARN && level <= GPUREST_LOG_DEBUG && strlen(category) < LOG_CATEGORY_BYTES)
        log_write(&c->log, category, (int)level, "%s", message);
}

/* ---- requests ---- */

struct asked {
    gpurest_client *client;
    struct pool    *pool; /* which leads to the node that x waits for */
};

/* Whether the service that x waits for answers another request: about the same session, as those of others may be at other nodes. */
static bool answers_others(void *arg, const struct exchange *x)
{
    const struct asked *a = arg;
    struct exchange     y;
    char                path[SESSION_ID_BYTES + 16] = "/livez";
    size_t              chars;
    const char         *session = moves_session(x->path, &chars);
    gpurest_status      st;

    if (client_closed(a->client))
        return false;
    if (session)
        snprintf(path, sizeof path, "/v1/sessions/%.*s", (int)chars, session);
    exchange_init(&y, "GET", path);
    y.cancel = x->cancel;
    y.idle_ms = x->idle_ms < a->client->idle_ms ? x->idle_ms : a->client->idle_ms;
    atomic_fetch_add(&a->client->requests, 1);
    st = pool_perform_apart(a->pool, &y);
    log_write(&a->client->log, "transport", GPUREST_LOG_DEBUG, "%s %.200s: no data for %d ms; GET %s: %.200s", x->method, x->path,
              x->idle_ms, path, st ? failure_last()->message : "answered, so the wait goes on");
    exchange_finish(&y);
    return !st;
}

static gpurest_status try_at(gpurest_client *c, struct pool *p, struct exchange *x)
{
    struct asked   asked = {c, p};
    uint64_t       begun = clock_ms();
    gpurest_status st;

    if (!x->idle_ms)
        x->idle_ms = c->idle_ms;
    x->lives = x->bounded ? NULL : answers_others;
    x->lives_arg = &asked;
    x->spin_us = atomic_load(&c->spin_us);
    atomic_fetch_add(&c->requests, 1);
    st = pool_perform(p, x);
    x->lives = NULL;
    x->lives_arg = NULL;
    log_write(&c->log, "transport", GPUREST_LOG_DEBUG, "%s %.200s: %d, %llu ms%s%.200s", x->method, x->path, x->status,
              (unsigned long long)(clock_ms() - begun), st ? ", " : "", st ? failure_last()->message : "");
    return st;
}

/* ---- sessions at other nodes ---- */

static void swap_bufs(struct buf *a, struct buf *b)
{
    struct buf before = *a;

    *a = *b;
    *b = before;
}

/* Before the first request there; a second time changes nothing. A refusal is the answer to x. */
static gpurest_status confirm_move(gpurest_client *c, struct moved *m, struct exchange *x)
{
    char            path[SESSION_ID_BYTES + 40], body[MOVE_SECRET_BYTES + 16];
    struct piece    piece = {body, 0};
    struct exchange y;
    gpurest_status  st;

    snprintf(path, sizeof path, "/v1/sessions/%s/move/confirm", m->id);
    piece.bytes = (size_t)snprintf(body, sizeof body, "{\"secret\":\"%s\"}", m->secret);
    exchange_init(&y, "POST", path);
    y.content_type = "application/json";
    y.upload = &piece;
    y.upload_count = 1;
    y.cancel = x->cancel;
    y.beyond_pool = x->beyond_pool;
    y.bounded = true;
    st = try_at(c, moved_pool(m), &y);
    if (!st && y.status / 100 == 2) {
        atomic_store(&m->confirmed, true);
    } else {
        x->status = y.status;
        swap_bufs(&x->head, &y.head);
        swap_bufs(&x->body, &y.body);
    }
    exchange_finish(&y);
    return st;
}

static gpurest_status try_moved(gpurest_client *c, struct moved *m, struct exchange *x)
{
    const char    *path = x->path;
    char          *there;
    gpurest_status st = atomic_load(&m->confirmed) ? GPUREST_OK : confirm_move(c, m, x);

    if (st || !atomic_load(&m->confirmed))
        return st;
    there = moved_path(m, path);
    if (!there)
        return fail_memory();
    x->path = there;
    st = try_at(c, moved_pool(m), x);
    x->path = path;
    free(there);
    return st;
}

/* One try, at the node where its session is as far as is known. */
static gpurest_status client_try(gpurest_client *c, struct exchange *x)
{
    struct moved  *m = moves_take(&c->moves, x->path);
    gpurest_status st;

    if (!m)
        return try_at(c, x->through ? x->through : &c->pool, x);
    x->through = NULL; /* which leads to the former one */
    x->followed = true;
    st = try_moved(c, m, x);
    moves_return(&c->moves, m);
    return st;
}

/* *again: the session is elsewhere. What was answered so had no effect, and is asked there. */
static gpurest_status follow(gpurest_client *c, struct exchange *x, int *followed, bool *again)
{
    gpurest_status st = GPUREST_OK;

    *again = false;
    if (x->stays || !moves_told(x))
        return GPUREST_OK;
    if (++*followed > MOVES_FOLLOWED_MAX)
        st = fail(GPUREST_E_BUSY, "ask the operator of the nodes where it is",
                  "%s %.200s: %d nodes in turn said that the session is at another one", x->method, x->path, *followed);
    if (!st)
        st = moves_learn(&c->moves, &c->pool, &c->log, x);
    *again = !st;
    if (*again)
        exchange_reset(x);
    return st;
}

/* A body that was held back because it might have told where the session is. */
static gpurest_status hand_over(struct exchange *x)
{
    bool taken;

    if (!x->sink || !x->sink_any || !x->body.bytes)
        return GPUREST_OK;
    taken = x->sink(x->sink_arg, x->body.data, x->body.bytes);
    buf_clear(&x->body);
    return taken ? GPUREST_OK : failure_last()->status;
}

gpurest_status client_once(gpurest_client *c, struct exchange *x)
{
    int            followed = 0;
    bool           again;
    gpurest_status st;

    do {
        st = client_try(c, x);
        if (st)
            return st;
        st = follow(c, x, &followed, &again);
    } while (!st && again);
    return st ? st : hand_over(x);
}

/* ---- retries ---- */

/* Exponential backoff with jitter: from half the delay to all of it. */
static int backoff_ms(int tries, int at_least_ms)
{
    int delay = RETRY_DELAY_MS << (tries < 8 ? tries : 8);

    delay = delay / 2 + (int)(random_u64() % (uint64_t)(delay / 2 + 1));
    return delay > at_least_ms ? delay : at_least_ms + delay / 4;
}

/* Whether to retry, and after how long. */
static bool may_retry(const struct exchange *x, gpurest_status st, int *after_ms)
{
    *after_ms = 0;
    if (st == GPUREST_E_CONNECT)
        return !x->sent || x->repeatable;
    return st == GPUREST_OK && problem_retry(x, after_ms) && *after_ms <= RETRY_DELAY_MS_MAX;
}

/* What went around the router and was not taken there. */
static bool is_turned_back(const struct exchange *x, gpurest_status st)
{
    if (st == GPUREST_E_UNSUPPORTED || st == GPUREST_E_CONNECT || (st == GPUREST_E_TIMEOUT && !x->sent))
        return !x->sent || x->repeatable;
    return !st && (x->status == 401 || x->status == 403 || x->status == 421);
}

/* Once, or twice if the first one was turned back. */
static gpurest_status try_around(gpurest_client *c, struct exchange *x)
{
    gpurest_status st = client_try(c, x);

    if (!x->through || !is_turned_back(x, st))
        return st;
    log_write(&c->log, "transport", GPUREST_LOG_WARN, "%s %.200s: the node is not reached itself, trying through the router", x->method,
              x->path);
    x->through = NULL;
    x->resent = x->resent || (st && x->sent);
    exchange_reset(x);
    return client_try(c, x);
}

/* The tries of one request. */
struct tries {
    int      made, followed;
    uint64_t moving_until_ms;
};

/* Whether there is another one, and after how long. A failure ends them. */
static gpurest_status plan_next(gpurest_client *c, struct exchange *x, gpurest_status st, struct tries *t, bool *again, int *after_ms)
{
    *again = false;
    *after_ms = 0;
    if (!st) {
        st = follow(c, x, &t->followed, again);
        if (st || *again)
            return st;
        if (c->max_retries && !x->hurries && problem_is(x, 503, "session_moving") && clock_ms() < t->moving_until_ms) {
            *again = true;
            *after_ms = MOVING_PAUSE_MS;
            return GPUREST_OK;
        }
    }
    if (t->made >= c->max_retries || !may_retry(x, st, after_ms))
        return st;
    *again = true;
    *after_ms = backoff_ms(t->made++, *after_ms);
    log_write(&c->log, "transport", GPUREST_LOG_WARN, "%s %.200s: trying again in %d ms", x->method, x->path, *after_ms);
    return st;
}

gpurest_status client_perform(gpurest_client *c, struct exchange *x)
{
    struct tries   t = {.moving_until_ms = clock_ms() + MOVING_MS_MAX};
    gpurest_status st;
    int            after_ms;
    bool           again;

    for (;;) {
        st = try_around(c, x);
        if (!st && x->status / 100 == 2)
            return GPUREST_OK;
        st = plan_next(c, x, st, &t, &again, &after_ms);
        if (!again)
            return st ? st : problem_record(x);
        if (after_ms && !cancel_sleep(x->cancel, after_ms))
            return fail(GPUREST_E_CANCELLED, NULL, "the operation was cancelled");
        x->resent = x->resent || (st && x->sent);
        exchange_reset(x);
    }
}

gpurest_status client_json(gpurest_client *c, struct exchange *x, const char *json)
{
    struct piece body = {json, json ? strlen(json) : 0};

    if (json) {
        x->content_type = "application/json";
        x->upload = &body;
        x->upload_count = 1;
    }
    return client_perform(c, x);
}

void client_set_wait(const gpurest_client *c, struct exchange *x, int seconds, const char *also, char *header, size_t room)
{
    int within = c->idle_ms / 2000;

    seconds = within < 1 ? 1 : within < seconds ? within : seconds;
    snprintf(header, room, "Prefer: wait=%d%s\r\n", seconds, also);
    x->headers = header;
    x->idle_ms = c->idle_ms > 2000 ? c->idle_ms : c->idle_ms + 1000;
}

/* ---- open ---- */

static bool api_fits(const struct json *version)
{
    const struct json *api = json_member(version, "api");
    unsigned           least = 0, most = 0;

    return sscanf(json_text_or(json_member(api, "least"), ""), "v%u", &least) == 1 &&
           sscanf(json_text_or(json_member(api, "most"), ""), "v%u", &most) == 1 && least <= GPUREST_VERSION_MAJOR &&
           most >= GPUREST_VERSION_MAJOR;
}

static gpurest_status judge_version(const struct exchange *x)
{
    struct json   *version = json_parse(x->body.data, x->body.bytes);
    gpurest_status st = GPUREST_OK;

    if (!json_text_or(json_member(version, "server"), NULL))
        st = fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to GET /version is not a version");
    else if (!api_fits(version))
        st = fail(GPUREST_E_UNSUPPORTED, "use a library that matches the service",
                  "the service supports API versions %.20s to %.20s, this library v%d",
                  json_text_or(json_member(json_member(version, "api"), "least"), "?"),
                  json_text_or(json_member(json_member(version, "api"), "most"), "?"), GPUREST_VERSION_MAJOR);
    json_destroy(version);
    return st;
}

static gpurest_status ask_version(gpurest_client *c)
{
    struct exchange x;
    gpurest_status  st;

    exchange_init(&x, "GET", "/version");
    x.bounded = true;
    st = client_perform(c, &x);
    if (!st)
        st = judge_version(&x);
    if (!st) {
        c->version = buf_take(&x.body);
        st = c->version ? GPUREST_OK : fail_memory();
    }
    exchange_finish(&x);
    return st;
}

static gpurest_status check_options(const gpurest_options *o)
{
    if (o->connect_timeout_ms < 1 || o->connect_timeout_ms > TIMEOUT_MS_MAX || o->idle_timeout_ms < 1 ||
        o->idle_timeout_ms > TIMEOUT_MS_MAX)
        return fail_invalid("a timeout must be from 1 to %d ms", TIMEOUT_MS_MAX);
    if (o->max_retries < 0 || o->max_retries > RETRIES_MAX)
        return fail_invalid("max_retries must be from 0 to %d", RETRIES_MAX);
    if (o->max_connections < 1 || o->max_connections > CONNECTIONS_MAX)
        return fail_invalid("max_connections must be from 1 to %d", CONNECTIONS_MAX);
    if (o->bulk_connections < 1 || o->bulk_connections > BULK_CONNECTIONS_MAX)
        return fail_invalid("bulk_connections must be from 1 to %d", BULK_CONNECTIONS_MAX);
    return GPUREST_OK;
}

static gpurest_status find_target(const gpurest_options *o, struct target *t)
{
    const char    *url = o->url ? o->url : getenv("GPUREST_URL"), *ca_file = o->ca_file ? o->ca_file : getenv("GPUREST_CA_FILE");
    gpurest_status st = endpoint_parse(url && url[0] ? url : "http://127.0.0.1:8080", &t->endpoint);

    if (!st && o->address)
        st = endpoint_set_address(&t->endpoint, o->address);
    if (!st)
        st = token_find(o, t->token);
    t->connect_timeout_ms = o->connect_timeout_ms;
    t->ca_file = NULL;
    if (!st && ca_file && ca_file[0]) {
        t->ca_file = strdup(ca_file);
        st = t->ca_file ? GPUREST_OK : fail_memory();
    }
    return st;
}

static gpurest_client *make_client(const gpurest_options *o, const struct target *t, const struct log *log)
{
    gpurest_client *c = calloc(1, sizeof *c);
    bool            plain = t->endpoint.scheme != SCHEME_HTTPS && !o->use_libcurl;

    if (!c)
        return NULL;
    atomic_init(&c->references, 1);
    c->owner = getpid();
    c->idle_ms = o->idle_timeout_ms;
    c->max_retries = o->max_retries;
    c->bulk_connections = o->bulk_connections < o->max_connections ? o->bulk_connections : o->max_connections;
    c->log = *log;
    pool_init(&c->pool, plain ? &transport_socket : &transport_curl, t, o->max_connections);
    moves_init(&c->moves);
    workers_init(&c->transfers, TRANSFER_THREADS_MAX);
    workers_init(&c->followers, FOLLOWER_THREADS_MAX);
    heartbeats_init(&c->heartbeats);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

gpurest_status gpurest_open_with(gpurest_client **out, const gpurest_options *options)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;
    struct target   t = {0};
    struct log      log;
    gpurest_client *c = NULL;
    gpurest_status  st;

    if (!out || (options && !struct_copy_in(&o, sizeof o, options)))
        return fail_invalid("out is NULL, or options.struct_size is not set");
    st = check_options(&o);
    if (!st)
        st = log_init(&log, &o);
    if (!st)
        st = find_target(&o, &t);
    if (st)
        return st;
    c = make_client(&o, &t, &log);
    memory_wipe(t.token, sizeof t.token);
    if (!c) {
        free(t.ca_file);
        return fail_memory();
    }
    st = ask_version(c);
    if (st)
        gpurest_close(c);
    else
        *out = c;
    return st;
}

gpurest_status gpurest_open(gpurest_client **out, const char *url)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;

    o.url = url;
    return gpurest_open_with(out, &o);
}

const char *gpurest_server_version(const gpurest_client *c)
{
    return c && c->version ? c->version : "";
}

/* Does nothing in a forked child: it has none of the threads, and the connections are the parent's. */
void gpurest_close(gpurest_client *c)
{
    if (!c || client_check(c))
        return;
    pthread_mutex_lock(&c->lock);
    c->closed = true;
    pthread_mutex_unlock(&c->lock);
    cancel_pending(c);
    pool_close(&c->pool);
    moves_close(&c->moves);
    workers_stop(&c->transfers);
    workers_stop(&c->followers);
    heartbeats_stop(&c->heartbeats);
    client_drop(c);
}
