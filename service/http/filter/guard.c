/* Refuses header fields that may occur only once but are repeated, invalid lengths, and targets that are not plain paths. framing.c has
 * checked the framing and the bytes of the lines before MHD; this file checks that MHD read the same. */

#include "http/bounds.h"
#include "http/engine/internal.h"

struct header_walk {
    struct exchange *x;
    unsigned         count;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_bytes, const char *value,
                                    size_t value_bytes)
{
    (void)kind, (void)name, (void)name_bytes, (void)value, (void)value_bytes;
    ++*(unsigned *)context;
    return MHD_YES;
}

/* Of each request some thirty names are asked for, and few are there: nearly all that are not there have another length than those that are. It
 * saves 900 instructions of a launch (2026-11-29). */
static uint64_t name_length_bit(size_t bytes)
{
    return UINT64_C(1) << bytes % 64;
}

static bool may_have(const struct exchange *x, struct span name)
{
    return x->header_lengths & name_length_bit(name.bytes);
}

void exchange_add_header(struct exchange *x, struct span name, struct span value)
{
    x->headers[x->headers_count++] = (struct header_line){name, value};
    x->header_lengths |= name_length_bit(name.bytes);
}

static enum MHD_Result keep_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_bytes, const char *value,
                                   size_t value_bytes)
{
    struct header_walk *w = context;

    (void)kind;
    if (w->x->headers_count == w->count)
        return MHD_NO;
    exchange_add_header(w->x, (struct span){name, name_bytes}, (struct span){value, value_bytes});
    return MHD_YES;
}

static enum status keep_headers(struct exchange *x)
{
    struct header_walk w = {.x = x};

    MHD_get_connection_values_n(x->mhd, MHD_HEADER_KIND, count_header, &w.count);
    if (w.count > REQUEST_HEADERS_MAX)
        return problem_limit(&x->r.problem, STATUS_HEADERS_TOO_LARGE, "request_headers", REQUEST_HEADERS_MAX, 0, w.count);
    x->headers = arena_array(&x->r.arena, w.count ? w.count : 1, sizeof *x->headers);
    if (!x->headers)
        return problem_set(&x->r.problem, STATUS_OUT_OF_MEMORY, "not enough memory for the header");
    MHD_get_connection_values_n(x->mhd, MHD_HEADER_KIND, keep_header, &w);
    return STATUS_OK;
}

static struct span find_header(const struct exchange *x, struct span wanted)
{
    struct span found = {NULL, 0};

    for (unsigned i = 0; i < x->headers_count; i++) {
        struct span value = x->headers[i].value;
        char       *joined;

        if (!span_equal_nocase(x->headers[i].name, wanted))
            continue;
        if (!found.data) {
            found = value;
            continue;
        }
        joined = arena_printf((struct arena *)(uintptr_t)&x->r.arena, "%.*s, %.*s", SPAN_ARG(found), SPAN_ARG(value));
        if (joined)
            found = span_of(joined);
    }
    return found;
}

struct span exchange_header(const struct exchange *x, const char *name)
{
    struct span wanted = span_of(name);

    return may_have(x, wanted) ? find_header(x, wanted) : (struct span){NULL, 0};
}

static unsigned occurrences(const struct exchange *x, const char *name)
{
    struct span wanted = span_of(name);
    unsigned    count = 0;

    if (!may_have(x, wanted))
        return 0;
    for (unsigned i = 0; i < x->headers_count; i++)
        count += span_equal_nocase(x->headers[i].name, wanted);
    return count;
}

static enum status refuse_request(struct exchange *x, enum status st, const char *text)
{
    return problem_set(&x->r.problem, st, "%s", text);
}

static enum status check_lines(struct exchange *x)
{
    static const char *const once[] = {"Host", "Authorization", "Content-Type", "Content-Range", "Origin", "Expect", "Range"};

    for (size_t i = 0; i < COUNT(once); i++)
        if (occurrences(x, once[i]) > 1)
            return problem_set(&x->r.problem, STATUS_INVALID_HEADER, "duplicate %s", once[i]);
    return STATUS_OK;
}

static enum status check_coding(struct exchange *x)
{
    if (x->http_1_0 || occurrences(x, "Content-Length") || occurrences(x, "Transfer-Encoding") > 1)
        return refuse_request(x, STATUS_FRAMING_MISMATCH, "Transfer-Encoding must appear once, without Content-Length, in HTTP/1.1");
    if (!span_equal_nocase(span_trim(exchange_header(x, "Transfer-Encoding")), SPAN_LITERAL("chunked")))
        return refuse_request(x, STATUS_NOT_IMPLEMENTED, "the only supported transfer coding is chunked");
    x->chunked = true;
    x->r.has_body_bytes = false;
    return STATUS_OK;
}

