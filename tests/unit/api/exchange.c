/* Plays the server's part: begin, body, the handler until it no longer returns PENDING, then the end. */
#include "exchange.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "api/endpoints.h"
#include "support/fake_pool.h"

static struct app    app;
static struct config config;
static struct caller caller = {.name = "anonymous", .sessions_max = SESSIONS_PER_CALLER_MAX, .memory_max_bytes = MEMORY_LIMIT_NONE};

struct app *the_app(void)
{
    return &app;
}

void app_start(void)
{
    struct registry_config rc = {.node = "", .sessions_max = SESSIONS_MAX};

    fake_pool_start(4);
    config = (struct config){.node = (char *)(uintptr_t) "", .endpoint = (char *)(uintptr_t) ""};
    app = (struct app){.config = &config, .pool = fake_pool()};
    rc.pool = app.pool;
    cr_assert_eq(registry_create(&app.registry, &rc), STATUS_OK);
    cr_assert_eq(auth_create(&app.auth, NULL, NULL), STATUS_OK);
}

void app_stop(void)
{
    registry_destroy(app.registry);
    auth_destroy(app.auth);
    cr_assert_eq(fake_live_allocations(), 0);
}

/* ---- the server's side ---- */

struct side {
    struct request_port port;
    struct exchange    *x;
    pthread_mutex_t     lock;
    pthread_cond_t      woken;
    bool                awake;
    bool                gone;
};

static struct side side;

static struct span header_of(const struct request *r, const char *name)
{
    (void)r;
    if (strcasecmp(name, "Content-Type") == 0)
        return span_of(side.x->type);
    for (size_t i = 0; i < EXCHANGE_HEADERS_MAX && side.x->headers[i][0]; i++)
        if (strcasecmp(side.x->headers[i][0], name) == 0)
            return span_of(side.x->headers[i][1]);
    return (struct span){0};
}

static bool gone(const struct request *r)
{
    (void)r;
    return side.gone;
}

static void wake(struct waker *w)
{
    (void)w;
    pthread_mutex_lock(&side.lock);
    side.awake = true;
    pthread_cond_signal(&side.woken);
    pthread_mutex_unlock(&side.lock);
}

static void sleep_until_woken(uint64_t wake_at_ns)
{
    struct timespec until = timespec_of_ns(wake_at_ns == DEADLINE_NEVER ? deadline_after_ns(60 * NS_PER_S) : wake_at_ns);

    pthread_mutex_lock(&side.lock);
    while (!side.awake)
        if (pthread_cond_timedwait(&side.woken, &side.lock, &until)) {
            cr_assert_neq(wake_at_ns, DEADLINE_NEVER, "never woken");
            break;
        }
    side.awake = false;
    pthread_mutex_unlock(&side.lock);
}

/* PENDING: the request must also be woken. */
static enum status run_prepare(struct request *r)
{
    enum status (*prepare)(struct request *) = r->prepare;

    r->prepare = NULL;
    return prepare ? prepare(r) : STATUS_PENDING;
}

static enum status feed(struct request *r)
{
    struct span rest = r->sink ? side.x->body : (struct span){0};

    while (rest.bytes) {
        struct span piece = span_first(rest, EXCHANGE_PIECE_BYTES);
        size_t      consumed;
        enum status st = body_sink_write(r->sink, r, piece, &consumed);

        cr_assert_leq(consumed, piece.bytes);
        rest = span_from(rest, consumed);
        if (st == STATUS_PENDING)
            st = run_prepare(r);
        if (st && st != STATUS_PENDING)
            return st;
        if (side.x->client_leaves)
            return STATUS_CANCELLED;
        if (st == STATUS_PENDING)
            sleep_until_woken(DEADLINE_NEVER);
    }
    return STATUS_OK;
}

static enum status handle(struct request *r)
{
    enum status st;
    bool        on_executor = false;

    while ((st = request_handle(r)) == STATUS_PENDING) {
        if (r->wants_executor && !on_executor) { /* starts again there, at once */
            on_executor = true;
            continue;
        }
        r->calls++;
        side.gone = side.x->client_leaves;
        if (!side.gone)
            sleep_until_woken(r->wake_at_ns);
    }
    return st;
}

