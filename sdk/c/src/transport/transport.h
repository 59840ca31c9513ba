/* What carries an exchange. Two kinds: our own sockets, and libcurl. */
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

/* All may be called by one thread at a time for one connection. */
struct transport {
    /* GPUREST_E_CONNECT, _TIMEOUT, _CANCELLED, _NOMEM_HOST. */
    gpurest_status (*connect)(const struct target *t, struct cancel *c, void **out);
    /* Whether an idle connection may still be used; a guess, but a good one. */
    bool (*alive)(void *connection);
    /* Sets x's answer, x->sent, and *keep when the connection may carry another exchange. */
    gpurest_status (*perform)(void *connection, const struct target *t, struct exchange *x, bool *keep);
    void (*close)(void *connection);
};

extern const struct transport transport_socket; /* http and unix */
extern const struct transport transport_curl;   /* https, too */

#endif
