/* Finds clients that are too slow or gone. MHD's own timeout restarts with every byte and ignores suspended connections. */
#include <poll.h>

#include "http/bounds.h"
#include "http/engine/internal.h"

/* A client that has closed its sending side while its body is still in the socket, or while it reads the answer, is not gone. Readers of
 * an endless answer do not close it, so for them it means gone. */
static short hang_up_events(const struct exchange *x)
{
    return x->state == EXCHANGE_HANDLING || exchange_is_endless(x) ? POLLRDHUP : 0;
}

static void look_for_hang_up(struct exchange *x)
{
    struct pollfd p = {.fd = x->connection->fd, .events = hang_up_events(x)};

    if (atomic_load(&x->gone) || poll(&p, 1, 0) <= 0 || !(p.revents & (POLLRDHUP | POLLHUP | POLLERR)))
        return;
    atomic_store(&x->gone, true);
    x->woken = true;
    exchange_advance(x);
}

/* A running request is finished even if its token was revoked; one that waits or follows ends with its token. */
static void look_at_token(struct exchange *x)
{
    if (!x->grant.caller || atomic_load(&x->revoked) || (x->state != EXCHANGE_HANDLING && !exchange_is_endless(x)))
        return;
    if (auth_holds(x->loop->server->config.auth, &x->grant, x->r.endpoint->scope))
        return;
    atomic_store(&x->revoked, true);
    x->woken = true;
    exchange_advance(x);
}

/* MHD has read requests that it has not begun, or the next one will be refused (receive_answered() has ended the stream itself). */
static bool has_more_to_answer(const struct connection *c)
{
    return c->begun < c->framing.begun || (c->framing.refused && !c->linger);
}

/* MHD may miss an end of stream that arrived while the connection was suspended. */
static void cut_if_ended(struct connection *c)
{
    char byte;

    if (!has_more_to_answer(c) && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        connection_cut(c);
}

/* One check after each request is enough: later bytes wake the loop. */
static void look_at_idle(struct connection *c)
{
    if (c->looked || has_more_to_answer(c))
        return;
    cut_if_ended(c);
    c->looked = true;
}

static bool overdue(uint64_t since_ns, unsigned seconds, uint64_t now)
{
    return now > since_ns && now - since_ns > seconds * NS_PER_S;
}

void pace_start(struct pace *p, uint64_t now)
{
    *p = (struct pace){.since_ns = now};
}

void pace_pause(struct pace *p, uint64_t now)
{
    p->paused_ns = now;
}

void pace_go_on(struct pace *p, uint64_t now)
{
    if (p->paused_ns)
        p->since_ns += now - p->paused_ns;
    p->paused_ns = 0;
}

bool pace_too_slow(const struct exchange *x, uint64_t bytes_per_s, uint64_t now)
{
    uint64_t from_ns = x->pace.since_ns + x->loop->server->config.body_grace_s * NS_PER_S;

    return now > from_ns && x->pace.bytes < (now - from_ns) / NS_PER_MS * bytes_per_s / 1000;
}

/* After a while without a byte MHD has nothing of the body left that it could still hand over: an end of stream is its end. */
static void watch_body(struct connection *c, uint64_t now)
{
    const struct server_config *config = &c->loop->server->config;
    uint64_t                    since_ns = c->exchange->progress_ns;

    if (overdue(since_ns, config->body_stall_s, now) || pace_too_slow(c->exchange, config->body_bytes_per_s, now))
        receive_refuse(c, STATUS_REQUEST_TIMEOUT, "the body stopped arriving");
    else if (now > since_ns && now - since_ns > 2 * SWEEP_INTERVAL_MS * NS_PER_MS)
        cut_if_ended(c);
}

/* MHD records when the client last took a byte and compares that with its timeout. The loop's timeout is for idle connections; an answer
 * that takes long gets the shorter one for its rest, whatever its size. Answers that are sent at once never need it. */
static void watch_answer(struct connection *c, uint64_t now)
{
    const struct server_config *config = &c->loop->server->config;
    struct exchange            *x = c->exchange;

    if (x->offload.given)
        return; /* its I/O thread has sent the answer */
    if (pace_too_slow(x, config->answer_bytes_per_s, now)) {
        connection_cut(c);
    } else if (!x->stall_bound && overdue(x->pace.since_ns, config->body_stall_s, now)) {
        x->stall_bound = true;
        MHD_set_connection_option(x->mhd, MHD_CONNECTION_OPTION_TIMEOUT, config->body_stall_s);
    }
}

static void watch_request(struct connection *c, uint64_t now)
{
    const struct server_config *config = &c->loop->server->config;
    struct exchange            *x = c->exchange;

    if (x->offload.given && !x->offload.moved)
        return; /* its I/O thread watches */
    look_at_token(x);
    if (x->suspended) {
        look_for_hang_up(x);
        return;
    }
    switch (x->state) {
    case EXCHANGE_LINE:
        if (overdue(x->header_since_ns, config->header_deadline_s, now))
            receive_refuse(c, STATUS_REQUEST_TIMEOUT, "the header did not arrive in time");
        return;
    case EXCHANGE_BODY:
    case EXCHANGE_DROP:
        watch_body(c, now);
        return;
    case EXCHANGE_ENTERING:
    case EXCHANGE_HANDLING:
        return;
    case EXCHANGE_ANSWERED:
        watch_answer(c, now);
        return;
    }
}

void connections_sweep(struct loop *loop, uint64_t now)
{
    const struct server_config *config = &loop->server->config;

    for (struct connection *c = LIST_FIRST(&loop->connections), *next; c; c = next) {
        next = LIST_NEXT(c, link);
        if (c->exchange)
            watch_request(c, now);
        else if (overdue(c->since_ns, c->used ? config->idle_s : config->header_deadline_s, now))
            connection_cut(c);
        else
            look_at_idle(c);
    }
}
