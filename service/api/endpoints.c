/* Expands endpoints.def into the table that the server routes by. */
#include "api/endpoints.h"

#define ROW(function, verb, route, kind, who, where, ...)                                                                                  \
    {.operation = #function,                                                                                                               \
     .method = METHOD_##verb,                                                                                                              \
     .path = route,                                                                                                                        \
     .handle = function,                                                                                                                   \
     .body = kind,                                                                                                                         \
     .scope = who,                                                                                                                         \
     .place = where,                                                                                                                       \
     __VA_ARGS__},
#define ENDPOINT(function, verb, route, kind, who, where)       ROW(function, verb, route, kind, who, where, .probe = false)
#define ENDPOINT_PROBE(function, verb, route, kind, who, where) ROW(function, verb, route, kind, who, where, .probe = true)
#define ENDPOINT_IF(function, verb, route, kind, who, where)    ROW(function, verb, route, kind, who, where, .conditional = true)
#define ENDPOINT_BEGIN(function, verb, route, kind, who, where) ROW(function, verb, route, kind, who, where, .begin = function##_begin)
#define ENDPOINT_BEGIN_IF(function, verb, route, kind, who, where)                                                                         \
    ROW(function, verb, route, kind, who, where, .begin = function##_begin, .conditional = true)

static const struct endpoint table[] = {
#include "api/endpoints.def"
};

const struct endpoint *endpoints_table(size_t *count)
{
    *count = COUNT(table);
    return table;
}
