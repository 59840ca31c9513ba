/* The life of one request, from its request line to the last byte of its answer: MHD's callbacks. */
#include <assert.h>
#include <stdlib.h>

#include "base/log/crash.h"
#include "base/log/log.h"
#include "base/random.h"
#include "http/bounds.h"
#include "http/engine/internal.h"

/* ---- the state ---- */

/* A header whose framing is refused is answered from its line (http/engine/receive.c). What an I/O thread receives is answered by it, straight
 * from its body. A handler that waits is entered again. */
static const bool may[EXCHANGE_STATES][EXCHANGE_STATES] = {
    [EXCHANGE_LINE] = {[EXCHANGE_ENTERING] = true, [EXCHANGE_BODY] = true, [EXCHANGE_DROP] = true, [EXCHANGE_ANSWERED] = true},
    [EXCHANGE_ENTERING] = {[EXCHANGE_BODY] = true, [EXCHANGE_DROP] = true, [EXCHANGE_ANSWERED] = true},
    [EXCHANGE_BODY] = {[EXCHANGE_DROP] = true, [EXCHANGE_HANDLING] = true, [EXCHANGE_ANSWERED] = true},
    [EXCHANGE_DROP] = {[EXCHANGE_ANSWERED] = true},
    [EXCHANGE_HANDLING] = {[EXCHANGE_HANDLING] = true, [EXCHANGE_ANSWERED] = true},
};

void exchange_set_state(struct exchange *x, enum exchange_state next)
{
    assert(may[x->state][next]);
    x->state = next;
}

/* ---- beginning and end ---- */

static struct exchange *exchange_of(const struct request *r)
{
    return (struct exchange *)(uintptr_t)((const char *)r - offsetof(struct exchange, r));
}

static struct span port_header(const struct request *r, const char *name)
{
    return exchange_header(exchange_of(r), name);
}

static bool port_gone(const struct request *r)
{
    const struct exchange *x = exchange_of(r);

    return atomic_load(&x->gone) && !idempotent_goes_on(x);
}

static bool port_revoked(const struct request *r)
{
    return atomic_load(&exchange_of(r)->revoked);
}

static void wake(struct waker *w)
{
    loop_post((struct exchange *)(void *)((char *)w - offsetof(struct exchange, r.waker)), EXCHANGE_WOKEN);
}

static void init_request(struct exchange *x)
{
    struct request *r = &x->r;

    reply_init(&r->reply);
    r->app = x->loop->server->config.app;
    r->method = METHOD_COUNT; /* until it is known */
    r->waker.wake = wake;
    r->wake_at_ns = DEADLINE_NEVER;
    r->received_ns = x->progress_ns;
    r->caller = &x->loop->server->nobody;
    r->has_body_bytes = true;
    r->port = &x->port;
    x->port.header = port_header;
    x->port.gone = port_gone;
    x->port.held = &x->loop->server->held;
    x->port.revoked = port_revoked;
}

static bool split_target(struct exchange *x, const char *target)
{
    struct span copy = arena_copy(&x->r.arena, span_of(target));

    if (!copy.data)
        return false;
    x->r.path = span_cut(&copy, '?');
    x->port.query = copy;
    return true;
}

/* Zeros but for the arena. The problem is most of it, and is zeros already: its first memory was, and who keeps a spare clears one that was set. */
static void clear_exchange(struct exchange *x)
{
    const size_t problem = offsetof(struct exchange, r.problem), behind = problem + sizeof(struct problem);
    struct arena arena = x->r.arena;

    memset(x, 0, problem);
    memset((char *)x + behind, 0, sizeof *x - behind);
    x->r.problem.status = STATUS_OK;
    x->r.arena = arena;
}

/* Both blocks, of the exchange and of its arena, are larger than what the allocator has at hand. Those of the loop's last request, where a sanitizer
 * need not see who uses them too late, save 2,000 instructions of a launch (2026-11-29). */
static struct exchange *allocate_exchange(struct loop *loop)
{
    struct exchange *x = loop->spare ? loop->spare : calloc(1, sizeof *x);

    if (!x)
        return NULL;
    if (!loop->spare)
        arena_init(&x->r.arena, REQUEST_ARENA_BYTES);
    loop->spare = NULL;
    clear_exchange(x);
    return x;
}

