/* base64 of RFC 4648 section 4: padded, no blanks, unused bits zero. */
#include "http/json/json.h"

/* The value plus 1; 0: not in the alphabet. */
/* clang-format off */
static const unsigned char sextets[256] = {
    ['A'] = 1, ['B'] = 2, ['C'] = 3, ['D'] = 4, ['E'] = 5, ['F'] = 6, ['G'] = 7, ['H'] = 8,
    ['I'] = 9, ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};
/* clang-format on */

/* Removes the padding; false when it is wrong. */
static bool unpad(struct span *text)
{
    if (text->bytes % 4)
        return false;
    for (int i = 0; i < 2 && text->bytes && text->data[text->bytes - 1] == '='; i++)
        text->bytes--;
    return true;
}

/* The bits of so many characters; false when one of them is not in the alphabet. */
static bool take_group(const char *from, size_t count, uint32_t *bits)
{
    bool known = true;

    *bits = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned value = sextets[(unsigned char)from[i]];
        known = known && value;
        *bits = *bits << 6 | ((value - 1) & 63);
    }
    return known;
}

/* What is left of 4 characters is 2 or 3, whose last bits are unused. */
static bool take_rest(struct span rest, unsigned char *to, size_t *bytes)
{
    unsigned unused = rest.bytes == 2 ? 4 : 2;
    uint32_t bits;

    *bytes = rest.bytes ? rest.bytes - 1 : 0;
    if (rest.bytes == 0)
        return true;
    if (rest.bytes == 1 || !take_group(rest.data, rest.bytes, &bits) || bits & ((1u << unused) - 1))
        return false;
    bits >>= unused;
    if (rest.bytes == 3)
        *to++ = (unsigned char)(bits >> 8);
    *to = (unsigned char)bits;
    return true;
}

bool base64_decode(struct span text, struct arena *a, struct span *out)
{
    unsigned char *to, *at;
    uint32_t       bits;
    size_t         rest;

    *out = (struct span){text.data, 0};
    if (!unpad(&text))
        return false;
    at = to = arena_alloc(a, text.bytes / 4 * 3 + 3);
    if (!to) {
        *out = (struct span){NULL, 0};
        return false;
    }
    for (; text.bytes >= 4; text = span_from(text, 4)) {
        if (!take_group(text.data, 4, &bits))
            return false;
        *at++ = (unsigned char)(bits >> 16);
        *at++ = (unsigned char)(bits >> 8);
        *at++ = (unsigned char)bits;
    }
    if (!take_rest(text, at, &rest))
        return false;
    *out = (struct span){(char *)to, (size_t)(at - to) + rest};
    return true;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool base64_add(struct buf *out, struct span bytes)
{
    size_t groups = bytes.bytes / 3 + (bytes.bytes % 3 != 0);
    char  *to = groups > SIZE_MAX / 4 ? NULL : buf_reserve(out, groups * 4);

    if (!to)
        return false;
    for (size_t i = 0; i < bytes.bytes; i += 3) {
        size_t   left = bytes.bytes - i;
        uint32_t three = (uint32_t)(unsigned char)bytes.data[i] << 16;
        three |= left > 1 ? (uint32_t)(unsigned char)bytes.data[i + 1] << 8 : 0;
        three |= left > 2 ? (uint32_t)(unsigned char)bytes.data[i + 2] : 0;
        *to++ = alphabet[three >> 18 & 63];
        *to++ = alphabet[three >> 12 & 63];
        *to++ = left > 1 ? alphabet[three >> 6 & 63] : '=';
        *to++ = left > 2 ? alphabet[three & 63] : '=';
    }
    buf_grew(out, groups * 4);
    return true;
}
