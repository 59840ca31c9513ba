/* Any bytes as JSON. The parser must accept whatever the scanner accepts; the writer's output for any text must be JSON. */
#include <stdlib.h>

#include "http/json/json.h"
#include "http/json/scan.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void walk(const struct json *v)
{
    uint64_t u;
    int64_t  i;

    json_u64(v, &u);
    json_i64(v, &i);
    for (const struct json *e = json_first(v); e; e = json_next(e))
        walk(e);
}

static void parse(struct span text)
{
    struct json_scan_error error;
    struct json_document  *d = NULL;
    struct problem         why = {0};
    bool                   long_numbers, scanned = json_scan(text, JSON_VALUES_MAX, &long_numbers, &error);
    enum status            st = json_parse(text, &d, &why);

    check(scanned || st == STATUS_INVALID_JSON);
    check(scanned || error.offset <= text.bytes);
    /* After the scanner only duplicates and overflowing numbers are refused. */
    check(!scanned || st == STATUS_OK || (st == STATUS_INVALID_JSON && (strstr(why.detail, "twice") || strstr(why.detail, "large"))));
    walk(json_root(d));
    json_document_destroy(d);
}

static void write(struct span text)
{
    struct json_scan_error error;
    struct json_writer     w;
    struct buf             out;
    bool                   long_numbers;

    buf_init(&out, 1 << 20);
    json_writer_init(&w, &out);
    json_add_string(&w, NULL, text);
    /* A NUL is written as \u0000: valid, but not accepted as input. */
    check(out.failed || memchr(text.data, 0, text.bytes) || json_scan(buf_span(&out), JSON_VALUES_MAX, &long_numbers, &error));
    buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct span  text = {(const char *)data, bytes}, decoded;
    struct arena a;

    parse(text);
    write(text);
    arena_init(&a, 1 << 20);
    base64_decode(text, &a, &decoded);
    arena_finish(&a);
    return 0;
}