struct exchange *exchange_create(struct connection *c, const char *target)
{
    struct exchange *x = allocate_exchange(c->loop);

    if (!x)
        return NULL;
    x->loop = c->loop;
    x->connection = c;
    x->mhd = c->mhd;
    x->client = c->client;
    x->progress_ns = now_ns();
    x->header_since_ns = c->used ? x->progress_ns : c->since_ns;
    init_request(x);
    if (!split_target(x, target) || !random_id("", x->r.id, sizeof x->r.id)) {
        exchange_free(x);
        return NULL;
    }
    c->exchange = x;
    c->used = true;
    loop_expect(x->loop, x->progress_ns);
    return x;
}

/* MHD must not find more requests in the bytes than the scanner of their framing. */
static bool is_scanned(struct connection *c)
{
    if (++c->begun <= c->framing.begun)
        return true;
    log_error("http", "unexpected start of a request; closing its connection");
    return false;
}

/* NULL makes the first call close the connection: no memory, or not to be served. */
void *exchange_begin(void *context, const char *target, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection              *c = info ? info->socket_context : NULL;

    (void)context;
    return c && is_scanned(c) ? exchange_create(c, target) : NULL;
}

static bool keep_as_spare(struct exchange *x)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)x;
    return false;
#else
    if (x->loop->spare)
        return false;
    arena_reset(&x->r.arena);
    if (x->r.problem.status != STATUS_OK)
        x->r.problem = (struct problem){0}; /* no word, no pointer of one caller's to the next */
    x->loop->spare = x;
    return true;
#endif
}

void exchange_free(struct exchange *x)
{
    buf_finish(&x->body);
    reply_finish(&x->r.reply);
    if (keep_as_spare(x))
        return;
    arena_finish(&x->r.arena);
    free(x);
}

void exchange_free_spare(struct loop *loop)
{
    if (loop->spare)
        arena_finish(&loop->spare->r.arena);
    free(loop->spare);
    loop->spare = NULL;
}

static void leave_counts(struct exchange *x)
{
    if (x->counted_caller)
        atomic_fetch_sub(&x->r.caller->in_flight, 1);
    if (x->counted)
        atomic_fetch_sub(&x->loop->server->in_flight, 1);
    request_release(&x->r);
}

/* Nothing is gathered for a line that nobody wants. */
static bool logs_access(void)
{
    return log_level_get(LOG_CATEGORY_ACCESS) >= LOG_LEVEL_INFO;
}

static void log_access(const struct exchange *x, uint64_t now)
{
    const struct request  *r = &x->r;
    char                   client[IP_TEXT_BYTES];
    const struct log_field fields[] = {
        {"method", span_of(r->method < METHOD_COUNT ? method_name(r->method) : "?"), 0},
        {"path", r->path, 0},
        {"status", {0}, r->reply.http_status},
        {"ms", {0}, (double)((now - r->received_ns) / NS_PER_US) / 1e3},
        {"body_bytes", {0}, r->has_body_bytes ? (double)r->body_bytes : -1},
        {"caller", span_of(r->caller->name), 0},
        {"client", span_of(client_ip_text(x, client)), 0},
    };

    log_request(r->id, r->trace);
    log_event(LOG_LEVEL_INFO, LOG_CATEGORY_ACCESS, r->endpoint ? r->endpoint->operation : "none", fields, COUNT(fields));
    log_request(NULL, NULL);
}

void exchange_completed(void *context, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode code)
{
    struct exchange *x = *request;
    uint64_t         now = now_ns();

    (void)context;
    *request = NULL;
    if (!x)
        return;
    if (code != MHD_REQUEST_TERMINATED_COMPLETED_OK)
        atomic_store(&x->gone, true);
    else if (x->stall_bound)
        MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT, loop_timeout_s(x->loop));
    if (!x->handler_ran)
        body_abort(x);
    if (x->r.on_finish)
        x->r.on_finish(&x->r);
    if (x->loop->server->config.leave)
        x->loop->server->config.leave(&x->r);
    server_metrics_note(x, now);
    if (logs_access())
        log_access(x, now);
    reply_finish(&x->r.reply);
    offload_forget(x);
    idempotent_end(x);
    leave_counts(x);
    x->connection->exchange = NULL;
    x->connection->since_ns = now;
    x->connection->looked = false;
    slot_rest(x->connection, now);
    receive_answered(x->connection);
    loop_expect(x->loop, now);
    /* Nobody can post it any more; a post that was made is still to be taken. */
    pthread_mutex_lock(&x->loop->post_lock);
    x->finished = x->posted;
    pthread_mutex_unlock(&x->loop->post_lock);
    if (!x->finished)
        exchange_free(x);
}

