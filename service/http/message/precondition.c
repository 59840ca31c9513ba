/* Evaluates If-Match and If-None-Match against an entity tag. */
#include "http/message/precondition.h"

#include <time.h>

enum { HTTP_TIME_CHARS_MAX = 40 };

/* A tag may not contain quotation marks, blanks and control bytes. */
static bool tag_char(char c)
{
    unsigned char byte = (unsigned char)c;

    return byte > 0x20 && byte != 0x7f && byte != '"';
}

/* Cuts one entity tag off the front; false when there is none. Tags may contain commas. */
static bool take_tag(struct span *rest, bool *is_weak, struct span *tag)
{
    size_t n = 1;

    *is_weak = span_starts(*rest, "W/");
    if (*is_weak)
        *rest = span_from(*rest, 2);
    if (!span_starts(*rest, "\""))
        return false;
    while (n < rest->bytes && tag_char(rest->data[n]))
        n++;
    if (n == rest->bytes || rest->data[n] != '"')
        return false;
    *tag = span_first(*rest, n + 1);
    *rest = span_from(*rest, n + 1);
    return true;
}

/* Skips blanks and commas; a list may have empty elements (RFC 9110 §5.6.1.2). False when something else follows, or a tag without a
 * comma. */
static bool take_commas(struct span *rest)
{
    bool comma = false;

    while (rest->bytes && (*rest->data == ',' || *rest->data == ' ' || *rest->data == '\t')) {
        comma |= *rest->data == ',';
        *rest = span_from(*rest, 1);
    }
    return comma || rest->bytes == 0;
}

bool etag_list_valid(struct span list)
{
    struct span rest = span_trim(list), tag;
    unsigned    tags = 0;
    bool        is_weak;

    if (span_is(rest, "*"))
        return true;
    take_commas(&rest);
    for (; rest.bytes; tags++)
        if (!take_tag(&rest, &is_weak, &tag) || !take_commas(&rest))
            return false;
    return tags > 0;
}

/* The three date formats of RFC 9110 §5.6.7. */
static bool is_time(struct span value)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"};
    char                     copy[HTTP_TIME_CHARS_MAX + 1];
    bool                     found = false;

    if (!span_copy(value, copy, sizeof copy))
        return false;
    for (size_t i = 0; i < COUNT(forms) && !found; i++) {
        struct tm   unused = {0};
        const char *end = strptime(copy, forms[i], &unused);

        found = end && *end == '\0';
    }
    return found;
}

bool if_range_valid(struct span value)
{
    struct span rest = span_trim(value), tag;
    bool        is_weak;

    return is_time(rest) || (take_tag(&rest, &is_weak, &tag) && rest.bytes == 0);
}

bool etag_listed(struct span list, struct span etag, bool weak)
{
    struct span rest = span_trim(list);
    struct span tag;
    bool        is_weak;

    if (span_is(rest, "*"))
        return true;
    take_commas(&rest);
    while (take_tag(&rest, &is_weak, &tag)) {
        if ((weak || !is_weak) && span_equal(tag, etag))
            return true;
        take_commas(&rest);
    }
    return false;
}

enum precondition precondition_check(struct span if_match, struct span if_none_match, struct span etag, bool reading)
{
    if (if_match.data && !etag_listed(if_match, etag, false))
        return PRECONDITION_FAILS;
    if (if_none_match.data && etag_listed(if_none_match, etag, true))
        return reading ? PRECONDITION_NOT_MODIFIED : PRECONDITION_FAILS;
    return PRECONDITION_HOLDS;
}
