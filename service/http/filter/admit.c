/* The checks after the framing guard: Host, caller, route, scope, body rules, the caller's load, and the endpoint's own begin. */
#include "http/engine/internal.h"
#include "http/filter/auth_throttle.h"

#define JSON_TYPE   "application/json"
#define OCTETS_TYPE "application/octet-stream"

/* ---- caller and route ---- */

static enum status must_wait(struct exchange *x, uint64_t wait_ns)
{
    x->r.problem.retry_after_ms = (uint32_t)(wait_ns / NS_PER_MS + 1);
    return STATUS_RATE_LIMITED;
}

/* The request carries a token. `found` is the token's caller, or NULL. */
static enum status judge_guess(struct exchange *x, const struct caller *found, enum status st)
{
    struct connection  *c = x->connection;
    struct peer_address from;
    uint64_t            wait_ns;

    if (c->is_unix || (found && found == c->let_in && !c->is_trusted)) /* a trusted proxy carries the requests of many clients */
        return st;
    from = client_address(x);
    if (!auth_throttle_admit(x->loop->server->auth_throttle, from.bytes, found, now_ns(), &wait_ns)) {
        problem_set(&x->r.problem, STATUS_RATE_LIMITED, "this address has sent too many invalid tokens");
        return must_wait(x, wait_ns);
    }
    c->let_in = found;
    return st;
}

static enum status find_caller(struct exchange *x, const struct route *route)
{
    struct server *s = x->loop->server;
    struct span    header = exchange_header(x, "Authorization");
    bool           open = route->endpoint && route->endpoint->scope == SCOPE_NONE;
    struct caller *found = NULL;
    enum status    st = auth_admit(s->config.auth, header, &found, &x->grant, &x->r.problem);

    if (header.bytes && auth_has_tokens(s->config.auth))
        st = judge_guess(x, found, st);
    if (st && !open)
        return st;
    x->r.caller = st ? &s->nobody : found;
    return STATUS_OK;
}

/* Pages that are open to everyone do not count. */
static enum status check_rate(struct exchange *x, const struct route *route)
{
    struct caller *c = x->r.caller;
    uint32_t       rate = __atomic_load_n(&c->requests_per_s, __ATOMIC_RELAXED);
    uint64_t       wait_ns;

    if (route->endpoint && route->endpoint->scope == SCOPE_NONE)
        return STATUS_OK;
    if (rate == REQUESTS_PER_S_UNSET)
        rate = server_rate(x->loop->server);
    if (!rate || rate_take(&c->requests, NS_PER_S / rate, rate, now_ns(), &wait_ns))
        return STATUS_OK;
    problem_limit(&x->r.problem, STATUS_RATE_LIMITED, "requests_per_s", rate, rate, 1);
    return must_wait(x, wait_ns);
}

static enum status take_route(struct exchange *x, const struct route *route)
{
    if (route->status == STATUS_METHOD_NOT_ALLOWED) {
        span_copy(span_of(route->allow), x->allow, sizeof x->allow);
        return problem_set(&x->r.problem, route->status, "allowed methods: %s", route->allow);
    }
    if (!route->endpoint)
        return problem_set(&x->r.problem, STATUS_NOT_FOUND, "no such path");
    x->r.endpoint = route->endpoint;
    return request_take_params(&x->r, route);
}

/* A reload may change the scopes meanwhile. */
static enum status check_scope(struct exchange *x)
{
    unsigned has = __atomic_load_n(&x->r.caller->scopes, __ATOMIC_RELAXED);
    unsigned needs = x->r.endpoint->scope;

    if ((has & needs) == needs)
        return STATUS_OK;
    return problem_set(&x->r.problem, STATUS_INSUFFICIENT_SCOPE, "the token lacks a scope that this operation needs");
}

/* Refuses conditions on endpoints that ignore them: a write must not bypass its condition. */
static enum status check_conditional(struct exchange *x)
{
    static const char *const fields[] = {"If-Match", "If-None-Match"};

