/* Prints what a reader of JSON finds in standard input. Built with each of the C SDK's two readers, which must agree. */
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

static char text[1 << 22];

static void print(const struct json *v, int depth)
{
    uint64_t integer = 0;
    bool     whole = json_integer(v, &integer);

    printf("%*s%s: text=%s number=%.17g true=%d object=%d count=%zu integer=%d %llu\n", depth, "", json_name(v), json_text_or(v, "-"),
           json_number_or(v, -1), json_true(v), json_is_object(v), json_count(v), whole, (unsigned long long)integer);
    for (const struct json *i = json_first(v); i; i = json_next(i)) {
        print(i, depth + 1);
        if (json_is_object(v) && !json_member(v, json_name(i)))
            abort();
    }
}

int main(void)
{
    struct json *v = json_parse(text, fread(text, 1, sizeof text, stdin));

    puts(v ? "valid" : "invalid");
    if (v)
        print(v, 0);
    json_destroy(v);
    return 0;
}
