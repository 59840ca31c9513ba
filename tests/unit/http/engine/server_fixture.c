/* The server under test and its client. */
#include "unit/http/engine/server_fixture.h"
#include "http/bounds.h"
#include "http/filter/idempotency.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/deadline.h"
#include "http/json/json.h"
#include "unit/http/engine/memory_endpoints.h"

struct counters counters;

/* ---- a thread that fires wakers ---- */

static struct firing {
    pthread_mutex_t lock;
    pthread_cond_t  work;
    pthread_t       thread;
    struct waker   *list;
    bool            stop;
} firing = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, NULL, false};

void fire_later(struct waker *w)
{
    fire_not(w);
    pthread_mutex_lock(&firing.lock);
    w->next = firing.list;
    firing.list = w;
    pthread_cond_signal(&firing.work);
    pthread_mutex_unlock(&firing.lock);
}

void fire_not(struct waker *w)
{
    pthread_mutex_lock(&firing.lock);
    for (struct waker **at = &firing.list; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    w->next = NULL;
    pthread_mutex_unlock(&firing.lock);
}

static void *fire(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&firing.lock);
    while (!firing.stop) {
        struct waker *w = firing.list;
        if (!w) {
            pthread_cond_wait(&firing.work, &firing.lock);
            continue;
        }
        firing.list = w->next;
        w->next = NULL;
        w->wake(w);
    }
    pthread_mutex_unlock(&firing.lock);
    return NULL;
}

/* ---- endpoints ---- */

static void count_finish(struct request *r)
{
    fire_not(&r->waker);
    atomic_fetch_add(&counters.finishes, 1);
}

static enum status begin_count(struct request *r)
{
    atomic_fetch_add(&counters.begins, 1);
    r->on_finish = count_finish;
    return STATUS_OK;
}

static enum status echo(struct request *r)
{
    return reply_json(&r->reply, 200, r->body);
}

static enum status hello(struct request *r)
{
    return reply_text(&r->reply, 200, "text/plain", span_of(r->caller->name));
}

static enum status empty(struct request *r)
{
    return reply_empty(&r->reply, 204);
}

static enum status silent(struct request *r)
{
    (void)r;
    return STATUS_OK;
}

static enum status too_much(struct request *r)
{
    for (int i = 0; i <= REPLY_HEADERS_MAX; i++)
        reply_header(&r->reply, "X-Many", "%d", i);
    return reply_empty(&r->reply, 204);
}

static enum status fails(struct request *r)
{
    return problem_field(&r->problem, STATUS_ARGUMENT_MISMATCH, "/args/3", "size", "expected 4, got 8");
}

static enum status woken(struct request *r)
{
    if (r->calls < 3) {
        fire_later(&r->waker);
        return STATUS_PENDING;
    }
    return reply_text(&r->reply, 200, "text/plain", SPAN_LITERAL("woken"));
}

static enum status timer(struct request *r)
{
    if (r->calls == 0) {
        r->wake_at_ns = deadline_after_ms(20);
        r->progress = (void *)(uintptr_t)r->wake_at_ns;
        return STATUS_PENDING;
    }
    if (now_ns() < (uintptr_t)r->progress)
        return problem_set(&r->problem, STATUS_INTERNAL, "called too early");
    return reply_text(&r->reply, 200, "text/plain", SPAN_LITERAL("timer"));
}

static void never_finish(struct request *r)
{
    atomic_fetch_sub(&counters.waiting, 1);
    atomic_fetch_add(&counters.finishes, 1);
    (void)r;
}

static enum status never(struct request *r)
{
    if (r->calls == 0) {
        r->on_finish = never_finish;
        atomic_fetch_add(&counters.waiting, 1);
    }
    if (!request_gone(r))
        return STATUS_PENDING;
    atomic_fetch_add(&counters.saw_gone, 1);
    return reply_empty(&r->reply, 204);
}

