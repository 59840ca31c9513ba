/* Reads small files. Opens them without blocking, so that a FIFO without a writer does not block the start of the service. */
#include "base/files/input_file.h"
#include "base/bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/deadline.h"

enum { PIECE_BYTES = 4096 };

static enum status read_failed(struct problem *why, const char *what, int error)
{
    return problem_set(why, STATUS_INVALID_REQUEST, "%s: %s", what, strerror(error));
}

enum status input_file_open(const char *path, int *fd, struct problem *why)
{
    struct stat what;

    *fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (*fd < 0)
        return read_failed(why, "cannot be opened", errno);
    if (fstat(*fd, &what) == 0 && (S_ISREG(what.st_mode) || S_ISFIFO(what.st_mode) || S_ISCHR(what.st_mode)))
        return STATUS_OK;
    close(*fd);
    *fd = -1;
    return problem_set(why, STATUS_INVALID_REQUEST, "is not a file or a pipe");
}

/* Files are always ready. */
static enum status wait_for_bytes(int fd, uint64_t deadline, struct problem *why)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int           ready;

    do
        ready = poll(&p, 1, (int)(deadline_left_ns(deadline) / NS_PER_MS));
    while (ready < 0 && errno == EINTR);
    if (ready < 0)
        return read_failed(why, "cannot be read", errno);
    return ready ? STATUS_OK
                 : problem_set(why, STATUS_INVALID_REQUEST, "does not reach its end: a pipe must end within %d s", INPUT_PIPE_S);
}

/* *more is false at the end. */
static enum status read_piece(int fd, struct buf *out, bool *more, struct problem *why)
{
    char    piece[PIECE_BYTES];
    ssize_t n = read(fd, piece, sizeof piece);

    *more = n != 0;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? STATUS_OK : read_failed(why, "cannot be read", errno);
    if ((size_t)n > out->max - out->bytes)
        return problem_set(why, STATUS_INVALID_REQUEST, "is longer than %zu bytes", out->max);
    if (n > 0 && !buf_add(out, piece, (size_t)n))
        return problem_set(why, STATUS_OUT_OF_MEMORY, "cannot be read: out of memory");
    explicit_bzero(piece, sizeof piece); /* it may contain a key */
    return STATUS_OK;
}

enum status input_file_read(int fd, struct buf *out, struct problem *why)
{
    uint64_t    deadline = deadline_after_ns(INPUT_PIPE_S * NS_PER_S);
    bool        more = true;
    enum status st = STATUS_OK;

    while (more && !st) {
        st = wait_for_bytes(fd, deadline, why);
        if (!st)
            st = read_piece(fd, out, &more, why);
    }
    return st;
}

enum status input_file_take(const char *path, struct buf *out, struct problem *why)
{
    int         fd;
    enum status st = input_file_open(path, &fd, why);

    if (st)
        return st;
    st = input_file_read(fd, out, why);
    close(fd);
    return st;
}
