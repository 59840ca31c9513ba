/* Checks request bodies against their Content-Digest, for every endpoint alike. A streamed body that is not too long is held
 * (http/engine/body.c) until it is verified, so that nothing on the device changes for one that is not what it should be. */
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

void integrity_add(struct exchange *x, struct span piece)
{
    if (x->check)
        body_digest_add(&x->check->digest, piece);
}

enum status integrity_end(struct exchange *x)
{
    bool        went_on = x->streams && !x->holds;
    const char *note = went_on ? "; the body was written as it arrived: the bytes that it overwrote are indeterminate" : "";

    return x->check ? digest_compare(&x->check->expected, &x->check->digest, note, &x->r.problem) : STATUS_OK;
}
