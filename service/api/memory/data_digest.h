/* Digests of buffer contents that a GET or HEAD asks for. */
#pragma once

#include "api/call.h"
#include "http/message/integrity.h"
#include "http/message/range.h"

struct digest_wants {
    enum digest_algorithm content; /* of this answer's bytes: only for GET, and at most VERIFIED_BODY_BYTES_MAX */
    enum digest_algorithm repr;    /* of the whole buffer, even if only a part is answered */
};

/* Want-Content-Digest and Want-Repr-Digest; INVALID_HEADER when one is malformed. */
enum status digest_wants_of(struct request *r, struct digest_wants *out);

/* Reads the whole buffer from the device through staging memory and adds Repr-Digest: always computed from the device's bytes, never
 * from an upload. Omits the header when the contents have changed since `etag`. Blocks. */
enum status digest_add_repr(struct request *r, struct session *s, struct span etag, uint64_t size, enum digest_algorithm algorithm);

/* Reads the range into the reply's body and adds its Content-Digest. At most VERIFIED_BODY_BYTES_MAX bytes. Blocks. */
enum status digest_answer(struct request *r, struct session *s, struct byte_range range, unsigned http_status,
                          enum digest_algorithm algorithm);

/* The SHA-256 of all bytes of any buffer of the session, which are read into `piece`, of DIGEST_PIECE_BYTES, one after the other. Blocks. */
enum status digest_of_buffer(struct request *r, struct session *s, struct span buffer, uint64_t bytes, char *piece,
                             unsigned char out[SHA256_BYTES]);
