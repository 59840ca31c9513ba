/* Where the service is, and the token to show it. */
#ifndef GPUREST_SDK_URL_H
#define GPUREST_SDK_URL_H

#include <stdbool.h>

#include "base/failure.h"

enum scheme { SCHEME_HTTP, SCHEME_HTTPS, SCHEME_UNIX };

struct endpoint {
    enum scheme scheme;
    char        host[HOST_BYTES];           /* a name or an address, without brackets; "localhost" for unix */
    char        authority[HOST_BYTES + 16]; /* as the Host header has it */
    char        port[8];
    char        path[UNIX_PATH_BYTES_MAX + 1]; /* of the socket */
};

/* http://host[:port], https://host[:port], unix:///path; a slash at the end is fine, a path, a query or credentials are not. */
gpurest_status endpoint_parse(const char *url, struct endpoint *out);

/* The token by the order of gpurest_options; "" when there is none. */
gpurest_status token_find(const gpurest_options *o, char out[TOKEN_BYTES_MAX + 1]);

#endif
