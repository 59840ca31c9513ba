/* Descriptors for clients on Unix sockets: MHD sends bytes only, so one travels on an interim answer of our own ("100 Continue",
 * which every client of HTTP/1.1 reads past), written before MHD writes the answer itself. */
#include <errno.h>
#include <sys/socket.h>

#include "base/log.h"
#include "http/server_internal.h"

static const char INTERIM[] = "HTTP/1.1 100 Continue\r\n\r\n";

union control {
    struct cmsghdr header;
    char           bytes[CMSG_SPACE(sizeof(int))];
};

static void control_fill(struct msghdr *m, union control *c, int fd)
{
    struct cmsghdr *h;

    memset(c, 0, sizeof *c);
    m->msg_control = c->bytes;
    m->msg_controllen = sizeof c->bytes;
    h = CMSG_FIRSTHDR(m);
    h->cmsg_level = SOL_SOCKET;
    h->cmsg_type = SCM_RIGHTS;
    h->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(h), &fd, sizeof fd);
}

/* MHD has sent all of the answer before, and nothing of this one; a full socket is that of a client who reads no answers. */
bool exchange_pass_descriptor(const struct exchange *x)
{
    struct iovec  line = {(char *)(uintptr_t)INTERIM, sizeof INTERIM - 1};
    struct msghdr m = {.msg_iov = &line, .msg_iovlen = 1};
    union control control;
    ssize_t       n;

    if (x->r.reply.descriptor < 0)
        return true;
    control_fill(&m, &control, x->r.reply.descriptor);
    n = sendmsg(x->connection->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n == (ssize_t)line.iov_len)
        return true;
    log_debug("http", "a descriptor could not be passed: %s", n < 0 ? strerror(errno) : "the socket is full");
    return false;
}
