/* Connections: accepted by us, so that limits hold before a byte is read, and then given to MHD. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log/log.h"
#include "http/bounds.h"
#include "http/engine/internal.h"
#include "http/message/problem_document.h"

struct peer_address peer_of(const struct sockaddr_storage *a)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    struct peer_address    p = {.counted = true};

    if (a->ss_family == AF_INET)
        memcpy(p.bytes + 1, &((const struct sockaddr_in *)(const void *)a)->sin_addr, sizeof(struct in_addr));
    else if (a->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six))
        memcpy(p.bytes + 1, six->s6_addr + 12, sizeof(struct in_addr));
    else if (a->ss_family == AF_INET6) {
        p.bytes[0] = 6;
        memcpy(p.bytes + 1, six->s6_addr, PEER_ADDRESS_BYTES - 1);
    } else
        p.counted = false;
    return p;
}

/* MHD copies the address and needs only its family; a Unix client's own name may be longer than MHD's copy. */
static bool give_to_daemon(struct loop *loop, int fd, const struct sockaddr_storage *a, socklen_t bytes)
{
    struct MHD_Daemon     *daemon = a->ss_family != AF_UNIX && loop->mhd_tls ? loop->mhd_tls : loop->mhd;
    const struct sockaddr  unnamed = {.sa_family = AF_UNIX};
    const struct sockaddr *address = (const struct sockaddr *)a;

    if (a->ss_family == AF_UNIX) {
        address = &unnamed;
        bytes = sizeof unnamed.sa_family;
    }
    if (MHD_add_connection(daemon, fd, address, bytes) == MHD_YES)
        return true;
    log_debug("http", "cannot serve a connection");
    return false;
}

/* MHD tells connection_notify of the newcomer, inside MHD_add_connection or the next MHD_run. False: nothing more to accept now. */
static bool accept_one(struct loop *loop, struct listener *l, int *error)
{
    struct sockaddr_storage a = {0};
    socklen_t               bytes = sizeof a;
    int                     fd = accept4(l->fds[loop->index], (struct sockaddr *)&a, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);

    *error = fd < 0 ? errno : 0;
    if (fd < 0)
        return errno == EINTR || errno == ECONNABORTED;
    if (l->is_unix)
        a.ss_family = AF_UNIX;
    give_to_daemon(loop, fd, &a, bytes);
    return true;
}

bool connection_accept(struct loop *loop, struct listener *l)
{
    int error = 0;

    for (unsigned i = 0; i < ACCEPTS_PER_TURN && accept_one(loop, l, &error); i++)
        ;
    if (error == EMFILE || error == ENFILE)
        slots_relieve(loop->server);
    return error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM;
}

static struct connection *take_adopted(struct loop *loop, int fd)
{
    struct connection *c = LIST_FIRST(&loop->adopting);

    while (c && c->successor != fd)
        c = LIST_NEXT(c, link);
    if (c)
        LIST_REMOVE(c, link);
    return c;
}

static struct connection *new_connection(struct loop *loop, int fd)
{
    struct connection *c = take_adopted(loop, fd);
    bool               used = c != NULL;

    c = c ? c : calloc(1, sizeof *c);
    if (c)
        *c = (struct connection){.loop = loop, .fd = fd, .successor = -1, .used = used, .client = c->client, .since_ns = now_ns()};
    return c;
}

static void connection_open(struct loop *loop, struct MHD_Connection *mhd, void **context)
{
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct sockaddr_storage         a = {0};
    socklen_t                       bytes = sizeof a;
    struct connection              *c = new_connection(loop, fd->connect_fd);

    *context = NULL;
    if (c && getpeername(fd->connect_fd, (struct sockaddr *)&a, &bytes) == 0) {
        c->is_unix = a.ss_family == AF_UNIX;
        c->is_tls = !c->is_unix && loop->mhd_tls;
        c->mhd = mhd;
        client_connected(c, &a);
        if (receive_add(c) && slot_take(c, c->used)) {
            LIST_INSERT_HEAD(&loop->connections, c, link);
            *context = c;
            return;
        }
        connection_reject(c, STATUS_OVERLOADED);
        receive_remove(c);
    }
    free(c);
    shutdown(fd->connect_fd, SHUT_RDWR);
}

static void connection_close(struct connection *c)
{
    if (!c)
        return;
    if (c->linger)
        linger_add(c->loop, c->fd);
    LIST_REMOVE(c, link);
    slot_give(c);
    receive_remove(c);
    if (c->successor < 0)
        free(c);
    else
        LIST_INSERT_HEAD(&c->loop->reborn, c, link);
}

static void adopt(struct loop *loop, struct connection *c)
{
    struct sockaddr_storage a = {0};
    socklen_t               bytes = sizeof a;
    int                     fd = c->successor;

    LIST_REMOVE(c, link);
    LIST_INSERT_HEAD(&loop->adopting, c, link);
    if (getpeername(fd, (struct sockaddr *)&a, &bytes)) {
        close(fd);
    } else {
        a.ss_family = c->is_unix ? AF_UNIX : a.ss_family;
        if (give_to_daemon(loop, fd, &a, bytes))
            return;
    }
    free(take_adopted(loop, fd)); /* MHD closes what it refuses */
}

void connections_adopt(struct loop *loop)
{
    while (!LIST_EMPTY(&loop->reborn))
        adopt(loop, LIST_FIRST(&loop->reborn));
}

void connection_inherit(struct loop *loop, int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t               bytes = sizeof a;

    if (getpeername(fd, (struct sockaddr *)&a, &bytes))
        close(fd);
    else
        give_to_daemon(loop, fd, &a, bytes); /* MHD closes what it refuses */
}

static void free_all(struct connection_list *l)
{
    while (!LIST_EMPTY(l)) {
        struct connection *c = LIST_FIRST(l);

        LIST_REMOVE(c, link);
        free(c);
    }
}

void connections_abandon(struct loop *loop)
{
    for (struct connection *c = LIST_FIRST(&loop->reborn); c; c = LIST_NEXT(c, link))
        close(c->successor);
    free_all(&loop->reborn);
    free_all(&loop->adopting);
}

void connection_notify(void *loop, struct MHD_Connection *mhd, void **socket_context, enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        connection_open(loop, mhd, socket_context);
        return;
    }
    connection_close(*socket_context);
    *socket_context = NULL;
}

void connection_cut(struct connection *c)
{
    shutdown(c->fd, SHUT_RDWR);
}

/* A client that waits for a TLS handshake could not read it. */
void connection_reject(const struct connection *c, enum status st)
{
    const struct problem       why = {.status = st};
    const struct problem_place nowhere = {.request_id = ""};
    struct reply               r;

    if (c->is_tls)
        return;
    count_problem(st);
    reply_init(&r);
    problem_document_reply(&why, &nowhere, &r);
    if (!r.body.failed)
        answer_send_last(c, &r, "");
    reply_finish(&r);
}
