/* URLs and tokens. */
#ifndef GPUREST_SDK_URL_H
#define GPUREST_SDK_URL_H

#include <stdbool.h>

#include "base/failure.h"

enum scheme { SCHEME_HTTP, SCHEME_HTTPS, SCHEME_UNIX };

struct endpoint {
    enum scheme scheme;
    char        host[HOST_BYTES];           /* a name or an address, without brackets; "localhost" for unix */
    char        address[HOST_BYTES];        /* to connect to in place of the host, likewise; "": the host */
    char        authority[HOST_BYTES + 16]; /* for the Host header */
    char        port[8];
    char        path[UNIX_PATH_BYTES_MAX + 1]; /* of the socket */
};

/* http://host[:port], https://host[:port] or unix:///path. A trailing slash is allowed; paths, queries and credentials are not. */
gpurest_status endpoint_parse(const char *url, struct endpoint *out);
gpurest_status endpoint_set_address(struct endpoint *e, const char *address);

/* Finds the token in the order of gpurest_options; "" if there is none. */
gpurest_status token_find(const gpurest_options *o, char out[TOKEN_BYTES_MAX + 1]);

#endif