/* ---- waiting ---- */

/* While the executor has the request, wake_at_ns is the handler's. */
static void note_timer(struct exchange *x)
{
    if (!x->on_executor && x->r.wake_at_ns < x->loop->timer_ns)
        x->loop->timer_ns = x->r.wake_at_ns;
}

void exchange_suspend(struct exchange *x)
{
    MHD_suspend_connection(x->mhd);
    if (x->state == EXCHANGE_ENTERING || x->state == EXCHANGE_BODY ||
        (x->state == EXCHANGE_ANSWERED && !x->offload.given)) /* an I/O thread has it itself */
        pace_pause(&x->pace, now_ns());
    x->suspended = true;
    LIST_INSERT_HEAD(&x->loop->suspended, x, suspended_link);
    note_timer(x);
}

void exchange_resume(struct exchange *x)
{
    LIST_REMOVE(x, suspended_link);
    x->suspended = false;
    x->progress_ns = now_ns();
    pace_go_on(&x->pace, x->progress_ns);
    MHD_resume_connection(x->mhd);
}

/* True while the executor has it, or has just said that it must wait. */
static bool executor_keeps(struct exchange *x)
{
    if (!x->on_executor)
        return false;
    if (!x->executed)
        return true;
    if (x->executor_result != STATUS_PENDING)
        return false;
    x->on_executor = false;
    x->executed = false;
    note_timer(x);
    return !x->woken;
}

static enum place place_of(const struct exchange *x)
{
    return x->r.wants_executor || x->holds ? ON_EXECUTOR : x->r.endpoint->place;
}

enum status exchange_submit(struct exchange *x)
{
    enum status st;

    assert(!x->on_executor && !x->executed);
    st = executor_submit(x->loop->server->executor, x);
    x->on_executor = !st;
    return st ? st : STATUS_PENDING;
}

enum status exchange_executed(struct exchange *x)
{
    assert(x->executed);
    x->executed = false;
    x->on_executor = false;
    return x->executor_result;
}

/* PENDING while the handler waits, or the executor has it: also when it has just found out on the loop that it would block. */
static enum status run_or_submit(struct exchange *x)
{
    enum status st = STATUS_PENDING;

    if (x->executed)
        return exchange_executed(x);
    x->woken = false;
    if (place_of(x) == ON_LOOP)
        st = exchange_run_handler(x);
    return st == STATUS_PENDING && place_of(x) == ON_EXECUTOR ? exchange_submit(x) : st;
}

/* Once resumed, MHD may drop it before it asks for the answer; so one that goes on without its client is handled before that.
 * True while it waits. */
static bool waits_on(struct exchange *x)
{
    enum status st = run_or_submit(x);

    if (st == STATUS_PENDING)
        note_timer(x);
    else
        exchange_settle(x, st);
    return st == STATUS_PENDING;
}

void exchange_advance(struct exchange *x)
{
    if (x->offload.given) {
        if (x->offload.moved)
            offload_moved(x);
        return;
    }
    if (!x->suspended || executor_keeps(x) || (!x->woken && !x->executed))
        return;
    if (x->state == EXCHANGE_HANDLING && idempotent_goes_on(x) && waits_on(x))
        return;
    exchange_resume(x);
}

/* ---- the handler ---- */

/* What this thread's log lines, and its last words, are about; NULL: nothing. */
static void work_on(const struct request *r)
{
    log_request(r ? r->id : NULL, r ? r->trace : NULL);
    if (r && r->endpoint)
        crash_doing(method_name(r->endpoint->method), r->endpoint->path);
    else
        crash_doing(r ? "reading a request's header" : NULL, NULL);
}

enum status exchange_run_handler(struct exchange *x)
{
    bool        on_executor = x->r.wants_executor;
    enum status st = body_release(x);

