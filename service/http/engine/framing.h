/* Where the requests of one connection begin and end: a scanner of the bytes that a client sends, with no sockets and no memory of them.
 * It takes what RFC 9112 allows and the HTTP library reads alike, and refuses the rest: bare CR or LF, folded lines, lines without a name,
 * control bytes, several lengths, codings other than chunked, versions other than 1.0 and 1.1, blocks that are too long. */
#ifndef GPUREST_HTTP_FRAMING_H
#define GPUREST_HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { FRAMING_NAME_BYTES = sizeof "transfer-encoding" };

/* Zeroed: at the beginning of a connection. Readers look at what stands first. */
struct framing {
    enum status refused; /* OK: nothing was wrong so far. Else nothing is scanned any more, and: */
    const char *why;
    uint64_t    begun; /* requests whose first byte has come, the refused one included */
    uint64_t    ended; /* requests that have come as a whole, without fault */

    unsigned char state;
    unsigned char field;   /* what the header line at hand is about */
    unsigned char matched; /* characters of a word that is expected */
    unsigned char name_bytes;
    char          name[FRAMING_NAME_BYTES]; /* of a header line, in small letters; longer ones are cut */
    bool          empty_line;               /* one came before the request line */
    bool          http_1_0;
    bool          in_trailer;
    bool          has_host;
    bool          other_version, other_coding; /* than those that are taken */
    unsigned char lengths, codings;            /* header lines of the kind, two at most */
    uint32_t      room;                        /* bytes that the header, the chunk's line or the trailer may still have */
    uint64_t      length;                      /* Content-Length, or of the chunk at hand */
    uint64_t      left;                        /* of the body or the chunk's data */
};

/* How many of the bytes, which follow those of the call before, belong to requests without fault: all, or those before the beginning of
 * the request that is refused; none when that began in an earlier call. In which pieces bytes come changes nothing but that number. */
size_t framing_scan(struct framing *f, const char *data, size_t bytes);

#endif
