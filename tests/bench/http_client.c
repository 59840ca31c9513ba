/* A plain HTTP/1.1 client for benchmarks. */
#include "bench/http_client.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

bool http_connect(struct http_client *c, const char *address, const char *token)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    const char        *colon = strrchr(address, ':');
    int                on = 1;

    memset(c, 0, sizeof *c);
    if (!colon || (size_t)(colon - address) >= sizeof c->host)
        return false;
    memcpy(c->host, address, (size_t)(colon - address));
    to.sin_port = htons((uint16_t)atoi(colon + 1));
    if (inet_pton(AF_INET, c->host, &to.sin_addr) != 1)
        return false;
    snprintf(c->host, sizeof c->host, "%s", address);
    snprintf(c->token, sizeof c->token, "%s", token ? token : "");
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0)
        return false;
    return setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
}

size_t http_build(const struct http_client *c, char *out, size_t room, const char *method, const char *path, const char *type,
                  const void *body, size_t body_bytes)
{
    int head =
        snprintf(out, room, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%s%s%s%s%s%s%sContent-Length: %zu\r\n\r\n", method, path, c->host,
                 *c->token ? "Authorization: Bearer " : "", c->token, *c->token ? "\r\n" : "", *c->prefer ? "Prefer: " : "", c->prefer,
                 *c->prefer ? "\r\n" : "", type ? "Content-Type: " : "", type ? type : "", type ? "\r\n" : "", body_bytes);

    if (head < 0 || (size_t)head > room || body_bytes > room - (size_t)head)
        return 0;
    if (body_bytes)
        memcpy(out + head, body, body_bytes);
    return (size_t)head + body_bytes;
}

static bool send_all(int fd, const char *data, size_t bytes)
{
    while (bytes) {
        ssize_t sent = send(fd, data, bytes, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        data += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

static bool receive_more(struct http_client *c)
{
    ssize_t got;

    if (c->reply_bytes >= sizeof c->reply - 1)
        return false;
    got = recv(c->fd, c->reply + c->reply_bytes, sizeof c->reply - 1 - c->reply_bytes, 0);
    if (got <= 0)
        return false;
    c->reply_bytes += (size_t)got;
    c->reply[c->reply_bytes] = '\0';
    return true;
}

static size_t content_length(const char *head)
{
    const char *line = strcasestr(head, "\r\ncontent-length:");
    return line ? strtoul(line + 17, NULL, 10) : 0;
}

bool http_exchange(struct http_client *c, const char *request, size_t bytes)
{
    char  *end;
    size_t whole;

    c->reply_bytes = 0;
    c->reply[0] = '\0';
    if (!bytes || !send_all(c->fd, request, bytes))
        return false;
    while (!(end = strstr(c->reply, "\r\n\r\n")))
        if (!receive_more(c))
            return false;
    c->status = atoi(c->reply + 9);
    c->body = end + 4;
    whole = (size_t)(c->body - c->reply) + (c->status == 204 ? 0 : content_length(c->reply));
    while (c->reply_bytes < whole)
        if (!receive_more(c))
            return false;
    return true;
}

void http_must(struct http_client *c, const char *method, const char *path, const char *type, const void *body, size_t body_bytes)
{
    static char request[1 << 20];
    size_t      bytes = http_build(c, request, sizeof request, method, path, type, body, body_bytes);

    if (http_exchange(c, request, bytes) && c->status >= 200 && c->status < 300)
        return;
    fprintf(stderr, "%s %s: %d %s\n", method, path, c->status, c->reply_bytes ? c->body : "connection failed");
    exit(EXIT_FAILURE);
}
