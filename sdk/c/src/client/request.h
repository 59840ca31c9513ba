/* What gpurest_http and gpurest_http_pass share. */
#ifndef GPUREST_SDK_REQUEST_H
#define GPUREST_SDK_REQUEST_H

#include "client/client.h"

struct gpurest_http_response {
    struct exchange x; /* its answer only */
    char           *found;
};

/* Copies a request of the user, and checks what is sent verbatim. */
gpurest_status request_take(gpurest_client *client, const gpurest_http_request *given, gpurest_http_request *out);
/* Begins an exchange that has no body yet. `headers` is initialized here, and lives as long as it. */
gpurest_status request_begin(const gpurest_http_request *q, struct exchange *x, struct buf *headers);

#endif
