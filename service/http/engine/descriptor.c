/* Descriptors for clients on Unix sockets: MHD sends bytes only, so one travels on an interim answer of our own ("100 Continue",
 * which every client of HTTP/1.1 reads past), written before MHD writes the answer itself. */
#include <errno.h>

#include "base/files/descriptor.h"
#include "base/log/log.h"
#include "http/engine/internal.h"

static const char INTERIM[] = "HTTP/1.1 100 Continue\r\n\r\n";

/* MHD has sent all of the answer before, and nothing of this one; a full socket is that of a client who reads no answers. */
bool exchange_pass_descriptor(const struct exchange *x)
{
    ssize_t n;

    if (x->r.reply.descriptor < 0)
        return true;
    n = descriptor_send(x->connection->fd, INTERIM, sizeof INTERIM - 1, x->r.reply.descriptor);
    if (n == (ssize_t)(sizeof INTERIM - 1))
        return true;
    log_debug("http", "cannot send a file descriptor: %s", n < 0 ? strerror(errno) : "the socket is full");
    return false;
}
