/* Base62 by rejection, so that every character is equally likely. */
#include "base/random.h"
#include "base/bounds.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

bool random_bytes(void *out, size_t bytes)
{
    char *at = out;

    while (bytes) {
        ssize_t n = getrandom(at, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Reads many bytes from the kernel at a time; erases those that it has given. */
static bool take_bytes(unsigned char out[RANDOM_PIECE_BYTES])
{
    static _Thread_local unsigned char stock[RANDOM_STOCK_BYTES];
    static _Thread_local size_t        left;

    if (left == 0 && !random_bytes(stock, sizeof stock))
        return false;
    left = (left ? left : sizeof stock) - RANDOM_PIECE_BYTES;
    memcpy(out, stock + left, RANDOM_PIECE_BYTES);
    memset(stock + left, 0, RANDOM_PIECE_BYTES);
    return true;
}

const char base62_digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

bool random_id(const char *prefix, char *out, size_t room)
{
    size_t        at = strlen(prefix);
    size_t        end = at + RANDOM_ID_CHARS;
    unsigned char raw[RANDOM_PIECE_BYTES];

    if (end + 1 > room)
        return false;
    memcpy(out, prefix, at);
    while (at < end) {
        if (!take_bytes(raw))
            return false;
        for (size_t i = 0; i < sizeof raw && at < end; i++)
            if (raw[i] < 4 * 62)
                out[at++] = base62_digits[raw[i] % 62];
    }
    out[end] = '\0';
    return true;
}
