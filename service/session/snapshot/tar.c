/* Headers of tar archives. */
#include "session/snapshot/tar.h"

#include <assert.h>

enum {
    CHECKSUM_AT = 148,
    CHECKSUM_BYTES = 8,
    BASE_256 = 0x80, /* in the first byte of a size */
};

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[CHECKSUM_BYTES], type, link[100], magic[6], version[2],
        uname[32], gname[32], major[8], minor[8], prefix[155], rest[12];
};

static_assert(sizeof(struct header) == TAR_BLOCK_BYTES && offsetof(struct header, checksum) == CHECKSUM_AT, "a header is one block");

/* The sum of all bytes, with blanks for the checksum itself. */
static unsigned sum_of(const char block[TAR_BLOCK_BYTES])
{
    unsigned sum = ' ' * CHECKSUM_BYTES;

    for (unsigned i = 0; i < TAR_BLOCK_BYTES; i++)
        if (i < CHECKSUM_AT || i >= CHECKSUM_AT + CHECKSUM_BYTES)
            sum += (unsigned char)block[i];
    return sum;
}

/* `digits` octal digits and a NUL. */
static void put_octal(char *to, unsigned digits, uint64_t value)
{
    for (unsigned i = digits; i-- > 0; value >>= 3)
        to[i] = (char)('0' + (value & 7));
    to[digits] = '\0';
}

static void put_size(char to[12], uint64_t bytes)
{
    if (bytes >> 33 == 0) {
        put_octal(to, 11, bytes);
        return;
    }
    to[0] = (char)BASE_256;
    for (unsigned i = 11; i > 0; i--, bytes >>= 8)
        to[i] = (char)(bytes & 0xff);
}

void tar_write(const struct tar_entry *e, uint64_t time_s, char block[TAR_BLOCK_BYTES])
{
    struct header h = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    size_t        n = strlen(e->name);

    assert(n > 0 && n <= sizeof h.name && e->bytes <= INT64_MAX);
    memcpy(h.name, e->name, n);
    put_octal(h.mode, 7, 0600);
    put_octal(h.uid, 7, 0);
    put_octal(h.gid, 7, 0);
    put_size(h.size, e->bytes);
    put_octal(h.mtime, 11, time_s);
    memcpy(block, &h, sizeof h);
    put_octal(block + CHECKSUM_AT, 6, sum_of(block));
    block[CHECKSUM_AT + 7] = ' ';
}

/* Octal digits, up to a blank or NUL or the end; blanks may stand before them. False: something else, or too large. */
static bool get_octal(const char *from, unsigned room, uint64_t *out)
{
    unsigned i = 0, digits = 0;

    *out = 0;
    while (i < room && from[i] == ' ')
        i++;
    for (; i < room && from[i] >= '0' && from[i] <= '7'; i++, digits++) {
        if (*out >> 61)
            return false;
        *out = *out << 3 | (uint64_t)(from[i] - '0');
    }
    return digits > 0 && (i == room || from[i] == ' ' || from[i] == '\0');
}

static bool get_size(const char from[12], uint64_t *out)
{
    if ((unsigned char)from[0] != BASE_256)
        return get_octal(from, 12, out);
    *out = 0;
    for (unsigned i = 1; i < 12; i++) {
        if (*out >> 56)
            return false;
        *out = *out << 8 | (unsigned char)from[i];
    }
    return true;
}

bool tar_zeros(const char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (data[i])
            return false;
    return true;
}

/* The characters of our own names; so none leads out of a folder, and a name can be shown. */
static bool name_is_plain(const char *name)
{
    return name[0] != '/' && span_holds_only(span_of(name), "/._-") && !strstr(name, "..");
}

enum status tar_read(const char block[TAR_BLOCK_BYTES], struct tar_entry *out, bool *end, struct problem *why)
{
    struct header h;
    uint64_t      sum;

    memset(out, 0, sizeof *out);
    *end = tar_zeros(block, TAR_BLOCK_BYTES);
    if (*end)
        return STATUS_OK;
    memcpy(&h, block, sizeof h);
    if (memcmp(h.magic, "ustar", 5) != 0)
        return problem_set(why, STATUS_SNAPSHOT_INVALID, "expected the header of a part, as of a ustar archive");
    if (!get_octal(h.checksum, sizeof h.checksum, &sum) || sum != sum_of(block))
        return problem_set(why, STATUS_SNAPSHOT_INVALID, "the header of a part is damaged: its checksum is wrong");
    memcpy(out->name, h.name, sizeof h.name);
    if (!out->name[0] || h.prefix[0] || !name_is_plain(out->name)) {
        out->name[0] = '\0';
        return problem_set(why, STATUS_SNAPSHOT_INVALID, "the name of a part is none that a snapshot has");
    }
    if (h.type != '0' && h.type != '\0')
        return problem_set(why, STATUS_SNAPSHOT_INVALID, "%s is not a regular file", out->name);
    if (!get_size(h.size, &out->bytes) || out->bytes > INT64_MAX)
        return problem_set(why, STATUS_SNAPSHOT_INVALID, "the size of %s is no number", out->name);
    return STATUS_OK;
}
