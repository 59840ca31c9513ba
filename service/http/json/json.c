/* Parsed JSON: cJSON behind the strict scanner. A struct json is a cJSON item under another name. What cJSON allocates comes from the document's
 * arena and goes with it: a launch has some 25 values and names, a batch of 1,000 launches 20,000. */
#include "http/json/json.h"
#include "http/bounds.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>

#include "http/json/number.h"
#include "http/json/scan.h"
#include "limits.h"

enum {
    FEW_MEMBERS = 16,  /* up to this many members comparing all pairs is faster than sorting */
    ROUNDED = 1 << 16, /* our own flag beside cJSON's: the number is not an integer up to 2^53, although its double is */
};

struct json_document {
    cJSON       *root;
    struct arena arena;
};

static _Thread_local struct arena *parsing; /* into this arena, on this thread; NULL: nothing is being parsed */

static void *allocate(size_t bytes)
{
    assert(parsing);
    return arena_alloc(parsing, bytes);
}

static void leave(void *memory)
{
    (void)memory;
}

static void set_hooks(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = allocate, .free_fn = leave});
}

static const cJSON *item_of(const struct json *v)
{
    return (const cJSON *)(const void *)v;
}

static const struct json *json_of(const cJSON *item)
{
    return (const struct json *)(const void *)item;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum status refuse_twice(const char *name, struct problem *why)
{
    return problem_set(why, STATUS_INVALID_JSON, "duplicate name \"%.100s\" in an object", name);
}

static enum status check_few(const cJSON *object, struct problem *why)
{
    for (const cJSON *m = object->child; m; m = m->next)
        for (const cJSON *later = m->next; later; later = later->next)
            if (m->string[0] == later->string[0] && strcmp(m->string, later->string) == 0)
                return refuse_twice(m->string, why);
    return STATUS_OK;
}

static enum status check_many(const cJSON *object, size_t count, struct problem *why)
{
    const char **names = calloc(count, sizeof *names);
    enum status  st = STATUS_OK;
    size_t       n = 0;

    if (!names)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory to check the JSON text");
    for (const cJSON *m = object->child; m && n < count; m = m->next)
        names[n++] = m->string;
    qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n && !st; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            st = refuse_twice(names[i], why);
    free(names);
    return st;
}

/* Compares decoded names: "a" and "\u0061" are the same. */
static enum status check_unique(const cJSON *object, struct problem *why)
{
    size_t count = 0;

    for (const cJSON *m = object->child; m; m = m->next)
        count++;
    return count <= FEW_MEMBERS ? check_few(object, why) : check_many(object, count, why);
}

/* `numbers` is the rest of the text, whose numbers come in the tree's order; empty when the doubles suffice. */
static enum status check_number(cJSON *item, struct span *numbers, struct problem *why)
{
    struct span number;

    if (!isfinite(item->valuedouble))
        return problem_set(why, STATUS_INVALID_JSON, "a number is too large");
    if (json_number_next(numbers, &number) && !json_number_is_integer(number))
        item->type |= ROUNDED;
    return STATUS_OK;
}

/* Recursion is bounded by JSON_DEPTH_MAX. */
static enum status check_tree(cJSON *item, struct span *numbers, struct problem *why)
{
    enum status st = STATUS_OK;

    if (cJSON_IsNumber(item))
        return check_number(item, numbers, why);
    if (cJSON_IsObject(item))
        st = check_unique(item, why);
    for (cJSON *m = item->child; m && !st; m = m->next)
        st = check_tree(m, numbers, why);
    return st;
}

enum status json_parse(struct span text, struct json_document **out, struct problem *why)
{
    return json_parse_up_to(text, JSON_VALUES_MAX, out, why);
}

/* More than the scanned text can need: a value is an item and two strings, and what does not fit a block's rest wastes less than itself. */
static size_t arena_bytes(size_t text_bytes, size_t values_max)
{
    enum { START_BYTES = 64 * 1024 };

    return START_BYTES + 4 * text_bytes + 2 * values_max * (sizeof(cJSON) + 2 * alignof(max_align_t));
}

static cJSON *parse(struct json_document *d, struct span text)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    cJSON                *root;

    pthread_once(&once, set_hooks);
    parsing = &d->arena;
    root = cJSON_ParseWithLengthOpts(text.data, text.bytes, NULL, 0);
    parsing = NULL;
    return root;
}

