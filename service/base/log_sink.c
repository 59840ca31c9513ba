/* Where lines go: one write(2) each to standard error, which keeps lines of several processes apart, or a file that is rotated; and a ring
 * of the last ones. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log_lines.h"

struct kept_line {
    char          *text; /* owned */
    size_t         bytes;
    enum log_level level;
};

static struct {
    pthread_mutex_t  lock; /* over everything */
    char            *path; /* NULL: standard error */
    int              fd;
    uint64_t         bytes, bytes_max;
    unsigned         files;
    uint64_t         newest;
    struct kept_line lines[LOG_LINES_KEPT];
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- the file; with the lock held ---- */

static bool open_file(void)
{
    struct stat st;

    sink.fd = open(sink.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    if (sink.fd < 0)
        return false;
    sink.bytes = fstat(sink.fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    return true;
}

static void name_of(unsigned number, char out[LOG_PATH_BYTES_MAX + 16])
{
    if (number)
        snprintf(out, LOG_PATH_BYTES_MAX + 16, "%s.%u", sink.path, number);
    else
        snprintf(out, LOG_PATH_BYTES_MAX + 16, "%s", sink.path);
}

/* The oldest goes. What cannot be renamed stays, and the file grows on. */
static void rotate(void)
{
    char from[LOG_PATH_BYTES_MAX + 16], to[LOG_PATH_BYTES_MAX + 16];

    close(sink.fd);
    for (unsigned i = sink.files - 1; i > 0; i--) {
        name_of(i - 1, from);
        name_of(i, to);
        if (rename(from, to) && errno != ENOENT)
            break;
    }
    if (sink.files == 1)
        unlink(sink.path);
    open_file(); /* else lines go to standard error */
}

static void write_line(const struct log_line *l)
{
    int fd;

    if (sink.path && sink.fd >= 0 && sink.bytes && sink.bytes + l->bytes > sink.bytes_max)
        rotate();
    fd = sink.fd >= 0 ? sink.fd : STDERR_FILENO;
    if (write(fd, l->text, l->bytes) < 0)
        return; /* nowhere left to say so */
    sink.bytes += l->bytes;
}

bool log_file_open(const char *path, uint64_t bytes_max, unsigned files)
{
    if (strlen(path) > LOG_PATH_BYTES_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    sink.path = strdup(path);
    sink.bytes_max = bytes_max;
    sink.files = files ? files : 1;
    if (sink.path && open_file())
        return true;
    free(sink.path);
    sink.path = NULL;
    return false;
}

void log_file_close(void)
{
    pthread_mutex_lock(&sink.lock);
    if (sink.fd >= 0)
        close(sink.fd);
    sink.fd = -1;
    free(sink.path);
    sink.path = NULL;
    for (size_t i = 0; i < COUNT(sink.lines); i++) {
        free(sink.lines[i].text);
        sink.lines[i] = (struct kept_line){0};
    }
    pthread_mutex_unlock(&sink.lock);
}

/* ---- the ring ---- */

static void keep(enum log_level level, const struct log_line *l)
{
    struct kept_line *k = &sink.lines[++sink.newest % LOG_LINES_KEPT];

    free(k->text);
    *k = (struct kept_line){.text = malloc(l->bytes), .bytes = l->bytes, .level = level};
    if (k->text)
        memcpy(k->text, l->text, l->bytes);
}

void log_sink_write(enum log_level level, const struct log_line *l)
{
    pthread_mutex_lock(&sink.lock);
    write_line(l);
    keep(level, l);
    pthread_mutex_unlock(&sink.lock);
}

uint64_t log_newest(void)
{
    uint64_t newest;

    pthread_mutex_lock(&sink.lock);
    newest = sink.newest;
    pthread_mutex_unlock(&sink.lock);
    return newest;
}

size_t log_next(uint64_t *last, enum log_level most, char *out)
{
    size_t bytes = 0;

    pthread_mutex_lock(&sink.lock);
    if (sink.newest > LOG_LINES_KEPT && *last < sink.newest - LOG_LINES_KEPT)
        *last = sink.newest - LOG_LINES_KEPT;
    while (!bytes && *last < sink.newest) {
        const struct kept_line *k = &sink.lines[++*last % LOG_LINES_KEPT];
        if (!k->text || k->level > most)
            continue;
        bytes = k->bytes;
        memcpy(out, k->text, bytes);
    }
    pthread_mutex_unlock(&sink.lock);
    return bytes;
}
