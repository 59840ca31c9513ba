/* Parses Range and Content-Range. */
#include "http/message/range.h"

#include <inttypes.h>

enum { SIZE_DIGITS_SHOWN = 40 };

static bool has(struct span s, char c)
{
    return s.bytes && memchr(s.data, c, s.bytes) != NULL;
}

/* An invalid Range is ignored (RFC 9110 §14.2): the whole content is a correct answer. */
static enum range_kind whole(uint64_t size, struct byte_range *out)
{
    *out = (struct byte_range){0, size};
    return RANGE_WHOLE;
}

static bool unit_is_bytes(struct span *rest)
{
    struct span unit = span_cut(rest, '=');
    return span_equal_nocase(unit, SPAN_LITERAL("bytes"));
}

static enum range_kind suffix(struct span last, uint64_t size, struct byte_range *out)
{
    uint64_t wanted;

    if (!span_u64_saturated(last, &wanted))
        return whole(size, out);
    if (wanted == 0 || size == 0)
        return RANGE_UNSATISFIED;
    if (wanted > size)
        wanted = size;
    *out = (struct byte_range){size - wanted, wanted};
    return RANGE_PART;
}

enum range_kind range_parse(struct span header, uint64_t size, struct byte_range *out)
{
    struct span rest = span_trim(header);
    struct span first, last;
    uint64_t    from, to = size ? size - 1 : 0;

    if (rest.bytes == 0 || !unit_is_bytes(&rest) || has(rest, ',') || !has(rest, '-'))
        return whole(size, out);
    first = span_trim(span_cut(&rest, '-'));
    last = span_trim(rest);
    if (first.bytes == 0)
        return suffix(last, size, out);
    if (!span_u64_saturated(first, &from) || (last.bytes && (!span_u64_saturated(last, &to) || to < from)))
        return whole(size, out);
    if (from >= size)
        return RANGE_UNSATISFIED;
    if (to > size - 1)
        to = size - 1;
    *out = (struct byte_range){from, to - from + 1};
    return RANGE_PART;
}

enum status range_unsatisfied(struct problem *why, uint64_t size)
{
    problem_set(why, STATUS_RANGE_NOT_SATISFIABLE, "the range lies outside the buffer's %" PRIu64 " bytes", size);
    if (why) {
        why->has_unsatisfied_range = true;
        why->range_size = size;
    }
    return STATUS_RANGE_NOT_SATISFIABLE;
}

static enum status malformed(struct problem *why)
{
    return problem_set(why, STATUS_INVALID_CONTENT_RANGE, "Content-Range must be \"bytes FIRST-LAST/SIZE\" or \"bytes FIRST-LAST/*\"");
}

enum status content_range_parse(struct span header, uint64_t size, struct byte_range *out, struct problem *why)
{
    struct span rest = span_trim(header);
    struct span unit = span_cut(&rest, ' ');
    struct span range, first;
    uint64_t    from, to, total;

    if (!span_equal_nocase(unit, SPAN_LITERAL("bytes")) || !has(rest, '/'))
        return malformed(why);
    range = span_trim(span_cut(&rest, '/'));
    if (!has(range, '-'))
        return malformed(why);
    first = span_cut(&range, '-');
    if (!span_u64_saturated(first, &from) || !span_u64_saturated(range, &to) || to < from)
        return malformed(why);
    if (!span_is(rest, "*") && !span_u64_saturated(rest, &total))
        return malformed(why);
    if (!span_is(rest, "*") && total != size)
        return problem_set(why, STATUS_INVALID_CONTENT_RANGE, "Content-Range has the size %.*s, the buffer has %" PRIu64 " bytes",
                           SPAN_ARG(span_first(rest, SIZE_DIGITS_SHOWN)), size);
    if (to >= size)
        return range_unsatisfied(why, size);
    *out = (struct byte_range){from, to - from + 1};
    return STATUS_OK;
}
