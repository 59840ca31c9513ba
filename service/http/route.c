/* Finds the row of the endpoint table by walking the segments of both paths side by side. */
#include "http/route.h"

#include <stdio.h>

static const char *const method_names[METHOD_COUNT] = {
    [METHOD_GET] = "GET", [METHOD_HEAD] = "HEAD",   [METHOD_POST] = "POST",
    [METHOD_PUT] = "PUT", [METHOD_PATCH] = "PATCH", [METHOD_DELETE] = "DELETE",
};

bool method_parse(struct span name, enum method *out)
{
    for (unsigned m = 0; m < METHOD_COUNT; m++)
        if (span_is(name, method_names[m])) {
            *out = (enum method)m;
            return true;
        }
    return false;
}

const char *method_name(enum method m)
{
    return (unsigned)m < METHOD_COUNT ? method_names[m] : "?";
}

static bool segment_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr("._~:-", c));
}

/* Dot segments are never ids: a proxy may have resolved them. */
static bool segment_is_id(struct span s)
{
    if (s.bytes == 0 || span_is(s, ".") || span_is(s, ".."))
        return false;
    for (size_t i = 0; i < s.bytes; i++)
        if (!segment_char(s.data[i]))
            return false;
    return true;
}

/* *rest starts with '/'; afterwards it starts with the next '/' or is empty. */
static struct span next_segment(struct span *rest)
{
    struct span from = span_from(*rest, 1);
    const char *end = from.bytes ? memchr(from.data, '/', from.bytes) : NULL;
    struct span segment = {from.data, end ? (size_t)(end - from.data) : from.bytes};

    *rest = span_from(from, segment.bytes);
    return segment;
}

static bool path_matches(const char *pattern_text, struct span path, struct route *out)
{
    struct span pattern = span_of(pattern_text);

    out->params_count = 0;
    while (pattern.bytes && path.bytes) {
        struct span want = next_segment(&pattern);
        struct span got = next_segment(&path);

        if (!span_starts(want, "{")) {
            if (!span_equal(want, got))
                return false;
            continue;
        }
        if (!segment_is_id(got) || out->params_count == ROUTE_PARAMS_MAX)
            return false;
        out->params[out->params_count++] = got;
    }
    return pattern.bytes == 0 && path.bytes == 0;
}

static void name_allowed(unsigned methods, char *out, size_t room)
{
    size_t at = 0;

    for (unsigned m = 0; m < METHOD_COUNT; m++)
        if (methods >> m & 1)
            at += (size_t)snprintf(out + at, room - at, "%s%s", at ? ", " : "", method_names[m]);
}

/* A HEAD row is exact for HEAD; a GET row serves until one is found. */
static bool row_serves(const struct endpoint *row, enum method method, const struct endpoint *found)
{
    if (row->method == method)
        return !found || found->method != method;
    return method == METHOD_HEAD && row->method == METHOD_GET && !found;
}

void route_find(const struct endpoint *table, size_t count, enum method method, struct span path, struct route *out)
{
    struct route try = {0};
    unsigned     methods = 0;

    *out = (struct route){.status = STATUS_NOT_FOUND};
    if (!span_starts(path, "/"))
        return;
    for (size_t i = 0; i < count; i++) {
        if (!path_matches(table[i].path, path, &try))
            continue;
        methods |= 1u << table[i].method;
        if (!row_serves(&table[i], method, out->endpoint))
            continue;
        *out = try;
        out->endpoint = &table[i];
        out->status = STATUS_OK;
    }
    if (out->endpoint || !methods)
        return;
    if (methods >> METHOD_GET & 1)
        methods |= 1u << METHOD_HEAD;
    out->status = STATUS_METHOD_NOT_ALLOWED;
    name_allowed(methods, out->allow, sizeof out->allow);
}
