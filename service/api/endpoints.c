/* Expands endpoints.def into the table that the server routes by. */
#include "api/endpoints.h"

#define ENDPOINT(function, verb, route, kind, who, where, ...)                                                                             \
    {.operation = #function,                                                                                                               \
     .method = METHOD_##verb,                                                                                                              \
     .path = route,                                                                                                                        \
     .handle = function,                                                                                                                   \
     .body = kind,                                                                                                                         \
     .scope = who,                                                                                                                         \
     .place = where,                                                                                                                       \
     __VA_ARGS__},
#define ENDPOINT_BEGIN(function, ...) ENDPOINT(function, __VA_ARGS__, .begin = function##_begin)

static const struct endpoint table[] = {
#include "api/endpoints.def"
};

const struct endpoint *endpoints_table(size_t *count)
{
    *count = COUNT(table);
    return table;
}
