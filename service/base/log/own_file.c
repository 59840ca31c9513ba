/* Through a link planted by another user, the service would write to a file of its own user; a file of another user would leak what it writes. */
#include "base/log/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"

enum { SUFFIX_BYTES = 32 };

/* NULL: no fault. */
static const char *fault_of(int fd)
{
    struct stat st;

    if (fstat(fd, &st))
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return "not a regular file";
    if (st.st_uid != geteuid())
        return "owned by another user";
    return st.st_nlink != 1 ? "has more than one hard link" : NULL;
}

int own_file_open(const char *path, int flags, unsigned mode, struct problem *why)
{
    /* O_NONBLOCK: a named pipe without a reader fails at once */
    int         fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode);
    const char *fault = fd < 0 ? NULL : fault_of(fd);

    if (fd < 0)
        problem_set(why, STATUS_INTERNAL, "%s: %s", path, errno == ELOOP ? "is a symbolic link; name the file itself" : strerror(errno));
    else if (fault)
        problem_set(why, STATUS_INTERNAL, "%s: %s; name a file that this user owns, or one that does not exist", path, fault);
    if (!fault)
        return fd;
    close(fd);
    return -1;
}

static bool write_new(const char *path, struct span text, struct problem *why)
{
    int  fd = own_file_open(path, O_WRONLY | O_CREAT | O_EXCL, 0644, why);
    bool ok = fd >= 0;

    if (!ok)
        return false;
    while (ok && text.bytes) {
        ssize_t n = write(fd, text.data, text.bytes);

        ok = n > 0 || (n < 0 && errno == EINTR);
        text = span_from(text, n > 0 ? (size_t)n : 0);
    }
    if (!ok)
        problem_set(why, STATUS_INTERNAL, "%s: %s", path, strerror(errno));
    if (close(fd) && ok) {
        ok = false;
        problem_set(why, STATUS_INTERNAL, "%s: %s", path, strerror(errno));
    }
    return ok;
}

enum status own_file_replace(const char *path, struct span text, struct problem *why)
{
    size_t      room = strlen(path) + SUFFIX_BYTES;
    char       *fresh = malloc(room);
    uint64_t    number = 0;
    enum status st = STATUS_OK;

    if (!fresh)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "out of memory");
    random_bytes(&number, sizeof number); /* unpredictable, so that nobody can create the file first */
    snprintf(fresh, room, "%s.%016" PRIx64, path, number);
    if (!write_new(fresh, text, why))
        st = STATUS_INTERNAL;
    else if (rename(fresh, path))
        st = problem_set(why, STATUS_INTERNAL, "%s: %s", path, strerror(errno));
    if (st)
        unlink(fresh);
    free(fresh);
    return st;
}