    if (x->r.method == METHOD_GET || x->r.method == METHOD_HEAD || x->r.endpoint->conditional)
        return STATUS_OK;
    for (size_t i = 0; i < COUNT(fields); i++)
        if (exchange_header(x, fields[i]).data)
            return problem_set(&x->r.problem, STATUS_INVALID_HEADER,
                               "this operation does not support %s and was not executed; send the request without it", fields[i]);
    return STATUS_OK;
}

/* ---- body ---- */

static bool has_body(const struct exchange *x)
{
    return x->chunked || x->r.body_bytes > 0;
}

static enum status refuse_type(struct exchange *x, const char *accept)
{
    x->accept = accept;
    return problem_set(&x->r.problem, STATUS_UNSUPPORTED_MEDIA_TYPE, "the body's media type must be %s", accept);
}

static enum status check_codings(struct exchange *x)
{
    struct span coding = span_trim(exchange_header(x, "Content-Encoding"));
    struct span expect = span_trim(exchange_header(x, "Expect"));

    if (coding.bytes && !span_equal_nocase(coding, SPAN_LITERAL("identity")))
        return problem_set(&x->r.problem, STATUS_UNSUPPORTED_MEDIA_TYPE, "Content-Encoding is not supported; send the body without it");
    if (expect.data && !span_equal_nocase(expect, SPAN_LITERAL("100-continue")))
        return problem_set(&x->r.problem, STATUS_EXPECTATION_FAILED, "the only supported expectation is 100-continue");
    return STATUS_OK;
}

static enum status collect_up_to(struct exchange *x, const char *name, size_t max)
{
    x->body_max = max;
    x->body_max_name = name;
    if (x->r.has_body_bytes && x->r.body_bytes > max)
        return problem_limit(&x->r.problem, STATUS_BODY_TOO_LARGE, name, max, 0, x->r.body_bytes);
    return STATUS_OK;
}

static enum status check_json(struct exchange *x, struct span type)
{
    if ((has_body(x) || type.bytes) && !span_equal_nocase(type, SPAN_LITERAL(JSON_TYPE)))
        return refuse_type(x, JSON_TYPE);
    return collect_up_to(x, "json_body_bytes", JSON_BODY_BYTES_MAX);
}

/* Clients such as curl -T send no Content-Type. */
static enum status check_stream(struct exchange *x, struct span type)
{
    if (type.bytes && !span_equal_nocase(type, SPAN_LITERAL(OCTETS_TYPE)))
        return refuse_type(x, OCTETS_TYPE);
    x->streams = true;
    return STATUS_OK;
}

static enum status check_either(struct exchange *x, struct span type)
{
    if (span_equal_nocase(type, SPAN_LITERAL(OCTETS_TYPE)))
        return check_stream(x, type);
    if ((has_body(x) || type.bytes) && !span_equal_nocase(type, SPAN_LITERAL(JSON_TYPE)))
        return refuse_type(x, JSON_TYPE ", " OCTETS_TYPE);
    return collect_up_to(x, "json_body_bytes", JSON_BODY_BYTES_MAX);
}

static enum status check_session(struct exchange *x, struct span type)
{
    x->streams = span_equal_nocase(type, SPAN_LITERAL(SNAPSHOT_TYPE));
    return x->streams ? STATUS_OK : check_json(x, type);
}

static enum status check_batch(struct exchange *x, struct span type)
{
    x->streams = span_equal_nocase(type, SPAN_LITERAL(BATCH_TYPE));
    if (x->streams)
        return STATUS_OK;
    if (!span_equal_nocase(type, SPAN_LITERAL(JSON_TYPE)))
        return refuse_type(x, JSON_TYPE ", " BATCH_TYPE);
    return collect_up_to(x, "batch_json_bytes", BATCH_JSON_BYTES_MAX);
}

