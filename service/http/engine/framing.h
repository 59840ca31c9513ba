/* Finds the start and the end of each request on a connection. Scans the client's bytes without sockets and without keeping them.
 * Accepts what RFC 9112 allows and the HTTP library reads in the same way. Rejects the rest: bare CR or LF, folded lines, lines without a name,
 * control characters, several lengths, codings other than chunked, versions other than 1.0 and 1.1, blocks that are too long. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { FRAMING_NAME_BYTES = sizeof "transfer-encoding" };

/* Zeroed = at the start of a connection. Other files use the first members only; receive.c refuses what comes too late. */
struct framing {
    enum status refused; /* OK: no error so far. Otherwise the scan has stopped, and: */
    const char *why;
    uint64_t    begun; /* requests whose first byte has arrived, including the rejected one */
    uint64_t    ended; /* requests that have arrived completely and are valid */

    unsigned char state;
    unsigned char field;   /* field of the current header line */
    unsigned char matched; /* characters that match the expected word */
    unsigned char name_bytes;
    char          name[FRAMING_NAME_BYTES]; /* of a header line, in lower case; longer names are truncated */
    bool          empty_line;               /* an empty line preceded the request line */
    bool          http_1_0;
    bool          in_trailer;
    bool          has_host;
    bool          other_version, other_coding; /* than the supported ones */
    unsigned char lengths, codings;            /* number of these header lines, counted up to two */
    uint32_t      room;                        /* remaining bytes for the header, the chunk's line or the trailer */
    uint64_t      length;                      /* Content-Length, or the size of the current chunk */
    uint64_t      left;                        /* remaining bytes of the body or of the chunk's data */
};

/* Scans the bytes after those of the previous call. Returns how many of them belong to valid requests: all, or those before the start of the
 * rejected request, or none if that started in an earlier call. The division of the bytes into calls changes only this number. */
size_t framing_scan(struct framing *f, const char *data, size_t bytes);
