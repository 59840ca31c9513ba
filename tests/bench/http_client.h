/* A plain HTTP/1.1 client on one kept connection, with as little of its own cost as possible. For benchmarks only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_client {
    int    fd;
    char   host[64];
    char   token[128]; /* "" = none */
    char   prefer[64]; /* the value of each request's Prefer; "" = none */
    char   reply[65536];
    size_t reply_bytes;
    char  *body; /* in reply, NUL-terminated */
    int    status;
};

/* "HOST:PORT" with a numeric address. */
bool http_connect(struct http_client *c, const char *address, const char *token);
/* Sends all of `request` (built by http_build) and reads one answer with a Content-Length. False when the connection failed. */
bool http_exchange(struct http_client *c, const char *request, size_t bytes);
/* Bytes of the request in `out`; 0 when it does not fit. `type` may be NULL. */
size_t http_build(const struct http_client *c, char *out, size_t room, const char *method, const char *path, const char *type,
                  const void *body, size_t body_bytes);
/* Build and exchange in one; ends the program unless the status is 2xx. */
void http_must(struct http_client *c, const char *method, const char *path, const char *type, const void *body, size_t body_bytes);
