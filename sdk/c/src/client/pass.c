/* gpurest_http_pass: the body of one answer is that of another request, while it comes. A thread receives it, the caller's sends it; between
 * them is one piece, so that the faster one waits. */
#include <stdlib.h>

#include "client/request.h"

struct passing {
    gpurest_client *from;
    struct exchange get;
    struct cancel   cancel; /* of get */

    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t  changed;
    const char     *data; /* what has come and is not taken yet; the receiver's */
    size_t          bytes;
    uint64_t        length, taken;
    bool            begun, has_length, ended, stopped;
    gpurest_status  status; /* of get, once it has ended */
    struct failure  failure;
};

/* ---- the receiver ---- */

static bool find_length(const struct exchange *x, uint64_t *out)
{
    char text[32], *end;

    if (exchange_header(x, "Transfer-Encoding", text, sizeof text) || !exchange_header(x, "Content-Length", text, sizeof text))
        return false;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && *out <= INT64_MAX;
}

static bool offer_piece(void *arg, const void *data, size_t bytes)
{
    struct passing *p = arg;
    bool            stopped;

    pthread_mutex_lock(&p->lock);
    if (!p->begun)
        p->has_length = find_length(&p->get, &p->length);
    p->begun = true;
    p->data = data;
    p->bytes = bytes;
    pthread_cond_broadcast(&p->changed);
    while (p->bytes && !p->stopped)
        pthread_cond_wait(&p->changed, &p->lock);
    stopped = p->stopped;
    p->bytes = 0;
    pthread_mutex_unlock(&p->lock);
    if (stopped)
        fail(GPUREST_E_CANCELLED, NULL, "the request that the body is for has ended");
    return !stopped;
}

static void *receive(void *arg)
{
    struct passing *p = arg;
    gpurest_status  st = client_once(p->from, &p->get);

    pthread_mutex_lock(&p->lock);
    if (st)
        failure_copy(&p->failure, failure_last());
    p->status = st;
    p->ended = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- the sender ---- */

static gpurest_status ended_early(struct passing *p)
{
    if (p->status)
        return failure_raise(&p->failure);
    return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to %s %.200s ended before its length",
                p->get.method, p->get.path);
}

/* The next bytes of the body; 0: it ended early, so that the request stays incomplete. */
static size_t take_piece(void *arg, void *to, size_t room)
{
    struct passing *p = arg;
    size_t          n;

    pthread_mutex_lock(&p->lock);
    while (!p->bytes && !p->ended)
        pthread_cond_wait(&p->changed, &p->lock);
    n = p->bytes < room ? p->bytes : room;
    if (n) {
        memcpy(to, p->data, n);
        p->data += n;
        p->bytes -= n;
        p->taken += n;
        pthread_cond_broadcast(&p->changed);
    } else {
        ended_early(p);
    }
    pthread_mutex_unlock(&p->lock);
    return n;
}

/* Whether a body with a known end comes: without a length, the other service could not tell a cut from the end. */
static gpurest_status await_begin(struct passing *p, bool *begun)
{
    gpurest_status st = GPUREST_OK;

    pthread_mutex_lock(&p->lock);
    while (!p->begun && !p->ended)
        pthread_cond_wait(&p->changed, &p->lock);
    *begun = p->begun;
    if (p->begun ? !p->has_length : !p->status && p->get.status / 100 == 2)
        st = fail(GPUREST_E_PROTO, "check the service and the proxies in front of it",
                  "the answer to %s %.200s has no body of known length", p->get.method, p->get.path);
    else if (!p->begun && p->status)
        st = ended_early(p);
    pthread_mutex_unlock(&p->lock);
    return st;
}

/* Sent once: what has come is gone. */
static gpurest_status send_on(struct passing *p, gpurest_client *to, struct exchange *x)
{
    gpurest_status st;

    x->source = take_piece;
    x->source_arg = p;
    x->source_bytes = p->length;
    x->repeatable = false;
    x->stays = true;
    st = client_once(to, x);
    if (!st && moves_told(x))
        return fail(
            GPUREST_E_BUSY, "ask the other node, or wait until this one has forgotten where it went",
            "%s %.200s: a session of that name has moved from there to another node, to which this body cannot be sent a second time",
            x->method, x->path);
    if (!st && x->status / 100 == 2 && p->taken < p->length)
        return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service",
                    "%s %.200s was answered before all of its body was sent", x->method, x->path);
    return st;
}

static void stop(struct passing *p)
{
    pthread_mutex_lock(&p->lock);
    p->stopped = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    cancel_ask(&p->cancel);
}

/* *refused: p->get has the answer; else x. */
static gpurest_status pass_body(struct passing *p, gpurest_client *to, struct exchange *x, bool *refused)
{
    pthread_t      receiver;
    bool           begun = false;
    gpurest_status st;

    if (!thread_make(&receiver, receive, p))
        return fail_memory();
    st = await_begin(p, &begun);
    *refused = !st && !begun;
    if (!st && begun)
        st = send_on(p, to, x);
    stop(p);
    pthread_join(receiver, NULL);
    return st;
}

static void init_passing(struct passing *p, gpurest_client *from)
{
    *p = (struct passing){.from = from};
    cancel_init(&p->cancel);
    failure_init(&p->failure);
    pthread_mutex_init(&p->lock, NULL);
    condition_init(&p->changed);
}

static void finish_passing(struct passing *p)
{
    cancel_finish(&p->cancel);
    failure_finish(&p->failure);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
}

/* ---- the call ---- */

static gpurest_status check_both(gpurest_client *from, const gpurest_http_request *get, gpurest_http_request *taken_get, gpurest_client *to,
                                 const gpurest_http_request *put, gpurest_http_request *taken_put)
{
    gpurest_status st = request_take(from, get, taken_get);

    if (!st)
        st = request_take(to, put, taken_put);
    if (!st && (taken_get->content_type || taken_get->on_body || taken_put->body || taken_put->on_body || !taken_put->content_type))
        st = fail_invalid("the first request has a body or on_body, or the second one has them, or no content_type");
    return st;
}

gpurest_status gpurest_http_pass(gpurest_client *from, const gpurest_http_request *get, gpurest_client *to, const gpurest_http_request *put,
                                 gpurest_http_response **out)
{
    gpurest_http_request   g, q;
    gpurest_http_response *r;
    struct passing         p;
    struct exchange        x;
    struct buf             get_headers, put_headers;
    bool                   refused = false;
    gpurest_status         st = out ? check_both(from, get, &g, to, put, &q) : fail_invalid("out is NULL");

    if (st)
        return st;
    r = calloc(1, sizeof *r);
    if (!r)
        return fail_memory();
    init_passing(&p, from);
    st = request_begin(&g, &p.get, &get_headers);
    if (request_begin(&q, &x, &put_headers) && !st)
        st = failure_last()->status;
    p.get.cancel = &p.cancel;
    p.get.beyond_pool = true; /* both clients may be one, with one connection */
    p.get.sink = offer_piece;
    p.get.sink_arg = &p;
    x.content_type = q.content_type;
    if (!st)
        st = pass_body(&p, to, &x, &refused);
    r->x = refused ? p.get : x;
    exchange_finish(refused ? &x : &p.get);
    buf_finish(&get_headers);
    buf_finish(&put_headers);
    finish_passing(&p);
    if (st)
        gpurest_http_response_free(r);
    else
        *out = r;
    return st;
}