enum status json_parse_up_to(struct span text, size_t values_max, struct json_document **out, struct problem *why)
{
    struct json_scan_error error;
    struct json_document  *d;
    struct span            numbers = {NULL, 0};
    bool                   long_numbers;
    enum status            st;

    if (!json_scan(text, values_max, &long_numbers, &error))
        return problem_set(why, STATUS_INVALID_JSON, "at byte %zu: %s", error.offset, error.reason);
    d = calloc(1, sizeof *d);
    if (!d)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the JSON text");
    if (long_numbers)
        numbers = text;
    arena_init(&d->arena, arena_bytes(text.bytes, values_max));
    d->root = parse(d, text);
    st = d->root ? check_tree(d->root, &numbers, why) : problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the JSON text");
    if (st) {
        json_document_destroy(d);
        return st;
    }
    *out = d;
    return STATUS_OK;
}

void json_document_destroy(struct json_document *d)
{
    if (!d)
        return;
    arena_finish(&d->arena);
    free(d);
}

const struct json *json_root(const struct json_document *d)
{
    return d ? json_of(d->root) : NULL;
}

enum json_type json_type_of(const struct json *v)
{
    const cJSON *item = item_of(v);

    if (!item)
        return JSON_ABSENT;
    switch (item->type & 0xff) { /* the rest are flags */
    case cJSON_True:
    case cJSON_False:
        return JSON_BOOL;
    case cJSON_Number:
        return JSON_NUMBER;
    case cJSON_String:
        return JSON_STRING;
    case cJSON_Array:
        return JSON_ARRAY;
    case cJSON_Object:
        return JSON_OBJECT;
    default:
        return JSON_NULL;
    }
}

const struct json *json_member(const struct json *object, const char *name)
{
    return json_type_of(object) == JSON_OBJECT ? json_of(cJSON_GetObjectItemCaseSensitive(item_of(object), name)) : NULL;
}

const struct json *json_first(const struct json *v)
{
    enum json_type type = json_type_of(v);

    return type == JSON_ARRAY || type == JSON_OBJECT ? json_of(item_of(v)->child) : NULL;
}

const struct json *json_next(const struct json *element)
{
    return element ? json_of(item_of(element)->next) : NULL;
}

size_t json_count(const struct json *v)
{
    size_t count = 0;

    for (const struct json *e = json_first(v); e; e = json_next(e))
        count++;
    return count;
}

struct span json_name(const struct json *member)
{
    return span_of(member ? item_of(member)->string : NULL);
}

struct span json_text(const struct json *v)
{
    return json_type_of(v) == JSON_STRING ? span_of(item_of(v)->valuestring) : (struct span){NULL, 0};
}

bool json_bool(const struct json *v)
{
    return v && cJSON_IsTrue(item_of(v));
}

double json_double(const struct json *v)
{
    return json_type_of(v) == JSON_NUMBER ? item_of(v)->valuedouble : 0;
}

/* An integer up to 2^53, which its double represents exactly. */
static bool exact_integer(const struct json *v)
{
    double value = json_double(v);

    return json_type_of(v) == JSON_NUMBER && !(item_of(v)->type & ROUNDED) && fabs(value) <= (double)JSON_INTEGER_MAX &&
           floor(value) == value;
}

bool json_u64(const struct json *v, uint64_t *out)
{
    double value = json_double(v);

    if (json_type_of(v) == JSON_STRING)
        return span_u64(json_text(v), out);
    if (!exact_integer(v) || value < 0)
        return false;
    *out = (uint64_t)value;
    return true;
}

static bool text_i64(struct span text, int64_t *out)
{
    bool     negative = span_starts(text, "-");
    uint64_t magnitude;

    if (!span_u64(span_from(text, negative), &magnitude) || magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

bool json_i64(const struct json *v, int64_t *out)
{
    double value = json_double(v);

    if (json_type_of(v) == JSON_STRING)
        return text_i64(json_text(v), out);
    if (!exact_integer(v))
        return false;
    *out = (int64_t)value;
    return true;
}
