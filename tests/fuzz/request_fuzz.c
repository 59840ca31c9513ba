/* Any bytes as target and header lines: the first line is the target, "name:value" lines follow. */
#include <stdlib.h>

#include "http/bounds.h"
#include "http/engine/internal.h"

static struct exchange x;

static struct span lent_header(const struct request *r, const char *name)
{
    (void)r;
    return exchange_header(&x, name);
}

static bool nobody_gone(const struct request *r)
{
    (void)r;
    return false;
}

static void cut_lines(struct span rest)
{
    struct span target = span_cut(&rest, '\n');

    x.r.path = span_cut(&target, '?');
    x.port.query = target;
    x.headers = arena_array(&x.r.arena, REQUEST_HEADERS_MAX, sizeof *x.headers);
    while (rest.bytes && x.headers_count < REQUEST_HEADERS_MAX) {
        struct span value = span_cut(&rest, '\n');
        struct span name = span_cut(&value, ':');
        exchange_add_header(&x, name, span_trim(value));
    }
}

/* An accepted request keeps the guard's promises. */
static void check_promises(void)
{
    for (size_t i = 0; i < x.r.path.bytes; i++)
        if (x.r.path.data[i] < 0x21 || x.r.path.data[i] > 0x7e)
            abort();
    if (x.chunked && exchange_header(&x, "Content-Length").data)
        abort();
    if (x.r.path.data[0] != '/')
        abort();
}

static void fuzz_digests(void)
{
    enum digest_algorithm  wanted;
    struct expected_digest e;
    struct problem         why;

    digest_expected(exchange_header(&x, "Content-Digest"), &x.r.arena, &e, &why);
    digest_wanted("Want-Content-Digest", exchange_header(&x, "Want-Content-Digest"), &wanted, &why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct endpoint table[] = {{.path = "/v1/{a}/b/{c}", .method = METHOD_GET}, {.path = "/", .method = METHOD_PUT}};
    static const char *const     names[] = {"limit", "cursor", NULL};
    struct route                 route;
    struct span                  value;

    x = (struct exchange){.r.has_body_bytes = true};
    arena_init(&x.r.arena, REQUEST_ARENA_BYTES);
    x.port.header = lent_header;
    x.port.gone = nobody_gone;
    x.r.port = &x.port;
    cut_lines((struct span){(const char *)data, bytes});
    if (exchange_guard_lines(&x, "HTTP/1.1") == STATUS_OK)
        check_promises();
    route_find(table, COUNT(table), METHOD_GET, x.r.path, &route);
    request_query_only(&x.r, names);
    request_query(&x.r, "limit", &value);
    request_prefer(&x.r);
    request_accepts(&x.r, "application/json");
    request_media_type(&x.r);
    fuzz_digests();
    arena_finish(&x.r.arena);
    return 0;
}
