/* Any bytes as a client's stream: the framing scanner gives the same result however they are split, and a simple reader of lines finds
 * the same ends of requests. The same bytes as a proxy's header, and as proxies' header fields. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/bounds.h"
#include "http/engine/framing.h"
#include "http/message/proxies.h"

enum { ENDS_MAX = 64, TEXT_BYTES_MAX = 200 };

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* ---- the simple reader: one request that is known to be complete and valid ---- */

static struct span line_of(struct span *rest)
{
    const char *end = memmem(rest->data, rest->bytes, "\r\n", 2);
    struct span line;

    must(end != NULL);
    line = span_first(*rest, (size_t)(end - rest->data));
    *rest = span_from(*rest, line.bytes + 2);
    must(!memchr(line.data, '\n', line.bytes) && !memchr(line.data, '\r', line.bytes) && !memchr(line.data, '\0', line.bytes));
    return line;
}

static bool is_field(struct span line, const char *name)
{
    return line.bytes > strlen(name) && strncasecmp(line.data, name, strlen(name)) == 0 && line.data[strlen(name)] == ':';
}

static struct span value_of(struct span line)
{
    span_cut(&line, ':');
    return span_trim(line);
}

static struct span lines_end(struct span rest, struct span *length, struct span *coding)
{
    struct span line;

    while ((line = line_of(&rest)).bytes) {
        const char *colon = memchr(line.data, ':', line.bytes);

        must(colon && colon > line.data && line.data[0] != ' ' && line.data[0] != '\t' && colon[-1] != ' ' && colon[-1] != '\t');
        if (is_field(line, "content-length")) {
            must(!length->data);
            *length = value_of(line);
        }
        if (is_field(line, "transfer-encoding")) {
            must(!coding->data);
            *coding = value_of(line);
        }
    }
    return rest;
}

static struct span chunks_end(struct span rest)
{
    struct span none = {0}, no_coding = {0};
    uint64_t    size;

    while ((size = strtoull(line_of(&rest).data, NULL, 16)) != 0) {
        must(size <= rest.bytes);
        rest = span_from(rest, (size_t)size);
        must(line_of(&rest).bytes == 0);
    }
    rest = lines_end(rest, &none, &no_coding);
    must(!none.data && !no_coding.data);
    return rest;
}

static struct span request_end(struct span rest)
{
    struct span length = {0}, coding = {0}, line = line_of(&rest);
    uint64_t    bytes = 0;

    if (!line.bytes)
        line = line_of(&rest);
    must(line.bytes > 9 && memcmp(line.data + line.bytes - 9, " HTTP/1.", 8) == 0);
    rest = lines_end(rest, &length, &coding);
    must(!length.data || !coding.data);
    if (coding.data) {
        must(span_equal_nocase(coding, SPAN_LITERAL("chunked")));
        return chunks_end(rest);
    }
    must(!length.data || span_u64(length, &bytes));
    must(bytes <= rest.bytes);
    return span_from(rest, (size_t)bytes);
}

/* ---- the scanner ---- */

static struct framing scan_in_pieces(struct span all, size_t piece)
{
    struct framing f = {0};

    while (all.bytes && !f.refused) {
        struct span part = span_first(all, piece);
        size_t      good = framing_scan(&f, part.data, part.bytes);

        must(good <= part.bytes && (f.refused || good == part.bytes));
        all = span_from(all, part.bytes);
    }
    return f;
}

static void same_verdict(const struct framing *a, const struct framing *b)
{
    must(a->refused == b->refused && a->why == b->why && a->begun == b->begun && a->ended == b->ended && a->state == b->state);
    must(a->begun - a->ended <= 1);
}

/* The bytes after the last end found must be the beginning of the refused request. */
static void check_ends(struct span all, const struct framing *whole, size_t good)
{
    struct span rest = all;

    for (uint64_t i = 0; i < whole->ended; i++)
        rest = request_end(rest);
    if (whole->refused)
        must(good == all.bytes - rest.bytes);
}

static void fuzz_framing(struct span all)
{
    static const size_t pieces[] = {1, 2, 3, 7, 64};
    struct framing      whole = {0};
    size_t              good = framing_scan(&whole, all.data, all.bytes);

    for (size_t i = 0; i < COUNT(pieces); i++) {
        struct framing cut = scan_in_pieces(all, pieces[i]);

        same_verdict(&whole, &cut);
    }
    check_ends(all, &whole, good);
}

/* ---- proxies ---- */

static void fuzz_header(struct span all)
{
    struct proxy_header h, shorter;
    enum proxy_verdict  v = proxy_header_read((const unsigned char *)all.data, all.bytes, &h);

    if (v != PROXY_LOCAL && v != PROXY_CLIENT)
        return;
    must(h.bytes <= all.bytes && h.bytes <= PROXY_HEADER_BYTES_MAX);
    for (size_t n = 0; n < h.bytes; n++)
        must(proxy_header_read((const unsigned char *)all.data, n, &shorter) == PROXY_SHORT);
}

static void fuzz_fields(struct span all)
{
    struct networks   n = {.count = 0};
    struct problem    why;
    struct ip_address client, before;
    char              text[TEXT_BYTES_MAX];

    networks_add(&n, span_copy(span_first(all, sizeof text - 1), text, sizeof text) ? text : "", &why);
    must(networks_add(&n, "10.0.0.0/8", &why) == STATUS_OK);
    client = before = n.items[n.count - 1].address;
    forwarded_client(&n, all, (struct span){0}, &client);
    forwarded_client(&n, (struct span){0}, all, &client);
    client = (struct ip_address){{0x20}};
    before = client;
    forwarded_client(&n, all, all, &client);
    must(networks_hold(&n, &before) || memcmp(&client, &before, sizeof client) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct span all = {(const char *)data, bytes};

    fuzz_framing(all);
    fuzz_header(all);
    fuzz_fields(all);
    return 0;
}