/* Without either header the body is empty (RFC 9112 section 6.3). */
static enum status check_framing(struct exchange *x)
{
    struct span length = exchange_header(x, "Content-Length");

    if (occurrences(x, "Transfer-Encoding"))
        return check_coding(x);
    if (occurrences(x, "Content-Length") > 1)
        return refuse_request(x, STATUS_FRAMING_MISMATCH, "duplicate Content-Length");
    /* 2^64 - 1 would mean "unknown" to MHD. */
    if (length.data && (!span_u64(span_trim(length), &x->r.body_bytes) || x->r.body_bytes > INT64_MAX)) {
        x->r.body_bytes = 0;
        return refuse_request(x, STATUS_FRAMING_MISMATCH, "Content-Length is not a valid number");
    }
    return STATUS_OK;
}

/* Refuses %00 and, in the path, %2f and %5c: decoders differ about them. */
static bool escapes_ok(struct span s, bool is_path)
{
    for (size_t i = 0; i + 2 < s.bytes; i++) {
        struct span escape;

        if (s.data[i] != '%')
            continue;
        escape = span_first(span_from(s, i), 3);
        if (span_is(escape, "%00"))
            return false;
        if (is_path && (span_equal_nocase(escape, SPAN_LITERAL("%2f")) || span_equal_nocase(escape, SPAN_LITERAL("%5c"))))
            return false;
    }
    return true;
}

static bool bytes_ok(struct span s)
{
    for (size_t i = 0; i < s.bytes; i++)
        if (s.data[i] < 0x21 || s.data[i] > 0x7e || s.data[i] == '\\' || s.data[i] == '#')
            return false;
    return true;
}

/* "http://host:port/path", as clients of a proxy send it: RFC 9112, section 3.2.2. */
static void take_absolute_form(struct exchange *x, const char *scheme)
{
    struct span rest = span_from(x->r.path, strlen(scheme));
    const char *slash = rest.bytes ? memchr(rest.data, '/', rest.bytes) : NULL;
    size_t      host_bytes = slash ? (size_t)(slash - rest.data) : rest.bytes;

    if (!span_equal_nocase(span_first(x->r.path, strlen(scheme)), span_of(scheme)))
        return;
    x->is_absolute = true;
    x->authority = span_first(rest, host_bytes);
    x->r.path = slash ? span_from(rest, host_bytes) : SPAN_LITERAL("/");
}

static enum status check_target(struct exchange *x)
{
    struct span path = x->r.path, query = x->port.query;

    if (path.bytes + query.bytes > URI_BYTES_MAX)
        return problem_limit(&x->r.problem, STATUS_URI_TOO_LONG, "uri_bytes", URI_BYTES_MAX, 0, path.bytes + query.bytes);
    take_absolute_form(x, "http://");
    if (!x->is_absolute && x->connection && x->connection->is_tls)
        take_absolute_form(x, "https://");
    path = x->r.path;
    if (!span_starts(path, "/"))
        return refuse_request(x, STATUS_INVALID_REQUEST,
                              "the request target must be a path, or http:// (over TLS also https://), a host and a path");
    if (!bytes_ok(path) || !bytes_ok(query) || !escapes_ok(path, true) || !escapes_ok(query, false))
        return refuse_request(x, STATUS_INVALID_REQUEST, "the request target has bytes or escapes that are not allowed");
    return STATUS_OK;
}

enum status exchange_guard_lines(struct exchange *x, const char *version)
{
    enum status st;

    x->http_1_0 = strcmp(version, "HTTP/1.0") == 0;
    request_id_take(exchange_header(x, "X-Request-Id"), x->r.id);
    trace_id_parse(exchange_header(x, "traceparent"), x->r.trace);
    st = check_framing(x);
    if (!st)
        st = check_lines(x);
    return st ? st : check_target(x);
}

enum status exchange_guard(struct exchange *x, const char *version)
{
    enum status st = keep_headers(x);

    if (!st) {
        client_of_request(x);
        st = exchange_guard_lines(x, version);
    }
    x->r.is_local = x->connection->is_unix && !x->http_1_0;
    return st;
}
