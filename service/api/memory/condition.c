/* Conditions of writes to buffers. */
#include "api/memory/condition.h"

#include "api/memory/etag.h"
#include "http/message/precondition.h"

static bool is_conditional(const struct request *r)
{
    return request_header(r, "If-Match").data || request_header(r, "If-None-Match").data;
}

static bool is_star(struct span list)
{
    return span_is(span_trim(list), "*");
}

enum status condition_not_absent(struct problem *why)
{
    return problem_set(why, STATUS_PRECONDITION_FAILED, "the buffer exists; If-None-Match: * only creates");
}

/* Without a buffer If-None-Match holds whatever its tags are; the buffer must still be absent at the write. */
static enum status of_none(struct request *r, bool if_match, struct condition *out)
{
    if (if_match)
        return problem_set(&r->problem, STATUS_PRECONDITION_FAILED, "the buffer does not exist; If-Match needs an existing one");
    out->absent = true;
    return STATUS_OK;
}

enum status condition_of(struct request *r, const struct buffer_info *there, struct condition *out)
{
    struct span if_match = request_header(r, "If-Match"), if_none_match = request_header(r, "If-None-Match");
    char        tag[ETAG_BYTES];

    *out = (struct condition){0};
    if (!is_conditional(r))
        return STATUS_OK;
    if (!there)
        return of_none(r, if_match.data, out);
    if (if_none_match.data && is_star(if_none_match))
        return condition_not_absent(&r->problem);
    if (precondition_check(if_match, if_none_match, etag_of(there->contents, tag), false) != PRECONDITION_HOLDS)
        return problem_set(&r->problem, STATUS_PRECONDITION_FAILED, "the buffer has another entity tag");
    out->only = true;
    out->there = *there;
    if (!if_none_match.data && is_star(if_match))
        out->there.contents.epoch = EPOCH_ANY;
    return STATUS_OK;
}

enum status condition_of_id(struct request *r, struct session *s, struct span id, struct condition *out)
{
    struct buffer_info there;
    enum status        st;

    *out = (struct condition){0};
    if (!is_conditional(r))
        return STATUS_OK;
    st = buffer_info_of(s, id, &there, &r->problem);
    if (st && st != STATUS_BUFFER_NOT_FOUND)
        return st;
    return condition_of(r, st ? NULL : &there, out);
}

const struct contents *condition_contents(const struct condition *c)
{
    return c->only ? &c->there.contents : NULL;
}
