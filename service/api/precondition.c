/* Evaluates If-Match and If-None-Match against an entity tag. */
#include "api/precondition.h"

/* Takes one entity tag off the front; false at the end or when what stands there is none. Tags may hold commas. */
static bool take_tag(struct span *rest, bool *is_weak, struct span *tag)
{
    const char *end;

    while (rest->bytes && (*rest->data == ',' || *rest->data == ' ' || *rest->data == '\t'))
        *rest = span_from(*rest, 1);
    *is_weak = rest->bytes >= 2 && memcmp(rest->data, "W/", 2) == 0;
    if (*is_weak)
        *rest = span_from(*rest, 2);
    if (rest->bytes < 2 || *rest->data != '"')
        return false;
    end = memchr(rest->data + 1, '"', rest->bytes - 1);
    if (!end)
        return false;
    *tag = (struct span){rest->data, (size_t)(end - rest->data) + 1};
    *rest = span_from(*rest, tag->bytes);
    return true;
}

bool etag_listed(struct span list, struct span etag, bool weak)
{
    struct span rest = span_trim(list);
    struct span tag;
    bool        is_weak;

    if (span_is(rest, "*"))
        return true;
    while (take_tag(&rest, &is_weak, &tag))
        if ((weak || !is_weak) && span_equal(tag, etag))
            return true;
    return false;
}

enum precondition precondition_check(struct span if_match, struct span if_none_match, struct span etag, bool reading)
{
    if (if_match.bytes && !etag_listed(if_match, etag, false))
        return PRECONDITION_FAILS;
    if (if_none_match.bytes && etag_listed(if_none_match, etag, true))
        return reading ? PRECONDITION_NOT_MODIFIED : PRECONDITION_FAILS;
    return PRECONDITION_HOLDS;
}
