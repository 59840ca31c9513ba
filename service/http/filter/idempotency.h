/* Answers of requests with an Idempotency-Key. A repeated request gets the stored answer; nothing is done twice. Thread-safe. All in
 * memory and bounded. The caller passes in monotonic times, so that a test can advance them. */
#pragma once

#include "base/digests/digest.h"
#include "http/message/request.h"

struct idempotency;

/* A key of a request in progress; the request's own until idempotency_finish() or idempotency_release(). */
struct idempotent;

/* Identifies a key; all of it is part of that. */
struct idempotency_id {
    struct caller *caller;
    unsigned char  digest[SHA256_BYTES]; /* of method, path and key */
    char           session
        [ID_BYTES]; /* that the path begins with, without a node; then the digest is of the rest of the path, for the session may get another
                                         id where it moves to. "": none */
};

/* The payload that a key belongs to. */
struct idempotency_payload {
    unsigned char digest[SHA256_BYTES]; /* of media type, query and body */
    uint64_t      body_bytes;
};

enum status idempotency_create(struct idempotency **out);
/* No request with a key may be in progress. NULL is a no-op. */
void idempotency_destroy(struct idempotency *store);

/* The header's value, with or without the quotation marks of a structured field: 1 to IDEMPOTENCY_KEY_CHARS_MAX visible ASCII characters.
 * INVALID_HEADER otherwise. *key borrows from it. */
enum status idempotency_key_parse(struct span header, struct span *key, struct problem *why);
void idempotency_identify(struct idempotency_id *out, struct caller *caller, struct span session, enum method method, struct span path,
                          struct span key);

/* OK with *mine set: run the request, then finish or release it. OK with *mine NULL: it has run; read the body, then replay.
 * IDEMPOTENCY_IN_PROGRESS: another request with this key runs. IDEMPOTENCY_KEY_REUSED: `body_bytes`, unless UINT64_MAX, differs from the
 * first request's. RATE_LIMITED, OVERLOADED: the caller, or all callers together, have as many keys as are remembered. */
enum status idempotency_claim(struct idempotency *store, const struct idempotency_id *id, uint64_t body_bytes, uint64_t now,
                              struct idempotent **mine, struct problem *why);
/* The request has run. The answer is copied if it is short enough and has no source. */
void idempotency_finish(struct idempotency *store, struct idempotent *mine, const struct idempotency_payload *payload,
                        const struct reply *answer, uint64_t now);
/* The request has not run: the key is forgotten. */
void idempotency_release(struct idempotency *store, struct idempotent *mine);
/* Fills *answer with the stored one. IDEMPOTENCY_KEY_REUSED for another payload, REPLAY_UNAVAILABLE when nothing is stored. */
enum status idempotency_replay(struct idempotency *store, const struct idempotency_id *id, const struct idempotency_payload *payload,
                               uint64_t now, struct reply *answer, struct problem *why);
/* Forgets keys older than IDEMPOTENCY_S. */
void idempotency_sweep(struct idempotency *store, uint64_t now);

/* A key whose request has run, as it travels with its session. */
struct idempotency_record {
    unsigned char              digest[SHA256_BYTES];
    struct idempotency_payload payload;
    const struct reply        *answer; /* NULL: none is stored */
};
/* Shows all of a caller's session, oldest first; `take` must not call back. False: a request with a key of that session is in progress, and nothing
 * was shown. */
bool idempotency_show(struct idempotency *store, const struct caller *caller, const char *session, uint64_t now,
                      void (*take)(void *context, const struct idempotency_record *record), void *context);
/* Remembers a key of a session that was elsewhere, as if its request had run now. One that is known stays. As idempotency_claim() fails. */
enum status idempotency_restore(struct idempotency *store, struct caller *caller, const char *session,
                                const struct idempotency_record *record, uint64_t now, struct problem *why);
/* Forgets the keys of a caller's session whose requests had ended by then, as a new session gets that name: they were done in another one. */
void idempotency_forget(struct idempotency *store, const struct caller *caller, const char *session, uint64_t ended_ns);
