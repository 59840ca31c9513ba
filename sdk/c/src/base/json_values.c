/* What is the same for whatever reads JSON: json.c here, and that of libcuda.so.1, sdk/shim/src/json.c. */
#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double INTEGER_MAX = 9007199254740992.0;

const struct json *json_item(const struct json *array, size_t index)
{
    const struct json *v = json_first(array);

    while (v && index--)
        v = json_next(v);
    return v;
}

size_t json_count(const struct json *array)
{
    size_t n = 0;

    for (const struct json *v = json_first(array); v; v = json_next(v))
        n++;
    return n;
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
    const char *text = json_text_or(value, NULL);
    double      number = json_number_or(value, -1);

    if (text)
        return text_integer(text, out);
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
