/* What a client has already of the snapshot that it asks for: digests of bytes that need not be sent to it. */
#pragma once

#include "api/call.h"
#include "base/digests/digest.h"

struct have {
    unsigned      count;
    unsigned char digests[SNAPSHOT_HAVE_MAX][SHA256_BYTES];
};

/* The query parameter `have`; without it, or with an empty one, the client has nothing. INVALID_FIELD says what is wrong with it. */
enum status have_read(struct request *r, struct have *out);
bool        have_holds(const struct have *h, const unsigned char digest[SHA256_BYTES]);
