/* Reading needs zlib; writing does not. */
#include "png.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

enum { HEAD_BYTES = 13, STORED_MAX = 65535, CHUNK_EXTRA = 12 };

static const unsigned char signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

static uint32_t crc_of(uint32_t crc, const unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return crc;
}

static unsigned char *write_u32(unsigned char *p, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *p++ = (unsigned char)(v >> shift);
    return p;
}

/* ---- writing ---- */

static unsigned char *write_chunk(unsigned char *p, const char *type, const unsigned char *data, size_t bytes)
{
    unsigned char *start = write_u32(p, (uint32_t)bytes);

    memcpy(start, type, 4);
    if (bytes)
        memmove(start + 4, data, bytes);
    return write_u32(start + 4 + bytes, ~crc_of(0xFFFFFFFFu, start, 4 + bytes));
}

static uint32_t adler_of(const unsigned char *data, size_t bytes)
{
    uint32_t a = 1, b = 0;

    for (size_t i = 0; i < bytes; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* A zlib stream of stored blocks. */
static unsigned char *write_stored(unsigned char *p, const unsigned char *data, size_t bytes)
{
    *p++ = 0x78;
    *p++ = 0x01;
    for (size_t at = 0; at < bytes;) {
        size_t n = bytes - at < STORED_MAX ? bytes - at : STORED_MAX;

        *p++ = at + n == bytes;
        *p++ = (unsigned char)n;
        *p++ = (unsigned char)(n >> 8);
        *p++ = (unsigned char)~n;
        *p++ = (unsigned char)(~n >> 8);
        memcpy(p, data + at, n);
        p += n;
        at += n;
    }
    return write_u32(p, adler_of(data, bytes));
}

unsigned char *png_encode(const unsigned char *pixels, int width, int height, size_t *bytes)
{
    size_t         row = (size_t)width + 1, raw = row * (size_t)height, stored = raw + 5 * (raw / STORED_MAX + 1) + 6;
    unsigned char *rows = malloc(raw), *file = malloc(sizeof signature + 3 * CHUNK_EXTRA + HEAD_BYTES + stored), *p = file;
    unsigned char  head[HEAD_BYTES] = {[8] = 8};

    if (rows && file) {
        for (size_t y = 0; y < (size_t)height; y++) {
            rows[y * row] = 0; /* no filter */
            memcpy(rows + y * row + 1, pixels + y * (size_t)width, (size_t)width);
        }
        write_u32(write_u32(head, (uint32_t)width), (uint32_t)height);
        memcpy(p, signature, sizeof signature);
        p = write_chunk(p + sizeof signature, "IHDR", head, sizeof head);
        p = write_chunk(p, "IDAT", p + 8, (size_t)(write_stored(p + 8, rows, raw) - (p + 8)));
        p = write_chunk(p, "IEND", NULL, 0);
        *bytes = (size_t)(p - file);
    } else {
        free(file);
        file = NULL;
    }
    free(rows);
    return file;
}

/* ---- reading ---- */

#ifdef HAVE_ZLIB

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

struct reader {
    uint32_t       width, height;
    int            channels;
    unsigned char *packed; /* all IDAT chunks */
    size_t         packed_bytes;
};

/* 0: *why is the reason. */
static int read_head(struct reader *r, const unsigned char *head, uint32_t side_max, const char **why)
{
    static const signed char channels[] = {1, -1, 3, -1, 2, -1, 4};

    r->width = read_u32(head);
    r->height = read_u32(head + 4);
    r->channels = head[9] < sizeof channels ? channels[head[9]] : -1;
    if (!r->width || !r->height || r->width > side_max || r->height > side_max)
        *why = "is too large";
    else if (head[8] != 8 || r->channels < 0)
        *why = "is neither grey nor colour of 8 bits";
    else if (head[10] || head[11] || head[12])
        *why = "is interlaced";
    else
        return 1;
    return 0;
}

static int read_chunks(struct reader *r, const unsigned char *file, size_t bytes, uint32_t side_max, const char **why)
{
    size_t at = sizeof signature;

    *why = "is cut off or damaged";
    while (bytes - at >= CHUNK_EXTRA) {
        size_t               n = read_u32(file + at);
        const unsigned char *type = file + at + 4, *data = type + 4;

        if (n > bytes - at - CHUNK_EXTRA || read_u32(data + n) != (uint32_t)~crc_of(0xFFFFFFFFu, type, 4 + n))
            return 0;
        if (memcmp(type, "IHDR", 4) == 0 && (n != HEAD_BYTES || !read_head(r, data, side_max, why)))
            return 0;
        if (memcmp(type, "IDAT", 4) == 0) {
            memcpy(r->packed + r->packed_bytes, data, n);
            r->packed_bytes += n;
        }
        if (memcmp(type, "IEND", 4) == 0)
            return r->width && r->packed_bytes;
        at += CHUNK_EXTRA + n;
    }
    return 0;
}

static int nearest(int left, int above, int corner)
{
    int guess = left + above - corner, a = abs(guess - left), b = abs(guess - above), c = abs(guess - corner);

    return a <= b && a <= c ? left : b <= c ? above : corner;
}

/* Undoes the filter of each row. 0: unknown filter. */
static int unfilter(unsigned char *rows, size_t height, size_t row, size_t step)
{
    for (size_t y = 0; y < height; y++) {
        unsigned char *line = rows + y * (row + 1) + 1, *before = y ? line - row - 1 : NULL;
        int            filter = line[-1];

        if (filter > 4)
            return 0;
        for (size_t i = 0; i < row; i++) {
            int left = i >= step ? line[i - step] : 0, above = before ? before[i] : 0, corner = before && i >= step ? before[i - step] : 0;
            int added[] = {0, left, above, (left + above) / 2, nearest(left, above, corner)};

            line[i] = (unsigned char)(line[i] + added[filter]);
        }
    }
    return 1;
}

static void to_grey(const struct reader *r, const unsigned char *rows, unsigned char *out)
{
    size_t step = (size_t)r->channels, row = (size_t)r->width * step;

    for (size_t y = 0; y < r->height; y++)
        for (size_t x = 0; x < r->width; x++) {
            const unsigned char *p = rows + y * (row + 1) + 1 + x * step;
            out[y * r->width + x] = step < 3 ? p[0] : (unsigned char)((299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000);
        }
}

static unsigned char *unpack(const struct reader *r, const char **why)
{
    size_t         row = (size_t)r->width * (size_t)r->channels;
    uLongf         raw = (uLongf)(row + 1) * r->height;
    unsigned char *rows = malloc(raw), *out = malloc((size_t)r->width * r->height);
    uLongf         got = raw;

    if (rows && out && uncompress(rows, &got, r->packed, r->packed_bytes) == Z_OK && got == raw &&
        unfilter(rows, r->height, row, (size_t)r->channels)) {
        to_grey(r, rows, out);
    } else {
        *why = "is cut off or damaged";
        free(out);
        out = NULL;
    }
    free(rows);
    return out;
}

unsigned char *png_decode(const unsigned char *file, size_t bytes, int side_max, int *width, int *height, const char **why)
{
    struct reader  r = {.packed = malloc(bytes ? bytes : 1)};
    unsigned char *out = NULL;

    *why = "is no PNG picture";
    if (r.packed && bytes >= sizeof signature && memcmp(file, signature, sizeof signature) == 0 &&
        read_chunks(&r, file, bytes, (uint32_t)side_max, why))
        out = unpack(&r, why);
    *width = (int)r.width;
    *height = (int)r.height;
    free(r.packed);
    return out;
}

#else

unsigned char *png_decode(const unsigned char *file, size_t bytes, int side_max, int *width, int *height, const char **why)
{
    (void)file, (void)bytes, (void)side_max, (void)width, (void)height;
    *why = "is read only by a program that was built with zlib: use a PGM picture";
    return NULL;
}

#endif
