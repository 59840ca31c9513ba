/* Writes tar and uncompressed gzip. */
#include "base/archive.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cli.h"

enum { BLOCK = 512, NAME_BYTES = 100, STORED_MAX = 65535 };

static void append(struct archive *a, const void *data, size_t bytes)
{
    unsigned char *larger;
    size_t         room = a->room ? a->room : 64 * 1024;

    if (a->failed || bytes > SIZE_MAX / 2 - a->bytes) {
        a->failed = true;
        return;
    }
    while (room < a->bytes + bytes)
        room *= 2;
    if (room != a->room) {
        larger = realloc(a->data, room);
        if (!larger) {
            a->failed = true;
            return;
        }
        a->data = larger;
        a->room = room;
    }
    memcpy(a->data + a->bytes, data, bytes);
    a->bytes += bytes;
}

static void put_zeros(struct archive *a, size_t bytes)
{
    static const unsigned char zeros[2 * BLOCK];

    append(a, zeros, bytes);
}

/* The sum of all bytes of the header, its own eight counted as blanks. */
static unsigned checksum(const char header[BLOCK])
{
    unsigned sum = 0;

    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)header[i];
    return sum;
}

void archive_add(struct archive *a, const char *name, const void *data, size_t bytes)
{
    char header[BLOCK] = {0};

    snprintf(header, NAME_BYTES, "%s", name);
    snprintf(header + 100, 8, "%07o", 0644u);
    snprintf(header + 108, 8, "%07o", 0u);
    snprintf(header + 116, 8, "%07o", 0u);
    snprintf(header + 124, 12, "%011llo", (unsigned long long)bytes);
    snprintf(header + 136, 12, "%011llo", (unsigned long long)time(NULL));
    header[156] = '0';
    memcpy(header + 257, "ustar\00000", 8);
    snprintf(header + 148, 8, "%06o", checksum(header));
    header[155] = ' ';
    append(a, header, sizeof header);
    append(a, data, bytes);
    put_zeros(a, (BLOCK - bytes % BLOCK) % BLOCK);
}

/* ---- gzip (RFC 1952) of stored blocks (RFC 1951) ---- */

static uint32_t crc32_of(const unsigned char *data, size_t bytes)
{
    uint32_t crc = 0xFFFFFFFFu;

    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (unsigned bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void put_u32(struct archive *a, uint32_t v)
{
    const unsigned char bytes[] = {(unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16), (unsigned char)(v >> 24)};

    append(a, bytes, sizeof bytes);
}

static void put_gzip(struct archive *to, const unsigned char *data, size_t bytes)
{
    static const unsigned char head[] = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3};

    append(to, head, sizeof head);
    for (size_t at = 0;;) {
        size_t              n = bytes - at < STORED_MAX ? bytes - at : STORED_MAX;
        const unsigned char block[] = {at + n == bytes, (unsigned char)n, (unsigned char)(n >> 8), (unsigned char)~n,
                                       (unsigned char)(~n >> 8)};

        append(to, block, sizeof block);
        append(to, data + at, n);
        at += n;
        if (at == bytes)
            break;
    }
    put_u32(to, crc32_of(data, bytes));
    put_u32(to, (uint32_t)bytes);
}

bool archive_write(struct archive *a, const char *path)
{
    size_t         n = strlen(path);
    bool           zip = n > 2 && strcmp(path + n - 2, "gz") == 0, ok;
    struct archive zipped = {0};

    put_zeros(a, 2 * BLOCK);
    if (zip && !a->failed)
        put_gzip(&zipped, a->data, a->bytes);
    if (a->failed || zipped.failed)
        ok = (cli_error(CODE_FAILED, "not enough memory for the archive"), false);
    else
        ok = zip ? file_write(path, zipped.data, zipped.bytes, "", 0) : file_write(path, a->data, a->bytes, "", 0);
    archive_finish(&zipped);
    return ok;
}

void archive_finish(struct archive *a)
{
    free(a->data);
    *a = (struct archive){0};
}
