/* The private folder of all MPS servers of this process. It lies where short paths are, for those of sockets are short, and is locked
 * while its owner lives: so the next start finds what a killed one has left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/folder.h"
#include "base/log/log.h"
#include "pool/domains/server.h"

static const char PARENT[] = "/tmp";
static const char NAME[] = "gpurest-mps-";

enum { TRIES = 3 };

/* -1 with errno; EWOULDBLOCK: somebody else has locked it. */
static int lock_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), error;

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* One that is ours, and that no living process has locked. */
static void remove_if_left(const char *path)
{
    struct stat st;
    int         fd;

    if (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (fd = lock_folder(path)) < 0)
        return;
    if (folder_remove(path))
        log_info("pool", "removed %s, which an earlier process has left", path);
    close(fd);
}

static void remove_left(void)
{
    DIR           *folder = opendir(PARENT);
    struct dirent *e;
    char           path[sizeof PARENT + sizeof e->d_name];

    while (folder && (e = readdir(folder))) {
        if (strncmp(e->d_name, NAME, sizeof NAME - 1) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", PARENT, e->d_name);
        remove_if_left(path);
    }
    if (folder)
        closedir(folder);
}

/* A new one that is locked; another process that starts may have removed it before. -1 with errno. */
static int make_locked(char path[SERVER_PATH_BYTES])
{
    struct stat st;
    int         fd;

    snprintf(path, SERVER_PATH_BYTES, "%s/%sXXXXXX", PARENT, NAME);
    fd = mkdtemp(path) ? lock_folder(path) : -1; /* mode 0700 */
    if (fd >= 0 && (fstat(fd, &st) || st.st_nlink == 0)) {
        close(fd);
        errno = ENOENT;
        fd = -1;
    }
    return fd;
}

bool mps_base_create(char path[SERVER_PATH_BYTES], int *lock_fd)
{
    remove_left();
    *lock_fd = -1;
    for (int i = 0; i < TRIES && *lock_fd < 0; i++)
        *lock_fd = make_locked(path);
    return *lock_fd >= 0;
}

void mps_base_remove(const char *path, int *lock_fd)
{
    if (*lock_fd < 0)
        return;
    folder_remove(path);
    descriptor_close(lock_fd);
}
