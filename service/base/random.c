/* Base62 by rejection, so that every character is equally likely. */
#include "base/random.h"

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

bool random_id(const char *prefix, char *out, size_t room)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    size_t            at = strlen(prefix);
    size_t            end = at + RANDOM_ID_CHARS;
    unsigned char     raw[2 * RANDOM_ID_CHARS];

    if (end + 1 > room)
        return false;
    memcpy(out, prefix, at);
    while (at < end) {
        if (!random_bytes(raw, sizeof raw))
            return false;
        for (size_t i = 0; i < sizeof raw && at < end; i++)
            if (raw[i] < 4 * 62)
                out[at++] = digits[raw[i] % 62];
    }
    out[end] = '\0';
    return true;
}
