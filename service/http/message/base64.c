/* base64 of RFC 4648 section 4: padded, no blanks, unused bits zero. */
#include "http/json/json.h"

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Removes the padding; false when it is wrong. */
static bool unpad(struct span *text)
{
    if (text->bytes % 4)
        return false;
    for (int i = 0; i < 2 && text->bytes && text->data[text->bytes - 1] == '='; i++)
        text->bytes--;
    return true;
}

bool base64_decode(struct span text, struct arena *a, struct span *out)
{
    unsigned bits = 0, held = 0;
    size_t   n = 0;
    char    *to;

    if (!unpad(&text))
        return false;
    to = arena_alloc(a, text.bytes / 4 * 3 + 3);
    if (!to)
        return false;
    for (size_t i = 0; i < text.bytes; i++) {
        int value = sextet(text.data[i]);
        if (value < 0)
            return false;
        bits = (bits << 6 | (unsigned)value) & 0xffff;
        held += 6;
        if (held >= 8) {
            held -= 8;
            to[n++] = (char)(bits >> held & 0xff);
        }
    }
    if (bits & ((1u << held) - 1))
        return false;
    *out = (struct span){to, n};
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
