/* The form of an entry's file: magic, length, SHA-256 over key and payload, payload. */
#include "session/code/code_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/digests/digest.h"
#include "base/files/descriptor.h"
#include "base/random.h"

static const char MAGIC[8] = "GRCODE1";

enum { TEMPORARY_NAME_BYTES = 64 };

struct head {
    char          magic[8];
    uint64_t      bytes;
    unsigned char digest[SHA256_BYTES];
};

static_assert(sizeof(struct head) == CODE_ENTRY_HEAD_BYTES, "no padding in a file");

/* The key is part of it: an entry under a wrong name is damaged too. */
static void digest_of(const char *key, struct span payload, unsigned char out[SHA256_BYTES])
{
    struct sha256 h;

    digest_init(&h);
    digest_add_field(&h, span_of(key));
    digest_add_field(&h, payload);
    digest_end(&h, out);
}

static bool read_file(int fd, struct buf *into)
{
    struct stat s;
    char       *at;

    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size < (off_t)sizeof(struct head))
        return false;
    at = buf_reserve(into, (size_t)s.st_size);
    while (at && into->bytes < (size_t)s.st_size) {
        ssize_t n = read(fd, into->data + into->bytes, (size_t)s.st_size - into->bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        buf_grew(into, (size_t)n);
    }
    return at != NULL;
}

static bool entry_sound(const char *key, struct span file, struct span *payload)
{
    unsigned char digest[SHA256_BYTES];
    struct head   head;

    if (file.bytes < sizeof head)
        return false;
    memcpy(&head, file.data, sizeof head);
    *payload = span_from(file, sizeof head);
    if (memcmp(head.magic, MAGIC, sizeof head.magic) != 0 || head.bytes != payload->bytes)
        return false;
    digest_of(key, *payload, digest);
    return memcmp(digest, head.digest, sizeof digest) == 0;
}

/* The kernel's own stamps are too coarse to tell the order of uses. */
static void mark_used(int fd)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    futimens(fd, (const struct timespec[2]){now, now});
}

enum status code_entry_read(int folder, const char *key, struct compile_output *out)
{
    int         fd = openat(folder, key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    enum status st = STATUS_INTERNAL;
    struct span payload;
    struct buf  file;

    if (fd < 0)
        return STATUS_NOT_FOUND;
    buf_init(&file, COMPILE_OUTPUT_BYTES_MAX + sizeof(struct head));
    if (read_file(fd, &file) && entry_sound(key, buf_span(&file), &payload))
        st = compile_output_decode(payload, out);
    buf_finish(&file);
    if (!st)
        mark_used(fd);
    close(fd);
    return st;
}

bool code_entry_write(int folder, const char *key, struct span payload)
{
    struct head head = {.bytes = payload.bytes};
    char        name[TEMPORARY_NAME_BYTES];
    bool        ok;
    int         fd;

    memcpy(head.magic, MAGIC, sizeof head.magic);
    digest_of(key, payload, head.digest);
    if (!random_id(CODE_ENTRY_TEMPORARY, name, sizeof name))
        return false;
    fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    ok = descriptor_write(fd, (struct span){(const char *)&head, sizeof head}) && descriptor_write(fd, payload);
    if (ok)
        mark_used(fd);
    ok = ok && fsync(fd) == 0;
    ok = close(fd) == 0 && ok;
    ok = ok && renameat(folder, name, folder, key) == 0;
    if (!ok)
        unlinkat(folder, name, 0);
    return ok;
}
