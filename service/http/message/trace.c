/* Reads X-Request-Id and traceparent. */
#include "http/message/trace.h"

void request_id_take(struct span header, char id[REQUEST_ID_BYTES])
{
    if (header.bytes > 0 && header.bytes < REQUEST_ID_BYTES && span_holds_only(header, "._-"))
        span_copy(header, id, REQUEST_ID_BYTES);
}

/* traceparent: version "-" trace-id "-" parent-id "-" trace-flags, in lower-case hex; later versions may add more after another "-". */
enum { TRACE_CHARS = 32, PARENT_CHARS = 16 };

/* Cuts that many hexadecimal digits off the front. `zero`: all are 0. */
static bool take_hex(struct span *rest, size_t count, struct span *out, bool *zero)
{
    *out = span_first(*rest, count);
    *zero = true;
    if (out->bytes < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        char c = out->data[i];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f'))
            return false;
        *zero = *zero && c == '0';
    }
    *rest = span_from(*rest, count);
    return true;
}

static bool take_dash(struct span *rest)
{
    bool there = rest->bytes > 0 && rest->data[0] == '-';

    *rest = span_from(*rest, 1);
    return there;
}

static bool parse_traceparent(struct span header, struct span *trace)
{
    struct span rest = span_trim(header), version, parent, flags;
    bool        zero, trace_zero, parent_zero;

    if (!take_hex(&rest, 2, &version, &zero) || span_is(version, "ff") || !take_dash(&rest))
        return false;
    if (!take_hex(&rest, TRACE_CHARS, trace, &trace_zero) || trace_zero || !take_dash(&rest))
        return false;
    if (!take_hex(&rest, PARENT_CHARS, &parent, &parent_zero) || parent_zero || !take_dash(&rest))
        return false;
    if (!take_hex(&rest, 2, &flags, &zero))
        return false;
    return rest.bytes == 0 || (!span_is(version, "00") && take_dash(&rest));
}

void trace_id_parse(struct span header, char out[TRACE_ID_BYTES])
{
    struct span trace;

    out[0] = '\0';
    if (parse_traceparent(header, &trace))
        span_copy(trace, out, TRACE_ID_BYTES);
}
