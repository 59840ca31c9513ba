/* Descriptors over sockets: one with each message, never one too many. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/files/descriptor.h"

static int ends[2];

static void open_ends(void)
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

Test(descriptor, one_travels_with_its_message, .init = open_ends)
{
    char word[8] = "", byte = 0;
    int  pipes[2], fd = -1;

    cr_assert_eq(pipe(pipes), 0);
    cr_assert_eq(descriptor_send(ends[0], "hello", 5, pipes[1]), 5);
    close(pipes[1]);
    cr_assert_eq(descriptor_receive(ends[1], word, sizeof word, &fd), 5);
    cr_assert_eq(memcmp(word, "hello", 5), 0);
    cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    cr_assert_eq(write(fd, "x", 1), 1);
    cr_assert_eq(read(pipes[0], &byte, 1), 1);
    cr_assert_eq(byte, 'x');
    close(fd);
    close(pipes[0]);
}

Test(descriptor, nothing_blocks, .init = open_ends)
{
    char word[8];
    int  fd = 5;

    cr_assert_eq(descriptor_receive(ends[1], word, sizeof word, &fd), -1);
    cr_assert_eq(errno, EAGAIN);
    cr_assert_eq(fd, -1);
    for (int i = 0; i < 100000 && descriptor_send(ends[0], "x", 1, STDIN_FILENO) == 1; i++)
        continue;
    cr_assert_eq(descriptor_send(ends[0], "x", 1, STDIN_FILENO), -1);
    close(ends[0]);
    while (descriptor_receive(ends[1], word, sizeof word, &fd) == 1)
        close(fd);
    cr_assert_eq(descriptor_receive(ends[1], word, sizeof word, &fd), 0);
    cr_assert_eq(fd, -1);
    cr_assert_eq(descriptor_send(ends[1], "x", 1, STDIN_FILENO), -1);
}

static void send_many(int count)
{
    union {
        struct cmsghdr header;
        char           bytes[CMSG_SPACE(8 * sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec  piece = {(char[]){"x"}, 1};
    struct msghdr m = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int))};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    int             fds[8] = {0};

    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    memcpy(CMSG_DATA(h), fds, (size_t)count * sizeof(int));
    cr_assert_eq(sendmsg(ends[0], &m, 0), 1);
}

Test(descriptor, of_several_no_more_than_one_comes_in, .init = open_ends)
{
    char     word[8];
    unsigned before = open_descriptors();

    for (int count = 2; count <= 8; count++) {
        int fd = -1;

        send_many(count);
        cr_assert_eq(descriptor_receive(ends[1], word, sizeof word, &fd), 1);
        if (fd >= 0)
            close(fd);
        cr_assert_eq(open_descriptors(), before, "%d", count);
    }
}

Test(descriptor, a_message_may_bring_none, .init = open_ends)
{
    char word[8];
    int  fd = 5;

    cr_assert_eq(send(ends[0], "x", 1, 0), 1);
    cr_assert_eq(descriptor_receive(ends[1], word, sizeof word, &fd), 1);
    cr_assert_eq(fd, -1);
}
