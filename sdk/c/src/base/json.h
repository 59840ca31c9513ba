/* Reads JSON. Values are borrowed from their document; NULL is an absent value everywhere. */
#ifndef GPUREST_SDK_JSON_H
#define GPUREST_SDK_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

/* NULL: not valid JSON, or out of memory. Freed by json_destroy. */
struct json       *json_parse(const char *text, size_t bytes);
void               json_destroy(struct json *document);
const struct json *json_member(const struct json *object, const char *name);
const struct json *json_item(const struct json *array, size_t index); /* O(index): iterate with json_first and json_next */
const struct json *json_first(const struct json *array);
const struct json *json_next(const struct json *value);
size_t             json_count(const struct json *array);
bool               json_is_object(const struct json *value);
/* The member's name; "" outside of objects. */
const char *json_name(const struct json *value);
/* `otherwise` if absent or of another type. */
const char *json_text_or(const struct json *value, const char *otherwise);
double      json_number_or(const struct json *value, double otherwise);
bool        json_true(const struct json *value);
/* Accepts a number from 0 to 2^53 or a decimal string of up to 64 bits. */
bool     json_integer(const struct json *value, uint64_t *out);
uint64_t json_integer_or(const struct json *value, uint64_t otherwise);
/* Copies a string; false: not a string, or too long. */
bool json_copy(const struct json *value, char *out, size_t room);

#endif