static enum status check_body(struct exchange *x)
{
    struct span type = request_media_type(&x->r);
    enum status st = check_codings(x);

    if (st)
        return st;
    switch (x->r.endpoint->body) {
    case BODY_NONE:
        return collect_up_to(x, "body_bytes", 0);
    case BODY_JSON:
        return check_json(x, type);
    case BODY_SOURCE:
        return collect_up_to(x, "source_body_bytes", SOURCE_BODY_BYTES_MAX);
    case BODY_EITHER:
        return check_either(x, type);
    case BODY_SESSION:
        return check_session(x, type);
    case BODY_BATCH:
        return check_batch(x, type);
    case BODY_STREAM:
        return check_stream(x, type);
    }
    return problem_set(&x->r.problem, STATUS_INTERNAL, "the endpoint has no body rule");
}

/* ---- load, begin ---- */

/* From here on the connection is not closed to make room for another one; unknown callers of open pages are not protected so. */
static enum status take_slot(struct exchange *x)
{
    struct connection *c = x->connection;
    bool               probe = x->r.endpoint->probe, known = x->r.caller != &x->loop->server->nobody;
    enum slot_use      use = SLOT_USED;

    if (probe)
        use = slot_begin_probe(c);
    else if (known)
        use = slot_begin_work(c);
    else if (c->slot.kind == SLOT_RESERVED)
        use = SLOT_FULL;
    if (use == SLOT_USED)
        return STATUS_OK;
    return problem_set(&x->r.problem, STATUS_OVERLOADED, "all connections are in use");
}

static enum status enter_caller(struct exchange *x)
{
    struct caller *c = x->r.caller;
    unsigned       before;

    if (x->r.endpoint->scope == SCOPE_NONE)
        return STATUS_OK;
    before = atomic_fetch_add(&c->in_flight, 1);
    x->counted_caller = true;
    if (before < REQUESTS_IN_FLIGHT_PER_CALLER_MAX)
        return STATUS_OK;
    return problem_limit(&x->r.problem, STATUS_TOO_MANY_IN_FLIGHT, "requests_in_flight", REQUESTS_IN_FLIGHT_PER_CALLER_MAX, before, 1);
}

static enum status begin(struct exchange *x)
{
    enum status st = request_begin(&x->r);

    if (st == STATUS_PENDING)
        return problem_set(&x->r.problem, STATUS_INTERNAL, "the begin function of an endpoint cannot wait");
    if (!st && x->streams && !x->r.sink) {
        x->streams = false;
        return collect_up_to(x, "body_bytes", 0);
    }
    return st;
}

enum status exchange_enter(struct exchange *x)
{
    const struct server_config *config = &x->loop->server->config;
    enum status                 st = config->enter ? config->enter(&x->r) : STATUS_OK;

    if (!st)
        st = begin(x);
    return st ? st : body_hold(x);
}

enum status exchange_admit(struct exchange *x, struct span method)
{
    const struct server_config *config = &x->loop->server->config;
    struct route                route;
    enum status                 st = exchange_guard_host(x);

    if (!method_parse(method, &x->r.method))
        x->r.method = METHOD_COUNT;
    route_find(config->endpoints, config->endpoints_count, x->r.method, x->r.path, &route);
    if (!st)
        st = tls_check_client(x, &x->r.problem);
    if (!st)
        st = find_caller(x, &route);
    if (!st)
        st = check_rate(x, &route);
    if (!st)
        st = take_route(x, &route);
    if (!st)
        st = check_scope(x);
    if (!st)
        st = node_check(x);
    if (!st)
        st = check_conditional(x);
    if (!st)
        st = check_body(x);
    if (!st)
        st = integrity_begin(x);
    if (!st)
        st = take_slot(x);
    if (!st)
        st = enter_caller(x);
    if (!st)
        st = idempotent_begin(x);
    if (!st && idempotent_replays(x)) {
        x->streams = false;
        return STATUS_OK;
    }
    return st ? st : exchange_enter(x);
}
