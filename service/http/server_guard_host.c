/* Host and Origin: a web page in a browser on this machine must not reach us by a rebound name or a cross-site request. */
#include <netdb.h>

#include "http/server_internal.h"

/* "name:port", "[v6]:port" -> "name", "[v6]". */
static struct span without_port(struct span host)
{
    const char *end;

    if (span_starts(host, "[")) {
        end = memchr(host.data, ']', host.bytes);
        return end ? span_first(host, (size_t)(end - host.data) + 1) : host;
    }
    return span_cut(&host, ':');
}

static bool is_loopback_name(struct span name)
{
    return span_equal_nocase(name, SPAN_LITERAL("localhost")) || span_is(name, "127.0.0.1") || span_is(name, "[::1]");
}

static bool is_configured(const struct server *s, struct span name)
{
    for (unsigned i = 0; i < s->config.hosts_count; i++)
        if (span_equal_nocase(name, span_of(s->hosts[i])))
            return true;
    return false;
}

/* The very address that the client connected to. A number cannot be rebound. */
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
    if (span_starts(own, "::ffff:"))
        own = span_from(own, strlen("::ffff:"));
    if (span_starts(name, "[") && name.bytes >= 2)
        name = span_first(span_from(name, 1), name.bytes - 2);
    return span_equal_nocase(name, own);
}

/* Clients of HTTP/1.0 need not send Host, and browsers always do. */
static enum status check_host(struct exchange *x)
{
    struct span host = span_trim(exchange_header(x, "Host"));
    struct span name = without_port(host);

    if (x->connection->is_unix || (x->http_1_0 && !host.data))
        return STATUS_OK;
    if (is_loopback_name(name) || is_configured(x->loop->server, name) || is_own_address(x, name))
        return STATUS_OK;
    return problem_set(&x->r.problem, STATUS_MISDIRECTED_REQUEST, "the name in Host is not served here; the operator can allow it");
}

static bool is_same_origin(const struct exchange *x, struct span origin)
{
    const char *scheme = x->connection->is_tls ? "https://" : "http://";
    struct span host = span_trim(exchange_header(x, "Host"));

    return !x->connection->is_unix && span_starts(origin, scheme) && host.bytes &&
           span_equal_nocase(span_from(origin, strlen(scheme)), host);
}

static bool origin_allowed(const struct exchange *x, struct span origin)
{
    const struct server *s = x->loop->server;

    for (unsigned i = 0; i < s->config.origins_count; i++)
        if (span_is(origin, s->origins[i]))
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
