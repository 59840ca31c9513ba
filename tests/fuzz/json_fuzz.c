/* Any bytes as JSON. The parser must accept whatever the scanner accepts, and find in it what another parser, cJSON, finds; the writer's output
 * for any text must be JSON. */
#include <cjson/cJSON.h>
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

static bool same_text(struct span ours, const char *other)
{
    return span_equal(ours, span_of(other));
}

static bool same(const struct json *v, const cJSON *other)
{
    const cJSON       *child = other->child;
    const struct json *e = json_first(v);

    switch (json_type_of(v)) {
    case JSON_ABSENT:
        return false;
    case JSON_NULL:
        return cJSON_IsNull(other);
    case JSON_BOOL:
        return cJSON_IsBool(other) && json_bool(v) == cJSON_IsTrue(other);
    case JSON_NUMBER:
        return cJSON_IsNumber(other) && json_double(v) == other->valuedouble;
    case JSON_STRING:
        return cJSON_IsString(other) && same_text(json_text(v), other->valuestring);
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    if ((json_type_of(v) == JSON_OBJECT) != cJSON_IsObject(other) || (int)json_count(v) != cJSON_GetArraySize(other))
        return false;
    for (; e && child; e = json_next(e), child = child->next)
        if (!same_text(json_name(e), child->string) || !same(e, child))
            return false;
    return !e && !child;
}

static void compare(const struct json *v, struct span text)
{
    cJSON *other = cJSON_ParseWithLength(text.data, text.bytes);

    check(other && same(v, other));
    cJSON_Delete(other);
}

static void parse(struct span text)
{
    struct json_scan_error error;
    struct json_document  *d = NULL;
    struct problem         why = {0};
    size_t                 values;
    bool                   scanned = json_scan(text, JSON_VALUES_MAX, &values, &error);
    enum status            st = json_parse(text, &d, &why);

    check(scanned || st == STATUS_INVALID_JSON);
    check(scanned || error.offset <= text.bytes);
    /* After the scanner only duplicates and overflowing numbers are refused. */
    check(!scanned || st == STATUS_OK || (st == STATUS_INVALID_JSON && (strstr(why.detail, "duplicate") || strstr(why.detail, "large"))));
    walk(json_root(d));
    if (!st)
        compare(json_root(d), text);
    json_document_destroy(d);
}

static void write(struct span text)
{
    struct json_scan_error error;
    struct json_writer     w;
    struct buf             out;
    size_t                 values;

    buf_init(&out, 1 << 20);
    json_writer_init(&w, &out);
    json_add_string(&w, NULL, text);
    /* A NUL is written as \u0000: valid, but not accepted as input. */
    check(out.failed || memchr(text.data, 0, text.bytes) || json_scan(buf_span(&out), JSON_VALUES_MAX, &values, &error));
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
