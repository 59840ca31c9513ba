/* Requests with an Idempotency-Key: the key is claimed before the body is read, the body is hashed as it arrives, and the final answer
 * is stored. */
#include "http/engine/internal.h"
#include "http/filter/idempotency.h"

struct idempotent_request {
    struct idempotency_id id;
    struct idempotent    *mine; /* NULL: to be replayed, or already finished */
    bool                  replays;
    struct sha256         payload;
    uint64_t              body_bytes;
};

static void start_payload(struct exchange *x, struct idempotent_request *k)
{
    digest_init(&k->payload);
    digest_add_field(&k->payload, span_trim(exchange_header(x, "Content-Type")));
    digest_add_field(&k->payload, x->port.query);
}

static struct idempotency_payload end_payload(struct idempotent_request *k)
{
    struct idempotency_payload p = {.body_bytes = k->body_bytes};

    digest_end(&k->payload, p.digest);
    return p;
}

/* A session's keys travel with it; the request that moves it away must not wait for itself. */
static struct span session_of(const struct exchange *x, struct span *path)
{
    static const char sessions[] = "/v1/sessions/", moves[] = "/v1/sessions/{sid}/move";
    struct span       pattern = span_of(x->r.endpoint->path);

    *path = x->r.path;
    if (!span_starts(pattern, sessions) || span_starts(pattern, moves))
        return (struct span){0};
    *path = span_from(*path, sizeof sessions - 1);
    span_cut(path, '/');
    return x->r.params[0];
}

enum status idempotent_begin(struct exchange *x)
{
    struct idempotency        *store = x->loop->server->idempotency;
    struct span                header = exchange_header(x, "Idempotency-Key"), key, path, session;
    struct idempotent_request *k;
    enum status                st;

    if (!header.data || x->r.method != METHOD_POST)
        return STATUS_OK;
    st = idempotency_key_parse(header, &key, &x->r.problem);
    if (st)
        return st;
    k = arena_alloc(&x->r.arena, sizeof *k);
    if (!k)
        return problem_set(&x->r.problem, STATUS_OUT_OF_MEMORY, "not enough memory for the idempotency key");
    session = session_of(x, &path);
    idempotency_identify(&k->id, x->r.caller, session, x->r.method, path, key);
    st = idempotency_claim(store, &k->id, x->r.has_body_bytes ? x->r.body_bytes : UINT64_MAX, now_ns(), &k->mine, &x->r.problem);
    if (st)
        return st;
    start_payload(x, k);
    k->replays = k->mine == NULL;
    x->idempotent = k;
    x->r.wants_inline = true;
    x->r.wants_whole = true;
    return STATUS_OK;
}

bool idempotent_replays(const struct exchange *x)
{
    return x->idempotent && x->idempotent->replays;
}

/* A request with a key runs to its end even when its client is gone: a retry gets the answer. */
bool idempotent_goes_on(const struct exchange *x)
{
    return x->idempotent && x->idempotent->mine && !atomic_load(&x->loop->server->stopping);
}

void idempotent_add(struct exchange *x, struct span piece)
{
    if (!x->idempotent)
        return;
    digest_add(&x->idempotent->payload, piece.data, piece.bytes);
    x->idempotent->body_bytes += piece.bytes;
}

enum status idempotent_replay(struct exchange *x)
{
    struct idempotency_payload p = end_payload(x->idempotent);

    return idempotency_replay(x->loop->server->idempotency, &x->idempotent->id, &p, now_ns(), &x->r.reply, &x->r.problem);
}

/* A retryable failure means that nothing was done, unless only the answer found no memory; so does another generation of the session, in which the
 * request may be meant after all when its client has looked. */
static bool was_done(const struct exchange *x, enum status st)
{
    return x->handler_ran && st != STATUS_GENERATION_CHANGED &&
           (!status_retryable(st) || st == STATUS_OK || st == STATUS_OUT_OF_MEMORY || x->r.calls > 1);
}

void idempotent_settled(struct exchange *x, enum status st)
{
    struct idempotent_request *k = x->idempotent;
    struct idempotency_payload p;

    if (!k || !k->mine || !was_done(x, st))
        return;
    p = end_payload(k);
    idempotency_finish(x->loop->server->idempotency, k->mine, &p, &x->r.reply, now_ns());
    k->mine = NULL;
}

void idempotent_end(struct exchange *x)
{
    if (x->idempotent && x->idempotent->mine)
        idempotency_release(x->loop->server->idempotency, x->idempotent->mine);
    x->idempotent = NULL;
}
