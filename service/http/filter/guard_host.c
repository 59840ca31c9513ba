/* Host and Origin: a web page in a browser on this machine must not reach the service by DNS rebinding or a cross-site request. */
#include <netdb.h>

#include "http/engine/internal.h"

static bool is_port(struct span text)
{
    uint64_t port;

    return text.bytes <= sizeof "65535" - 1 && span_u64(text, &port) && port > 0 && port <= UINT16_MAX;
}

/* Host and port of RFC 3986: "name:port", "[v6]:port" -> "name", "[v6]". False: the text is no such pair. */
static bool split_host(struct span host, struct span *name)
{
    struct ip_address v6;
    bool              is_v6 = span_starts(host, "[");
    const char       *end = host.bytes ? memchr(host.data, is_v6 ? ']' : ':', host.bytes) : NULL;
    struct span       port;

    *name = end ? span_first(host, (size_t)(end - host.data) + is_v6) : host;
    port = span_from(host, name->bytes);
    if (is_v6 && (!end || !memchr(name->data, ':', name->bytes) || !ip_parse(span_first(span_from(*name, 1), name->bytes - 2), &v6)))
        return false;
    if (!is_v6 && !span_holds_only(*name, "-._~!$&'()*+,;=%"))
        return false;
    return port.bytes == 0 || (span_starts(port, ":") && is_port(span_from(port, 1)));
}

/* The host that the client names. */
static struct span host_of(const struct exchange *x)
{
    return x->is_absolute ? x->authority : span_trim(exchange_header(x, "Host"));
}

static bool is_loopback_name(struct span name)
{
    return span_equal_nocase(name, SPAN_LITERAL("localhost")) || span_is(name, "127.0.0.1") || span_is(name, "[::1]");
}

static bool is_configured(const struct server *s, struct span name)
{
    for (unsigned i = 0; i < s->config.hosts_count; i++)
        if (span_equal_nocase(name, span_of(s->config.hosts[i])))
            return true;
    return false;
}

/* Whether the name is the address that the client connected to. An address cannot be rebound. */
static bool is_own_address(const struct exchange *x, struct span name)
{
    struct sockaddr_storage a;
    socklen_t               bytes = sizeof a;
    char                    text[NI_MAXHOST];
    struct span             own;

    if (getsockname(x->connection->fd, (struct sockaddr *)&a, &bytes) ||
        getnameinfo((struct sockaddr *)&a, bytes, text, sizeof text, NULL, 0, NI_NUMERICHOST))
        return false;
    own = span_of(text);
    own = span_cut(&own, '%'); /* cuts the interface off a link-local address; clients do not send it */
    if (span_starts(own, "::ffff:"))
        own = span_from(own, strlen("::ffff:"));
    if (span_starts(name, "[") && name.bytes >= 2)
        name = span_first(span_from(name, 1), name.bytes - 2);
    return span_equal_nocase(name, own);
}

static enum status bad_host(struct exchange *x)
{
    if (x->is_absolute)
        return problem_set(&x->r.problem, STATUS_INVALID_REQUEST,
                           "the host in the request target must be a name or an address, optionally with a port from 1 to 65535");
    return problem_set(&x->r.problem, STATUS_INVALID_HEADER, "Host must be a name or an address, optionally with a port from 1 to 65535");
}

/* HTTP/1.0 clients may omit Host; browsers always send it. On a Unix socket any name is allowed. */
static enum status check_host(struct exchange *x)
{
    struct span host = host_of(x), name;

    if (!x->is_absolute && (x->connection->is_unix || (x->http_1_0 && !host.data)))
        return STATUS_OK;
    if (!split_host(host, &name) || (x->is_absolute && !name.bytes))
        return bad_host(x);
    if (x->connection->is_unix || is_loopback_name(name) || is_configured(x->loop->server, name) || is_own_address(x, name))
        return STATUS_OK;
    return problem_set(&x->r.problem, STATUS_MISDIRECTED_REQUEST, "unknown host %s; the operator can allow it",
                       x->is_absolute ? "in the request target" : "in Host");
}

static bool is_same_origin(const struct exchange *x, struct span origin)
{
    const char *scheme = x->connection->is_tls ? "https://" : "http://";
    struct span host = host_of(x);

    return !x->connection->is_unix && span_starts(origin, scheme) && host.bytes &&
           span_equal_nocase(span_from(origin, strlen(scheme)), host);
}

static bool origin_allowed(const struct exchange *x, struct span origin)
{
    const struct server *s = x->loop->server;

    for (unsigned i = 0; i < s->config.origins_count; i++)
        if (span_is(origin, s->config.origins[i]))
            return true;
    return is_same_origin(x, origin);
}

static enum status check_origin(struct exchange *x)
{
    struct span origin = span_trim(exchange_header(x, "Origin"));
    bool        cross_site = span_is(span_trim(exchange_header(x, "Sec-Fetch-Site")), "cross-site");

    if (origin.data ? origin_allowed(x, origin) : !cross_site)
        return STATUS_OK;
    return problem_set(&x->r.problem, STATUS_ORIGIN_NOT_ALLOWED, "requests from this origin are not allowed");
}

enum status exchange_guard_host(struct exchange *x)
{
    enum status st = check_host(x);

    return st ? st : check_origin(x);
}
