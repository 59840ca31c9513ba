/* Transports: own sockets and libcurl. */
#ifndef GPUREST_SDK_TRANSPORT_H
#define GPUREST_SDK_TRANSPORT_H

#include "transport/exchange.h"
#include "transport/url.h"

struct target {
    struct endpoint endpoint;
    char            token[TOKEN_BYTES_MAX + 1]; /* "" = none */
    char           *ca_file;                    /* NULL: the system's */
    int             connect_timeout_ms;
};

/* One thread at a time per connection. */
struct transport {
    /* GPUREST_E_CONNECT, _TIMEOUT, _CANCELLED, _NOMEM_HOST. */
    gpurest_status (*connect)(const struct target *t, struct cancel *c, void **out);
    /* Whether an idle connection seems usable. */
    bool (*alive)(void *connection);
    /* Sets x's answer, x->sent, and *keep if the connection can be reused. */
    gpurest_status (*perform)(void *connection, const struct target *t, struct exchange *x, bool *keep);
    void (*close)(void *connection);
};

extern const struct transport transport_socket; /* http and unix */
extern const struct transport transport_curl;   /* also https */

#endif