static struct gate {
    pthread_mutex_t lock;
    pthread_cond_t  opened;
    bool            open;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

void open_gate(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.opened);
    pthread_mutex_unlock(&gate.lock);
}

static enum status blocks(struct request *r)
{
    atomic_fetch_add(&counters.running, 1);
    pthread_mutex_lock(&gate.lock);
    while (!gate.open)
        pthread_cond_wait(&gate.opened, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    atomic_fetch_sub(&counters.running, 1);
    return reply_text(&r->reply, 200, "text/plain", SPAN_LITERAL("unblocked"));
}

/* Delays its loop: posts to it wait meanwhile. */
static enum status lags(struct request *r)
{
    enum status st = blocks(r);

    usleep(300 * 1000);
    return st;
}

static enum status large(struct request *r)
{
    char *text = arena_alloc(&r->arena, LARGE_BYTES);

    cr_assert_not_null(text);
    for (size_t i = 0; i < LARGE_BYTES; i++)
        text[i] = (char)('a' + i % 23);
    return reply_text(&r->reply, 200, "text/plain", (struct span){text, LARGE_BYTES});
}

/* A sink that counts and sums, and returns PENDING at every other call. */
struct summing {
    struct body_sink sink;
    struct request  *r;
    uint64_t         bytes, sum;
    unsigned         calls;
    bool             refuses;
};

static enum status sum_write(struct body_sink *s, struct request *r, struct span piece, size_t *consumed)
{
    struct summing *me = (struct summing *)(void *)s;
    size_t          n = piece.bytes < 4096 ? piece.bytes : 4096;

    if (me->refuses && me->bytes > 8192)
        return problem_set(&r->problem, STATUS_DEVICE_MEMORY_EXHAUSTED, "refused in the middle");
    if (me->calls++ % 2) {
        fire_later(&r->waker);
        return STATUS_PENDING;
    }
    for (size_t i = 0; i < n; i++)
        me->sum = me->sum * 31 + (unsigned char)piece.data[i];
    me->bytes += n;
    *consumed = n;
    return STATUS_OK;
}

static void sum_abort(struct body_sink *s)
{
    fire_not(&((struct summing *)(void *)s)->r->waker);
    atomic_fetch_add(&counters.aborts, 1);
}

static enum status sink_begin(struct request *r)
{
    struct summing *me = arena_alloc(&r->arena, sizeof *me);

    if (span_is(r->params[0], "early"))
        return problem_set(&r->problem, STATUS_BUFFER_NOT_FOUND, "refused before the body");
    me->sink = (struct body_sink){.write = sum_write, .abort = sum_abort};
    me->r = r;
    me->refuses = span_is(r->params[0], "refuses");
    r->sink = &me->sink;
    r->on_finish = count_finish;
    atomic_fetch_add(&counters.sinks, 1);
    return STATUS_OK;
}

static enum status sink_end(struct request *r)
{
    struct summing *me = (struct summing *)(void *)r->sink;
    char           *text = arena_printf(&r->arena, "%llu %llu", (unsigned long long)me->bytes, (unsigned long long)me->sum);

    atomic_fetch_add(&counters.sinks_handled, 1);
    return reply_text(&r->reply, 200, "text/plain", span_of(text));
}

/* 8 MiB in uneven pieces with PENDING between. */
struct pieces {
    struct body_source source;
    struct waker      *registered;
    uint64_t           at, fails_at;
    unsigned           calls;
};

static enum status pieces_read(struct body_source *s, char *to, size_t room, size_t *bytes, struct waker *w)
{
    struct pieces *me = (struct pieces *)(void *)s;
    size_t         n = 70001;

