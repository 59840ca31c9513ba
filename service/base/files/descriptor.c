/* Messages with one file descriptor; what a descriptor has, and takes. */
#include "base/files/descriptor.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr header; /* for alignment */
    char           bytes[CMSG_SPACE(sizeof(int))];
};

ssize_t descriptor_send(int socket, const void *data, size_t bytes, int fd)
{
    struct iovec    piece = {(void *)(size_t)data, bytes};
    union control   control = {.bytes = {0}};
    struct msghdr   m = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);

    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
    return sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t descriptor_receive(int socket, void *data, size_t room, int *fd)
{
    struct iovec  piece = {data, room};
    union control control = {.bytes = {0}};
    /* CMSG_SPACE would leave room for a second descriptor, which would leak. */
    struct msghdr   m = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_LEN(sizeof *fd)};
    struct cmsghdr *h;
    ssize_t         n = recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    *fd = -1;
    h = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof *fd))
        memcpy(fd, CMSG_DATA(h), sizeof *fd);
    return n;
}

bool descriptor_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

void descriptor_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool descriptor_write(int fd, struct span bytes)
{
    while (bytes.bytes) {
        ssize_t n = write(fd, bytes.data, bytes.bytes);

        if (n < 0 && errno != EINTR)
            return false;
        bytes = span_from(bytes, n > 0 ? (size_t)n : 0);
    }
    return true;
}
