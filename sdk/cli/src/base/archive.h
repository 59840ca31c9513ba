/* A tar archive (POSIX ustar) in memory. */
#ifndef GPUREST_CLI_ARCHIVE_H
#define GPUREST_CLI_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>

struct archive {
    unsigned char *data; /* owned */
    size_t         bytes, room;
    bool           failed; /* out of memory; later files are dropped */
};

/* A file of the archive; `name` has fewer than 100 bytes. */
void archive_add(struct archive *a, const char *name, const void *data, size_t bytes);
/* Writes it to `path`, as gzip without compression if that ends in "gz". False: failed and reported. */
bool archive_write(struct archive *a, const char *path);
void archive_finish(struct archive *a);

#endif