    if (me->at >= me->fails_at)
        return STATUS_DEVICE_ERROR;
    if (me->calls++ % 2) {
        me->registered = w;
        fire_later(w);
        return STATUS_PENDING;
    }
    n = n < room ? n : room;
    for (size_t i = 0; i < n; i++)
        to[i] = (char)((me->at + i) * 7 >> 3);
    me->at += n;
    *bytes = n;
    return STATUS_OK;
}

static void pieces_close(struct body_source *s)
{
    struct pieces *me = (struct pieces *)(void *)s;

    if (me->registered)
        fire_not(me->registered);
    atomic_fetch_add(&counters.closes, 1);
    free(me);
}

static enum status give_pieces(struct request *r, uint64_t fails_at)
{
    struct pieces *me = calloc(1, sizeof *me);

    *me = (struct pieces){.source = {.read = pieces_read, .close = pieces_close}, .fails_at = fails_at};
    atomic_fetch_add(&counters.sources, 1);
    reply_header(&r->reply, "ETag", "\"1.2\"");
    return reply_source_take(&r->reply, 200, &me->source, BIG_BYTES);
}

static enum status big(struct request *r)
{
    return give_pieces(r, UINT64_MAX);
}

static enum status broken(struct request *r)
{
    return give_pieces(r, BIG_BYTES / 2);
}

/* A pipe's read end, with "in the pipe" in the pipe. */
static enum status descriptor(struct request *r)
{
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], "in the pipe", 11), 11);
    close(ends[1]);
    reply_text(&r->reply, 200, "text/plain", r->is_local ? SPAN_LITERAL("local") : SPAN_LITERAL("remote"));
    reply_descriptor_take(&r->reply, ends[0]);
    return STATUS_OK;
}

static const struct endpoint table[] = {
    {"hello", METHOD_GET, "/hello", hello, begin_count, BODY_NONE, SCOPE_READ, .place = ON_LOOP, .query = {"x"}},
    {"probe", METHOD_GET, "/probe", hello, NULL, BODY_NONE, SCOPE_NONE, .place = ON_EXECUTOR, .probe = true},
    {"open", METHOD_GET, "/open", hello, NULL, BODY_NONE, SCOPE_NONE, .place = ON_LOOP},
    {"admin", METHOD_GET, "/admin", hello, NULL, BODY_NONE, SCOPE_ADMIN, .place = ON_LOOP},
    {"empty", METHOD_DELETE, "/hello", empty, begin_count, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"echo", METHOD_POST, "/echo", echo, begin_count, BODY_JSON, SCOPE_READ, .place = ON_LOOP},
    {"echo_executor", METHOD_POST, "/executor", echo, begin_count, BODY_JSON, SCOPE_READ, .place = ON_EXECUTOR},
    {"source", METHOD_POST, "/source", echo, begin_count, BODY_SOURCE, SCOPE_READ, .place = ON_LOOP},
    {"descriptor", METHOD_POST, "/descriptor", descriptor, NULL, BODY_JSON, SCOPE_READ, .place = ON_LOOP},
    {"descriptor_executor", METHOD_POST, "/descriptor-executor", descriptor, NULL, BODY_JSON, SCOPE_READ, .place = ON_EXECUTOR},
    {"silent", METHOD_GET, "/silent", silent, NULL, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"too_much", METHOD_GET, "/too-much", too_much, NULL, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"fails", METHOD_GET, "/fails", fails, NULL, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"woken", METHOD_GET, "/woken", woken, begin_count, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"woken_executor", METHOD_GET, "/woken-executor", woken, begin_count, BODY_NONE, SCOPE_READ, .place = ON_EXECUTOR},
    {"timer", METHOD_GET, "/timer", timer, NULL, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"timer_executor", METHOD_GET, "/timer-executor", timer, NULL, BODY_NONE, SCOPE_READ, .place = ON_EXECUTOR},
    {"never", METHOD_GET, "/never", never, NULL, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"never_executor", METHOD_GET, "/never-executor", never, NULL, BODY_NONE, SCOPE_READ, .place = ON_EXECUTOR},
    {"blocks", METHOD_GET, "/blocks", blocks, NULL, BODY_NONE, SCOPE_READ, .place = ON_EXECUTOR},
    {"blocks_loop", METHOD_GET, "/blocks-loop", blocks, NULL, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"lags_loop", METHOD_GET, "/lags-loop", lags, NULL, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"large", METHOD_GET, "/large", large, NULL, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"sink", METHOD_PUT, "/sink/{id}", sink_end, sink_begin, BODY_STREAM, SCOPE_WRITE, .place = ON_LOOP},
    {"either", METHOD_POST, "/either/{id}", sink_end, sink_begin, BODY_EITHER, SCOPE_WRITE, .place = ON_EXECUTOR},
    {"memory_put", METHOD_PUT, "/memory/{id}", memory_put, memory_put_begin, BODY_STREAM, SCOPE_WRITE, .place = ON_EXECUTOR},
    {"memory_get", METHOD_GET, "/memory/{id}", memory_get, NULL, BODY_NONE, SCOPE_READ, .place = ON_EXECUTOR},
    {"big", METHOD_GET, "/big", big, NULL, BODY_NONE, SCOPE_READ, .place = ON_LOOP},
    {"broken", METHOD_GET, "/broken", broken, NULL, BODY_NONE, SCOPE_READ, .place = ON_EXECUTOR},
};

