/* Checks request bodies against their Content-Digest, for every endpoint. A streamed body that is not too long is held back until it is
 * verified, so that a wrong body changes nothing on the device. */
#include "http/engine/internal.h"

enum status integrity_begin(struct exchange *x)
{
    struct span   field = exchange_header(x, "Content-Digest");
    struct check *c;

    if (!field.data)
        return STATUS_OK;
    c = arena_alloc(&x->r.arena, sizeof *c);
    if (!c)
        return problem_set(&x->r.problem, STATUS_OUT_OF_MEMORY, "not enough memory to check the body");
    x->check = c;
    x->r.wants_inline = true;
    body_digest_init(&c->digest, DIGEST_NONE);
    if (digest_expected(field, &x->r.arena, &c->expected, &x->r.problem))
        return x->r.problem.status;
    c->digest.algorithms = c->expected.algorithms;
    return STATUS_OK;
}

/* 0: unknown. */
static uint64_t announced_bytes(const struct exchange *x)
{
    return x->r.has_body_bytes ? x->r.body_bytes : x->r.sink->bytes;
}

enum status integrity_hold(struct exchange *x)
{
    uint64_t bytes;

    if (!x->check || !x->streams)
        return STATUS_OK;
    bytes = announced_bytes(x);
    if (bytes == 0 || bytes > VERIFIED_BODY_BYTES_MAX)
        return STATUS_OK;
    x->check->holds = true;
    x->body_max = (size_t)bytes;
    return request_may_hold(&x->r, bytes); /* refuses early; only bytes that arrive are counted */
}

bool integrity_holds(const struct exchange *x)
{
    return x->check && x->check->holds;
}

enum status integrity_keep(struct exchange *x, struct span piece)
{
    if (piece.bytes > x->body_max - x->body.bytes)
        return problem_set(&x->r.problem, STATUS_LENGTH_MISMATCH, "the body is longer than the expected %zu bytes", x->body_max);
    if (request_hold(&x->r, piece.bytes))
        return x->r.problem.status;
    if (!buf_add_span(&x->body, piece))
        return problem_set(&x->r.problem, STATUS_OUT_OF_MEMORY, "not enough memory for the body");
    return STATUS_OK;
}

void integrity_add(struct exchange *x, struct span piece)
{
    if (x->check)
        body_digest_add(&x->check->digest, piece);
}

enum status integrity_end(struct exchange *x)
{
    bool        went_on = x->streams && !integrity_holds(x);
    const char *note = went_on ? "; the body was written as it arrived: the bytes that it overwrote are indeterminate" : "";

    if (!x->check || x->check->verified)
        return STATUS_OK;
    x->check->verified = true;
    return digest_compare(&x->check->expected, &x->check->digest, note, &x->r.problem);
}

struct span integrity_held(const struct exchange *x)
{
    return span_from(buf_span(&x->body), x->check->released);
}

void integrity_released(struct exchange *x, size_t bytes)
{
    x->check->released += bytes;
    if (x->check->released < x->body.bytes)
        return;
    x->check->holds = false;
    buf_finish(&x->body);
    request_release(&x->r);
}
