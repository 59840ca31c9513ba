/* Who the client of a connection or a request is: the socket's peer, or the address that a trusted proxy names. */
#include <errno.h>

#include "base/log/log.h"
#include "http/bounds.h"
#include "http/engine/internal.h"

static bool is_trusted(const struct connection *c)
{
    return !c->is_unix && networks_hold(&c->loop->server->proxies, &c->client);
}

static struct peer_address peer_of_ip(const struct ip_address *a)
{
    struct sockaddr_storage s = ip_to_peer(a);

    return peer_of(&s);
}

/* A trusted proxy's connections come from many clients: they count only in the total, not by its address. */
static struct peer_address counted_peer(const struct connection *c)
{
    return c->is_trusted ? (struct peer_address){0} : peer_of_ip(&c->client);
}

void client_connected(struct connection *c, const struct sockaddr_storage *a)
{
    if (!c->used) /* a connection that is taken up again keeps its client */
        c->client = ip_of_peer(a);
    c->is_trusted = is_trusted(c);
    c->may_be_proxied = c->is_trusted && !c->used;
    if (!c->is_unix)
        c->peer = counted_peer(c);
}

/* ---- the PROXY protocol ---- */

static enum client_header take_off(struct connection *c, enum proxy_verdict verdict, const struct proxy_header *header)
{
    unsigned char       dropped[PROXY_HEADER_BYTES_MAX];
    struct peer_address peer;

    if (recvfrom(c->fd, dropped, header->bytes, 0, NULL, NULL) != (ssize_t)header->bytes)
        return CLIENT_HEADER_BAD;
    if (verdict == PROXY_LOCAL)
        return CLIENT_HEADER_DONE;
    c->client = header->client;
    c->is_trusted = is_trusted(c);
    peer = counted_peer(c);
    return slot_move(c, &peer) ? CLIENT_HEADER_DONE : CLIENT_HEADER_FULL;
}

/* Peeks until the whole header has arrived, so that nothing needs to be stored. */
enum client_header client_read_header(struct connection *c)
{
    unsigned char       seen[PROXY_HEADER_BYTES_MAX];
    struct proxy_header header;
    ssize_t             n = recvfrom(c->fd, seen, sizeof seen, MSG_PEEK | MSG_DONTWAIT, NULL, NULL);
    enum proxy_verdict  verdict;

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? CLIENT_HEADER_SHORT : CLIENT_HEADER_DONE; /* the next recv() reports it */
    verdict = proxy_header_read(seen, (size_t)n, &header);
    if (verdict == PROXY_SHORT)
        return CLIENT_HEADER_SHORT;
    c->may_be_proxied = false;
    if (verdict == PROXY_BAD) {
        log_debug("http", "a trusted proxy sent a PROXY protocol header that is invalid or longer than %d bytes", PROXY_HEADER_BYTES_MAX);
        return CLIENT_HEADER_BAD;
    }
    return verdict == PROXY_NONE ? CLIENT_HEADER_DONE : take_off(c, verdict, &header);
}

/* ---- requests ---- */

void client_of_request(struct exchange *x)
{
    const struct connection *c = x->connection;

    x->client = c->client;
    if (c->is_trusted)
        forwarded_client(&c->loop->server->proxies, exchange_header(x, "X-Forwarded-For"), exchange_header(x, "Forwarded"), &x->client);
}

struct peer_address client_address(const struct exchange *x)
{
    return x->connection->is_unix ? (struct peer_address){0} : peer_of_ip(&x->client);
}

const char *client_ip_text(const struct exchange *x, char out[IP_TEXT_BYTES])
{
    return x->connection->is_unix ? "unix" : ip_text(&x->client, out);
}