/* ---- server ---- */

static struct auth        *auth;
static struct idempotency *idempotency;

static void count_problem(void *app, enum status st)
{
    (void)app, (void)st;
    atomic_fetch_add(&counters.problems, 1);
}

static struct server *running;

struct server *start_server(struct server_options o)
{
    const char          *listen[] = {"127.0.0.1:0", o.unix_path};
    static const char   *hosts[] = {"gpu.example"}, *origins[] = {"https://ok.example"};
    struct server       *s = NULL;
    struct problem       why = {0};
    struct server_config config = {
        .endpoints = table,
        .endpoints_count = COUNT(table),
        .listen = listen,
        .listen_count = o.unix_path ? 2 : 1,
        .hosts = hosts,
        .hosts_count = 1,
        .origins = origins,
        .origins_count = 1,
        .loop_threads = o.loops ? o.loops : 1,
        .io_threads = o.io_threads,
        .connections_max = 1000,
        .connections_per_address_max = o.per_address ? o.per_address : 1000,
        .requests_per_s = o.requests_per_s,
        .token_failures_per_minute = o.token_failures,
        .body_bytes_per_s = o.body_bytes_per_s,
        .answer_bytes_per_s = o.answer_bytes_per_s,
        .body_grace_s = 1,
        .header_deadline_s = o.header_deadline_s ? o.header_deadline_s : 30,
        .body_stall_s = o.body_stall_s ? o.body_stall_s : 30,
        .idle_s = o.idle_s ? o.idle_s : 30,
        .on_problem = count_problem,
    };

    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(auth_create(&auth, o.tokens, &why), STATUS_OK, "%s", why.detail);
    config.auth = auth;
    cr_assert_eq(idempotency_create(&idempotency), STATUS_OK);
    config.idempotency = idempotency;
    pthread_create(&firing.thread, NULL, fire, NULL);
    cr_assert_eq(server_create(&s, &config, &why), STATUS_OK, "%s", why.detail);
    running = s;
    return s;
}

void stop_server(void)
{
    if (!running)
        return;
    server_destroy(running);
    running = NULL;
    pthread_mutex_lock(&firing.lock);
    firing.stop = true;
    pthread_cond_signal(&firing.work);
    pthread_mutex_unlock(&firing.lock);
    pthread_join(firing.thread, NULL);
    auth_destroy(auth);
    idempotency_destroy(idempotency);
}

bool reaches(atomic_uint *value, unsigned wanted)
{
    uint64_t deadline = deadline_after_ms(20 * 1000);

    while (atomic_load(value) != wanted && deadline_left_ns(deadline))
        poll(NULL, 0, 2);
    return atomic_load(value) == wanted;
}

/* ---- client ---- */

