/* A struct problem as the answer to a client: application/problem+json (RFC 9457). */
#pragma once

#include "base/problem.h"
#include "http/message/reply.h"

/* The request's part of the document. `allow` is the Allow header of a 405, `accept` the Accept header of a 415; NULL = none. */
struct problem_place {
    struct span instance; /* the path */
    const char *request_id;
    const char *allow;
    const char *accept;
};

/* Writes the JSON text alone. retry_after_ms 0 becomes null. */
void problem_document_write(const struct problem *why, const struct problem_place *place, uint32_t retry_after_ms, struct buf *out);

/* Replaces *r by the problem's answer: status, headers and the document. */
void problem_document_reply(const struct problem *why, const struct problem_place *place, struct reply *r);
