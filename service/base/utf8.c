/* Checks and repairs text from outside. */
#include "base/utf8.h"

static const struct {
    unsigned char first_low, first_high;   /* of the first byte */
    unsigned char second_low, second_high; /* of the second; all later ones are 80..BF */
    unsigned char bytes;
} forms[] = {
    {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static bool within(unsigned char c, unsigned char low, unsigned char high)
{
    return c >= low && c <= high;
}

static bool tail_fits(const unsigned char *c, unsigned char low, unsigned char high, size_t bytes)
{
    if (bytes > 1 && !within(c[1], low, high))
        return false;
    for (size_t i = 2; i < bytes; i++)
        if (!within(c[i], 0x80, 0xbf))
            return false;
    return true;
}

size_t utf8_char_bytes(struct span s)
{
    const unsigned char *c = (const unsigned char *)s.data;

    if (s.bytes == 0)
        return 0;
    for (size_t i = 0; i < COUNT(forms); i++)
        if (within(c[0], forms[i].first_low, forms[i].first_high))
            return forms[i].bytes <= s.bytes && tail_fits(c, forms[i].second_low, forms[i].second_high, forms[i].bytes) ? forms[i].bytes
                                                                                                                        : 0;
    return 0;
}

bool utf8_valid(struct span s)
{
    while (s.bytes) {
        size_t n = utf8_char_bytes(s);
        if (n == 0)
            return false;
        s = span_from(s, n);
    }
    return true;
}

void utf8_repair(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes;) {
        size_t n = utf8_char_bytes((struct span){text + i, bytes - i});
        if (n == 0) {
            text[i] = '?';
            n = 1;
        }
        i += n;
    }
}

struct span utf8_first(struct span s, size_t max)
{
    if (s.bytes <= max)
        return s;
    while (max && ((unsigned char)s.data[max] & 0xc0) == 0x80)
        max--;
    return span_first(s, max);
}
