/* Expands endpoints.def into the table that the server routes by. */
#include "api/endpoints.h"

static const struct endpoint table[] = {
#define ENDPOINT(function, verb, route, kind, who, where)                                                                                  \
    {.operation = #function, .method = METHOD_##verb, .path = route, .handle = function, .body = kind, .scope = who, .place = where},
#define ENDPOINT_PROBE(function, verb, route, kind, who, where)                                                                            \
    {.operation = #function,                                                                                                               \
     .method = METHOD_##verb,                                                                                                              \
     .path = route,                                                                                                                        \
     .handle = function,                                                                                                                   \
     .body = kind,                                                                                                                         \
     .scope = who,                                                                                                                         \
     .place = where,                                                                                                                       \
     .probe = true},
#define ENDPOINT_BEGIN(function, verb, route, kind, who, where)                                                                            \
    {.operation = #function,                                                                                                               \
     .method = METHOD_##verb,                                                                                                              \
     .path = route,                                                                                                                        \
     .handle = function,                                                                                                                   \
     .begin = function##_begin,                                                                                                            \
     .body = kind,                                                                                                                         \
     .scope = who,                                                                                                                         \
     .place = where},
#include "api/endpoints.def"
#undef ENDPOINT
#undef ENDPOINT_PROBE
#undef ENDPOINT_BEGIN
};

const struct endpoint *endpoints_table(size_t *count)
{
    *count = COUNT(table);
    return table;
}
