/* Answers of requests that carried an Idempotency-Key: who repeats one gets the stored answer, and nothing is done twice.
 * Thread-safe. All in memory and bounded; times are monotonic and the caller's, so that a test can have them pass. */
#ifndef GPUREST_HTTP_IDEMPOTENCY_H
#define GPUREST_HTTP_IDEMPOTENCY_H

#include "base/digest.h"
#include "http/message/request.h"

struct idempotency;

/* A key that somebody works on; his until idempotency_finish() or idempotency_release(). */
struct idempotent;

/* What a key means: it is another one for another caller, method or path. */
struct idempotency_id {
    struct caller *caller;
    unsigned char  digest[SHA256_BYTES]; /* of method, path and key */
};

/* What the key stands for. */
struct idempotency_payload {
    unsigned char digest[SHA256_BYTES]; /* of media type, query and body */
    uint64_t      body_bytes;
};

enum status idempotency_create(struct idempotency **out);
/* No key may be worked on any more. NULL is a no-op. */
void idempotency_destroy(struct idempotency *store);

/* The header's value, with or without the quotation marks of a structured field: 1 to IDEMPOTENCY_KEY_CHARS_MAX visible ASCII characters.
 * INVALID_HEADER otherwise. *key borrows from it. */
enum status idempotency_key_parse(struct span header, struct span *key, struct problem *why);
void        idempotency_identify(struct idempotency_id *out, struct caller *caller, enum method method, struct span path, struct span key);

/* OK with *mine set: do the request, then finish or release it. OK with *mine NULL: it was done; read the body, then replay.
 * IDEMPOTENCY_IN_PROGRESS: somebody works on it. IDEMPOTENCY_KEY_REUSED: `body_bytes`, unless UINT64_MAX, is not what it was.
 * RATE_LIMITED, OVERLOADED: the caller, or all callers, have as many keys as are remembered. */
enum status idempotency_claim(struct idempotency *store, const struct idempotency_id *id, uint64_t body_bytes, uint64_t now,
                              struct idempotent **mine, struct problem *why);
/* The request was done. The answer is copied when it is short enough and does not come from a source. */
void idempotency_finish(struct idempotency *store, struct idempotent *mine, const struct idempotency_payload *payload,
                        const struct reply *answer, uint64_t now);
/* The request was not done: the key is as if it had never been seen. */
void idempotency_release(struct idempotency *store, struct idempotent *mine);
/* Fills *answer with what was stored. IDEMPOTENCY_KEY_REUSED for another payload, REPLAY_UNAVAILABLE when nothing is stored. */
enum status idempotency_replay(struct idempotency *store, const struct idempotency_id *id, const struct idempotency_payload *payload,
                               uint64_t now, struct reply *answer, struct problem *why);
/* Forgets what is older than IDEMPOTENCY_S. */
void idempotency_sweep(struct idempotency *store, uint64_t now);

#endif