    if (st)
        return st;
    x->handler_ran = true;
    work_on(&x->r);
    st = request_handle(&x->r);
    work_on(NULL);
    x->r.calls += st != STATUS_PENDING || x->r.wants_executor == on_executor; /* who only changes its place begins anew there */
    return st;
}

enum status exchange_run_prepare(struct exchange *x)
{
    enum status (*prepare)(struct request *) = x->r.prepare;
    enum status st;

    x->r.prepare = NULL;
    work_on(&x->r);
    st = prepare(&x->r);
    work_on(NULL);
    return st == STATUS_PENDING ? problem_set(&x->r.problem, STATUS_INTERNAL, "a body sink cannot wait here") : st;
}

static enum MHD_Result handle(struct exchange *x)
{
    enum status st;

    if (x->state == EXCHANGE_ANSWERED)
        return exchange_send(x);
    if (x->state == EXCHANGE_DROP || x->failure)
        return exchange_answer(x, x->failure);
    st = x->state == EXCHANGE_BODY ? body_end(x) : STATUS_OK;
    if (st)
        return body_refuse(x, st);
    exchange_set_state(x, EXCHANGE_HANDLING);
    if (idempotent_replays(x))
        return exchange_answer(x, idempotent_replay(x));
    st = run_or_submit(x);
    if (st != STATUS_PENDING)
        return exchange_answer(x, st);
    exchange_suspend(x);
    return MHD_YES;
}

/* ---- MHD's calls ---- */

/* A refused request keeps its connection if what is left of it is harmless to read. */
static bool worth_draining(const struct exchange *x)
{
    return !x->close_after && !x->chunked && x->r.body_bytes <= REFUSED_BODY_DRAIN_BYTES && request_header(&x->r, "Expect").bytes == 0;
}

/* Nothing of the body was read. */
static enum MHD_Result admitted(struct exchange *x)
{
    if (!x->failure) {
        exchange_set_state(x, EXCHANGE_BODY);
        buf_init(&x->body, x->body_max);
        return MHD_YES;
    }
    if (x->failure == STATUS_PENDING) {
        if (x->state == EXCHANGE_LINE)
            exchange_set_state(x, EXCHANGE_ENTERING);
        exchange_suspend(x);
        return MHD_YES;
    }
    body_abort(x);
    exchange_set_state(x, EXCHANGE_DROP);
    slot_rest(x->connection, now_ns());
    x->close_after |= x->connection->slot.kind == SLOT_RESERVED;
    if (worth_draining(x))
        return MHD_YES;
    x->connection->linger = true;
    return exchange_answer(x, x->failure);
}

/* It waited before its body, and was woken. */
static enum MHD_Result enter_again(struct exchange *x)
{
    x->woken = false;
    work_on(&x->r);
    x->failure = exchange_enter(x);
    work_on(NULL);
    return admitted(x);
}

/* What it changed would be answered, and kept by nobody. */
static bool begins_too_late(const struct exchange *x)
{
    return atomic_load(&x->loop->server->stopping);
}

static enum MHD_Result first_call(struct exchange *x, const char *method, const char *version)
{
    atomic_fetch_add(&x->loop->server->in_flight, 1);
    x->counted = true;
    x->progress_ns = now_ns();
    pace_start(&x->pace, x->progress_ns);
    x->failure = exchange_guard(x, version);
    x->close_after = x->failure != STATUS_OK;
    work_on(&x->r);
    if (!x->failure)
        x->failure = begins_too_late(x) ? problem_set(&x->r.problem, STATUS_DRAINING, "the service is stopping")
                                        : exchange_admit(x, span_of(method));
    work_on(NULL);
    return admitted(x);
}

enum MHD_Result exchange_call(void *context, struct MHD_Connection *mhd, const char *url, const char *method, const char *version,
                              const char *upload, size_t *upload_bytes, void **request)
{
    struct loop     *loop = context;
    struct exchange *x = *request;

    (void)mhd;
    (void)url;
    if (!x || loop->cut || x->offload.receiving)
        return MHD_NO;
    if (x->state == EXCHANGE_LINE)
        return first_call(x, method, version);
    if (x->state == EXCHANGE_ENTERING)
        return enter_again(x);
    return *upload_bytes ? body_call(x, upload, upload_bytes) : handle(x);
}
