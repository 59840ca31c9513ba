/* Numbers and times as text, by hand: printf is slow for answers full of numbers, and the C library's time functions take a lock, which a thread
 * that crashes may hold. Async-signal-safe. */
#pragma once

#include "base/span.h"

enum {
    DIGITS_MAX = 20, /* of 2^64 - 1 */
    TIME_TEXT_BYTES = sizeof "0000-00-00T00:00:00.000Z",
};

/* The number in decimal or hexadecimal digits. */
struct span digits_of(uint64_t n, unsigned base, char room[DIGITS_MAX]);
/* Its last decimal digits, over as many characters. */
void digits_put(char *at, unsigned count, uint64_t n);
/* RFC 3339 in UTC with milliseconds. */
struct span time_text(uint64_t wall_ns_since_1970, char out[TIME_TEXT_BYTES]);
