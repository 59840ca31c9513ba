/* The container of snapshots: a tar archive of regular files, in the format that POSIX calls ustar. A size that has no place in twelve octal digits
 * is written in base 256, as GNU tar, bsdtar and Python's tarfile write and read it. No shared state. */
#pragma once

#include "base/problem.h"

enum {
    TAR_BLOCK_BYTES = 512,
    TAR_NAME_BYTES = 101, /* with its NUL */
    TAR_END_BYTES = 2 * TAR_BLOCK_BYTES,
};

struct tar_entry {
    char     name[TAR_NAME_BYTES];
    uint64_t bytes;
};

/* What follows the bytes of an entry, up to the next block. */
static inline unsigned tar_padding(uint64_t bytes)
{
    return (unsigned)(-bytes % TAR_BLOCK_BYTES);
}

/* One header. The name is shorter than TAR_NAME_BYTES, the size at most INT64_MAX. */
void tar_write(const struct tar_entry *e, uint64_t time_s, char block[TAR_BLOCK_BYTES]);

/* From untrusted bytes: a block of zeros is *end. SNAPSHOT_INVALID says what is wrong. */
enum status tar_read(const char block[TAR_BLOCK_BYTES], struct tar_entry *out, bool *end, struct problem *why);
/* All zeros? */
bool tar_zeros(const char *data, size_t bytes);
