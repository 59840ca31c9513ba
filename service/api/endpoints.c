/* Expands endpoints.def into the table that the server routes by. */
#include "api/endpoints.h"

#define ENDPOINT_AS(function, name, verb, route, kind, who, where, ...)                                                                    \
    {.operation = #name,                                                                                                                   \
     .method = METHOD_##verb,                                                                                                              \
     .path = route,                                                                                                                        \
     .handle = function,                                                                                                                   \
     .body = kind,                                                                                                                         \
     .scope = who,                                                                                                                         \
     .place = where,                                                                                                                       \
     __VA_ARGS__},
#define ENDPOINT(function, ...)                ENDPOINT_AS(function, function, __VA_ARGS__)
#define ENDPOINT_BEGIN_AS(function, name, ...) ENDPOINT_AS(function, name, __VA_ARGS__, .begin = function##_begin)
#define ENDPOINT_BEGIN(function, ...)          ENDPOINT_BEGIN_AS(function, function, __VA_ARGS__)
#define ENDPOINT_IN_AS(function, name, ...)    ENDPOINT_AS(function##_in_session, name, __VA_ARGS__)
#define ENDPOINT_IN(function, ...)             ENDPOINT_IN_AS(function, function, __VA_ARGS__)

static const struct endpoint table[] = {
#include "api/endpoints.def"
};

const struct endpoint *endpoints_table(size_t *count)
{
    *count = COUNT(table);
    return table;
}