static void collect(struct exchange *x, struct reply *reply)
{
    char        piece[512];
    size_t      got;
    enum status st;
    uint64_t    left = reply->source_bytes;

    buf_init(&x->text, 1 << 24);
    if (!reply->source) {
        buf_add_span(&x->text, buf_span(&reply->body));
        return;
    }
    while (x->request.method != METHOD_HEAD && left) {
        st = body_source_read(reply->source, piece, left < sizeof piece ? left : sizeof piece, &got, &x->request.waker);
        cr_assert(st == STATUS_OK || st == STATUS_PENDING, "%s", status_code(st));
        buf_add(&x->text, piece, got);
        left -= got;
        if (st == STATUS_PENDING)
            sleep_until_woken(DEADLINE_NEVER);
    }
}

static void route(struct exchange *x)
{
    struct request        *r = &x->request;
    struct span            rest = span_of(x->target);
    struct route           found;
    size_t                 count;
    const struct endpoint *table = endpoints_table(&count);

    cr_assert(method_parse(span_of(x->method), &r->method));
    r->path = span_cut(&rest, '?');
    side.port.query = rest;
    route_find(table, count, r->method, r->path, &found);
    cr_assert_eq(found.status, STATUS_OK, "%s %s", x->method, x->target);
    r->endpoint = found.endpoint;
    memcpy(r->params, found.params, sizeof r->params);
}

static bool streamed(const struct exchange *x)
{
    enum body_kind kind = x->request.endpoint->body;
    return kind == BODY_STREAM || (kind == BODY_BATCH && strcmp(x->type, BATCH_TYPE) == 0) ||
           (kind == BODY_EITHER && strcmp(x->type, "application/octet-stream") == 0);
}

static void prepare(struct exchange *x)
{
    struct request *r = &x->request;

    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    side = (struct side){.port = {.header = header_of, .gone = gone}, .x = x};
    pthread_mutex_init(&side.lock, NULL);
    pthread_cond_init(&side.woken, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *r = (struct request){.id = "test",
                          .caller = &caller,
                          .app = &app,
                          .port = &side.port,
                          .wake_at_ns = DEADLINE_NEVER,
                          .received_ns = now_ns(),
                          .waker = {.wake = wake}};
    r->has_body_bytes = !x->chunked;
    r->body_bytes = x->chunked ? 0 : x->body.bytes;
    arena_init(&r->arena, REQUEST_ARENA_BYTES);
    reply_init(&r->reply);
}

void exchange_do(struct exchange *x)
{
    struct request *r = &x->request;

    prepare(x);
    route(x);
    if (!streamed(x))
        r->body = x->body;
    x->status = request_begin(r);
    if (!x->status)
        x->status = feed(r);
    if (!x->status)
        x->status = handle(r);
    x->problem = r->problem;
    x->http = x->status ? status_http(x->status) : r->reply.http_status;
    collect(x, &r->reply);
}

const char *exchange_answered(const struct exchange *x, const char *name)
{
    for (unsigned i = 0; i < x->request.reply.headers_count; i++)
        if (strcasecmp(x->request.reply.headers[i].name, name) == 0)
            return x->request.reply.headers[i].value;
    return NULL;
}

void exchange_close(struct exchange *x)
{
    reply_finish(&x->request.reply);
    if (x->request.on_finish)
        x->request.on_finish(&x->request);
    arena_finish(&x->request.arena);
    buf_finish(&x->text);
    pthread_cond_destroy(&side.woken);
    pthread_mutex_destroy(&side.lock);
}

unsigned ask(const char *method, const char *target, const char *json, char text[4096])
{
    struct exchange x = {.method = method, .target = target, .type = "application/json", .body = span_of(json)};
    unsigned        http;

    exchange_do(&x);
    http = x.http;
    if (text)
        snprintf(text, 4096, "%s", x.status ? status_code(x.status) : x.text.data ? x.text.data : "");
    exchange_close(&x);
    return http;
}