struct client client_connect(const struct server *s)
{
    const char        *colon = strrchr(server_address(s, 0), ':');
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval     limit = {20, 0};
    struct client      c = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    cr_assert(c.fd >= 0);
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    cr_assert_eq(connect(c.fd, (struct sockaddr *)&a, sizeof a), 0);
    return c;
}

struct client client_connect_unix(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct timeval     limit = {20, 0};
    struct client      c = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    cr_assert(c.fd >= 0 && span_copy(span_of(path), a.sun_path, sizeof a.sun_path));
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    cr_assert_eq(connect(c.fd, (struct sockaddr *)&a, sizeof a), 0);
    return c;
}

static void answer_free(struct answer *a)
{
    free(a->head);
    free(a->buffer);
    *a = (struct answer){0};
}

void client_close(struct client *c)
{
    close(c->fd);
    free(c->held);
    answer_free(&c->answer);
    *c = (struct client){.fd = -1};
}

void client_send(struct client *c, struct span text)
{
    while (text.bytes) {
        ssize_t n = send(c->fd, text.data, text.bytes, MSG_NOSIGNAL);
        if (n <= 0)
            return; /* refused while sending: the answer says why */
        text = span_from(text, (size_t)n);
    }
}

void client_text(struct client *c, const char *format, ...)
{
    va_list args;
    char   *text;
    int     n;

    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    cr_assert(n >= 0);
    client_send(c, (struct span){text, (size_t)n});
    free(text);
}

static bool receive_more(struct client *c)
{
    ssize_t n;

    c->held = realloc(c->held, c->held_bytes + 65537);
    n = recv(c->fd, c->held + c->held_bytes, 65536, 0);
    if (n <= 0)
        return false;
    c->held_bytes += (size_t)n;
    c->held[c->held_bytes] = '\0';
    return true;
}

static void take(struct client *c, size_t bytes)
{
    c->held_bytes -= bytes;
    memmove(c->held, c->held + bytes, c->held_bytes);
    c->held[c->held_bytes] = '\0';
}

struct span answer_header(const struct answer *a, const char *name)
{
    struct span rest = span_of(a->head);

    while (rest.bytes) {
        struct span value = span_cut(&rest, '\n');
        struct span found = span_cut(&value, ':');
        if (value.bytes && value.data[value.bytes - 1] == '\r')
            value.bytes--;
        if (span_equal_nocase(found, span_of(name)))
            return span_trim(value);
    }
    return (struct span){NULL, 0};
}

static unsigned read_answer(struct client *c, bool head)
{
    struct answer *out = &c->answer;
    char          *end;
    uint64_t       length = 0;
    size_t         head_bytes;

    answer_free(out);
    while (!c->held || !(end = strstr(c->held, "\r\n\r\n")))
        if (!receive_more(c))
            return 0;
    head_bytes = (size_t)(end - c->held) + 4;
    out->head = strndup(c->held, head_bytes);
    out->status = (unsigned)atoi(out->head + 9);
    if (!head && out->status >= 200 && out->status != 204 && out->status != 304)
        span_u64(answer_header(out, "Content-Length"), &length);
    take(c, head_bytes);
    while (c->held_bytes < length)
        if (!receive_more(c)) {
            answer_free(out);
            return 0;
        }
    out->buffer = malloc(length + 1);
    memcpy(out->buffer, c->held, length);
    out->buffer[length] = '\0';
    out->body = (struct span){out->buffer, length};
    take(c, length);
    return out->status;
}

unsigned client_read(struct client *c)
{
    return read_answer(c, false);
}

unsigned client_read_head(struct client *c)
{
    return read_answer(c, true);
}

bool client_at_end(struct client *c)
{
    char byte;

    return c->held_bytes == 0 && recv(c->fd, &byte, 1, 0) == 0;
}

unsigned client_get(struct client *c, const char *path)
{
    client_text(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    return client_read(c);
}
