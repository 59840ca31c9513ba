/* The table of all endpoints, and their handlers' prototypes, from endpoints.def. */
#pragma once

#include "api/call.h"
#include "http/message/route.h"

#define ENDPOINT(operation, ...)       enum status operation(struct request *r);
#define ENDPOINT_BEGIN(operation, ...) ENDPOINT(operation) ENDPOINT(operation##_begin)
#define ENDPOINT_IN(operation, ...)                                                                                                        \
    enum status               operation(struct request *r, struct session *s);                                                             \
    static inline enum status operation##_in_session(struct request *r)                                                                    \
    {                                                                                                                                      \
        return on_session(r, operation);                                                                                                   \
    }
#define ENDPOINT_AS(...) /* declared by the row whose function it shares */
#define ENDPOINT_BEGIN_AS(...)
#define ENDPOINT_IN_AS(...)
#include "api/endpoints.def"
#undef ENDPOINT
#undef ENDPOINT_AS
#undef ENDPOINT_BEGIN_AS
#undef ENDPOINT_BEGIN
#undef ENDPOINT_IN
#undef ENDPOINT_IN_AS

/* Static. */
const struct endpoint *endpoints_table(size_t *count);
