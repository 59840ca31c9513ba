/* The table of all endpoints, and their handlers' prototypes, from endpoints.def. */
#ifndef GPUREST_API_ENDPOINTS_H
#define GPUREST_API_ENDPOINTS_H

#include "http/message/route.h"

#define ENDPOINT(operation, method, path, body, scope, place) enum status operation(struct request *r);
#define ENDPOINT_PROBE                                        ENDPOINT
#define ENDPOINT_IF                                           ENDPOINT
#define ENDPOINT_BEGIN(operation, method, path, body, scope, place)                                                                        \
    enum status operation(struct request *r);                                                                                              \
    enum status operation##_begin(struct request *r);
#define ENDPOINT_BEGIN_IF ENDPOINT_BEGIN
#include "api/endpoints.def"
#undef ENDPOINT
#undef ENDPOINT_PROBE
#undef ENDPOINT_IF
#undef ENDPOINT_BEGIN
#undef ENDPOINT_BEGIN_IF

/* Static. */
const struct endpoint *endpoints_table(size_t *count);

#endif
