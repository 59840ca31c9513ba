/* A tar archive in memory (POSIX ustar), and as gzip where its name ends so. One thread. */
#ifndef GPUREST_CLI_ARCHIVE_H
#define GPUREST_CLI_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>

struct archive {
    unsigned char *data; /* owned */
    size_t         bytes, room;
    bool           failed; /* no memory; what comes after is not added */
};

/* A file of the archive; `name` has fewer than 100 bytes. */
void archive_add(struct archive *a, const char *name, const void *data, size_t bytes);
/* Ends it and writes it to `path` as file_write() does: gzip, not compressed, where that ends in gz. False: said. */
bool archive_write(struct archive *a, const char *path);
void archive_finish(struct archive *a);

#endif
