/* The file that has the bytes of a hibernated session: in host memory, or nameless in the folder of --hibernate-dir, so that it is gone with the process. */
#include "session/hibernate/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/portion.h"

/* ---- the bound ---- */

static enum status charge(struct registry *r, struct account *a, uint64_t bytes, struct problem *why)
{
    struct portion all = {.name = "hibernated_bytes", .max = r->config.hibernate_bytes_max};
    enum status    st;

    pthread_mutex_lock(&r->lock);
    all.used = r->hibernated_bytes;
    all.mine = a->hibernated_bytes;
    st = portion_check(&all, bytes, why);
    if (!st) {
        r->hibernated_bytes += bytes;
        a->hibernated_bytes += bytes;
        a->payers++;
    }
    pthread_mutex_unlock(&r->lock);
    return st;
}

static void discharge(struct registry *r, struct account *a, uint64_t bytes)
{
    pthread_mutex_lock(&r->lock);
    assert(r->hibernated_bytes >= bytes && a->hibernated_bytes >= bytes);
    r->hibernated_bytes -= bytes;
    a->hibernated_bytes -= bytes;
    pthread_mutex_unlock(&r->lock);
    account_leave(r, a);
}

/* ---- the file ---- */

static enum status disk_failed(const char *folder, int error, struct problem *why)
{
    if (error == ENOSPC || error == EDQUOT)
        return problem_set(why, STATUS_OVERLOADED, "there is no room for the session's bytes %s",
                           folder ? "in the folder of --hibernate-dir" : "in host memory");
    return problem_set(why, STATUS_OUT_OF_MEMORY, "cannot keep the session's bytes %s: %s",
                       folder ? "in the folder of --hibernate-dir" : "in host memory", strerror(error));
}

/* Not every file system has files without a name. */
static int open_unnamed(const char *folder)
{
    char path[4096];
    int  fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
        return fd;
    if (snprintf(path, sizeof path, "%s/.hibernated-XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* A disk that is full is found before anything leaves the device. */
static int make_file(const char *folder, uint64_t bytes)
{
    int fd = folder ? open_unnamed(folder) : memfd_create("hibernated", MFD_CLOEXEC), bad = 0;

    if (fd < 0)
        return -1;
    if (folder && bytes)
        bad = posix_fallocate(fd, 0, (off_t)bytes);
    else if (ftruncate(fd, (off_t)bytes))
        bad = errno;
    if (!bad)
        return fd;
    close(fd);
    errno = bad;
    return -1;
}

enum status store_open(struct session *s, uint64_t bytes, struct hibernation *h, struct problem *why)
{
    struct registry *r = s->registry;
    const char      *folder = r->config.hibernate_dir;
    enum status      st = charge(r, s->payer, bytes, why);

    if (st)
        return st;
    h->fd = make_file(folder, bytes);
    if (h->fd < 0) {
        st = disk_failed(folder, errno, why);
        discharge(r, s->payer, bytes);
        return st;
    }
    h->registry = r;
    h->payer = s->payer;
    h->bytes = bytes;
    return STATUS_OK;
}

static void end(struct hibernation *h)
{
    if (h->fd >= 0) {
        close(h->fd);
        discharge(h->registry, h->payer, h->bytes);
    }
    free(h->kept);
    free(h);
}

static void *end_beside(void *argument)
{
    struct hibernation *h = argument;
    struct registry    *r = h->registry;

    end(h);
    registry_runner_leave(r);
    return NULL;
}

void store_close(struct hibernation *h)
{
    if (!h)
        return;
    for (unsigned i = 0; i < h->count; i++)
        buffer_unref(h->kept[i].buffer);
    h->count = 0;
    if (h->fd < 0 || !registry_runner_start(h->registry, end_beside, h))
        end(h);
}

enum status store_write(const struct hibernation *h, const unsigned char *from, size_t bytes, uint64_t at, struct problem *why)
{
    while (bytes) {
        ssize_t n = pwrite(h->fd, from, bytes, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return disk_failed(h->registry->config.hibernate_dir, n ? errno : ENOSPC, why);
        from += n;
        at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return STATUS_OK;
}

enum status store_read(const struct hibernation *h, unsigned char *to, size_t bytes, uint64_t at, struct problem *why)
{
    while (bytes) {
        ssize_t n = pread(h->fd, to, bytes, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return problem_set(why, STATUS_INTERNAL,
                               "the bytes of the hibernated session could not be read back, and stay where they are: %s",
                               n ? strerror(errno) : "the file is too short");
        to += n;
        at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return STATUS_OK;
}

void hibernation_use_of(struct registry *r, struct hibernation_use *out)
{
    pthread_mutex_lock(&r->lock);
    *out = (struct hibernation_use){r->hibernated_bytes, r->config.hibernate_bytes_max};
    pthread_mutex_unlock(&r->lock);
}
