/* JSON with cJSON, which only this file uses. */
#include "base/json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double INTEGER_MAX = 9007199254740992.0;

static const cJSON *real(const struct json *value)
{
    return (const cJSON *)(const void *)value;
}

static const struct json *ours(const cJSON *value)
{
    return (const struct json *)(const void *)value;
}

struct json *json_parse(const char *text, size_t bytes)
{
    return text && bytes ? (struct json *)(void *)cJSON_ParseWithLength(text, bytes) : NULL;
}

void json_destroy(struct json *document)
{
    cJSON_Delete((cJSON *)(void *)document);
}

const struct json *json_member(const struct json *object, const char *name)
{
    return cJSON_IsObject(real(object)) ? ours(cJSON_GetObjectItemCaseSensitive(real(object), name)) : NULL;
}

const struct json *json_item(const struct json *array, size_t index)
{
    const struct json *v = json_first(array);

    while (v && index--)
        v = json_next(v);
    return v;
}

const struct json *json_first(const struct json *array)
{
    return cJSON_IsArray(real(array)) || cJSON_IsObject(real(array)) ? ours(real(array)->child) : NULL;
}

const struct json *json_next(const struct json *value)
{
    return value ? ours(real(value)->next) : NULL;
}

size_t json_count(const struct json *array)
{
    size_t n = 0;

    for (const struct json *v = json_first(array); v; v = json_next(v))
        n++;
    return n;
}

bool json_is_object(const struct json *value)
{
    return cJSON_IsObject(real(value));
}

const char *json_name(const struct json *value)
{
    return value && real(value)->string ? real(value)->string : "";
}

const char *json_text_or(const struct json *value, const char *otherwise)
{
    return cJSON_IsString(real(value)) ? real(value)->valuestring : otherwise;
}

double json_number_or(const struct json *value, double otherwise)
{
    return cJSON_IsNumber(real(value)) ? real(value)->valuedouble : otherwise;
}

bool json_true(const struct json *value)
{
    return cJSON_IsTrue(real(value));
}

/* Digits and nothing else. */
static bool text_integer(const char *text, uint64_t *out)
{
    errno = 0;
    if (*text == '\0' || strspn(text, "0123456789") != strlen(text))
        return false;
    *out = strtoull(text, NULL, 10);
    return errno == 0;
}

bool json_integer(const struct json *value, uint64_t *out)
{
    double number = json_number_or(value, -1);

    if (cJSON_IsString(real(value)))
        return text_integer(real(value)->valuestring, out);
    if (!(number >= 0 && number <= INTEGER_MAX) || (double)(uint64_t)number != number)
        return false;
    *out = (uint64_t)number;
    return true;
}

uint64_t json_integer_or(const struct json *value, uint64_t otherwise)
{
    json_integer(value, &otherwise);
    return otherwise;
}

bool json_copy(const struct json *value, char *out, size_t room)
{
    const char *text = json_text_or(value, NULL);

    return text && strlen(text) < room && snprintf(out, room, "%s", text) >= 0;
}
