/* JSON with cJSON, which only this file uses. json_values.c has what any reader does alike. */
#include "base/json.h"

#include <cjson/cJSON.h>

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

const struct json *json_first(const struct json *array)
{
    return cJSON_IsArray(real(array)) || cJSON_IsObject(real(array)) ? ours(real(array)->child) : NULL;
}

const struct json *json_next(const struct json *value)
{
    return value ? ours(real(value)->next) : NULL;
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
