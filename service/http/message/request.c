/* What handlers read of a request besides its body: query, preferences, media types. */
#include "http/message/request.h"

#include "base/portion.h"
#include "http/json/json.h"
#include "http/message/precondition.h"

struct span request_header(const struct request *r, const char *name)
{
    return r->port->header(r, name);
}

bool request_gone(const struct request *r)
{
    return r->port->gone(r);
}

/* With held.lock held. */
static enum status check_hold(struct request *r, uint64_t bytes)
{
    const struct portion p = {"held_body_bytes", HELD_BODIES_BYTES_MAX, r->port->held->bytes, r->caller->held_bytes};

    return portion_check(&p, bytes, &r->problem);
}

enum status request_may_hold(struct request *r, uint64_t bytes)
{
    enum status st;

    if (!r->port->held)
        return STATUS_OK;
    pthread_mutex_lock(&r->port->held->lock);
    st = check_hold(r, bytes);
    pthread_mutex_unlock(&r->port->held->lock);
    return st;
}

uint64_t request_held_by_caller(const struct request *r)
{
    struct held_bodies *all = r->port->held;
    uint64_t            bytes;

    if (!all)
        return 0;
    pthread_mutex_lock(&all->lock);
    bytes = r->caller->held_bytes;
    pthread_mutex_unlock(&all->lock);
    return bytes;
}

bool request_revoked(const struct request *r)
{
    return r->port->revoked && r->port->revoked(r);
}

enum status request_hold(struct request *r, uint64_t bytes)
{
    struct held_bodies *all = r->port->held;
    enum status         st;

    if (!all)
        return STATUS_OK;
    pthread_mutex_lock(&all->lock);
    st = check_hold(r, bytes);
    if (!st) {
        all->bytes += bytes;
        r->caller->held_bytes += bytes;
        r->held_bytes += bytes;
    }
    pthread_mutex_unlock(&all->lock);
    return st;
}

void request_release(struct request *r)
{
    struct held_bodies *all = r->port->held;

    if (!r->held_bytes)
        return;
    pthread_mutex_lock(&all->lock);
    all->bytes -= r->held_bytes;
    r->caller->held_bytes -= r->held_bytes;
    pthread_mutex_unlock(&all->lock);
    r->held_bytes = 0;
}

/* Decodes the next byte of percent-encoded text; -1 for a bad escape or a control byte. */
static int decode_byte(struct span *rest)
{
    int high, low, c = (unsigned char)rest->data[0];

    if (c == '%') {
        high = rest->bytes >= 3 ? hex_digit(rest->data[1]) : -1;
        low = rest->bytes >= 3 ? hex_digit(rest->data[2]) : -1;
        if (high < 0 || low < 0)
            return -1;
        c = high << 4 | low;
        *rest = span_from(*rest, 2);
    }
    *rest = span_from(*rest, 1);
    return c < 0x20 || c == 0x7f ? -1 : c;
}

/* `to` has room for text.bytes; NULL: only check. */
static bool decode_text(struct span text, char *to, size_t *bytes)
{
    *bytes = 0;
    while (text.bytes) {
        int c = decode_byte(&text);
        if (c < 0)
            return false;
        if (to)
            to[*bytes] = (char)c;
        ++*bytes;
    }
    return true;
}

/* Cuts "name=value" off the query; false at its end. Skips empty parts ("a=1&&b=2"). */
static bool next_parameter(struct span *rest, struct span *name, struct span *value)
{
    while (rest->bytes) {
        struct span piece = span_cut(rest, '&');
        if (piece.bytes == 0)
            continue;
        *name = span_cut(&piece, '=');
        *value = piece;
        return true;
    }
    return false;
}

enum status request_take_params(struct request *r, const struct route *route)
{
    for (unsigned i = 0; i < route->params_count; i++) {
        struct span raw = route->params[i];
        char       *to;

        r->params[i] = raw;
        if (!memchr(raw.data, '%', raw.bytes))
            continue;
        to = arena_alloc(&r->arena, raw.bytes + 1);
        if (!to)
            return problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the path");
        if (!decode_text(raw, to, &r->params[i].bytes))
            return problem_set(&r->problem, STATUS_INVALID_REQUEST, "invalid percent-encoding in the path");
        r->params[i].data = to;
    }
    return STATUS_OK;
}

bool request_query(struct request *r, const char *name, struct span *out)
{
    struct span rest = r->port->query, found, value;
    char       *to;

    while (next_parameter(&rest, &found, &value)) {
        if (!span_is(found, name))
            continue;
        to = arena_alloc(&r->arena, value.bytes + 1);
        if (!to || !decode_text(value, to, &out->bytes))
            return false;
        to[out->bytes] = '\0';
        out->data = to;
        return true;
    }
    return false;
}

static unsigned occurrences(struct span query, struct span name)
{
    struct span found, value;
    unsigned    count = 0;

    while (next_parameter(&query, &found, &value))
        count += span_equal(found, name);
    return count;
}

static bool is_listed(struct span name, const char *const *names)
{
    for (; *names; names++)
        if (span_is(name, *names))
            return true;
    return false;
}

enum status request_query_only(struct request *r, const char *const *names)
{
    struct span rest = r->port->query, name, value;
    size_t      bytes;

    while (next_parameter(&rest, &name, &value)) {
        char pointer[PROBLEM_POINTER_BYTES] = "?";

        span_copy(span_first(name, sizeof pointer - 2), pointer + 1, sizeof pointer - 1);
        if (!is_listed(name, names))
            return problem_field(&r->problem, STATUS_UNKNOWN_FIELD, pointer, "unknown", "unknown query parameter");
        if (occurrences(r->port->query, name) > 1)
            return problem_field(&r->problem, STATUS_INVALID_FIELD, pointer, "duplicate", "duplicate query parameter");
        if (!decode_text(value, NULL, &bytes))
            return problem_field(&r->problem, STATUS_INVALID_FIELD, pointer, "encoding",
                                 "invalid percent-encoding in this query parameter");
    }
    return STATUS_OK;
}

/* ---- begin and handler ---- */

static enum status bad_condition(struct request *r, const char *header, const char *expected)
{
    return problem_set(&r->problem, STATUS_INVALID_HEADER, "%s must be %s", header, expected);
}

static enum status check_conditions(struct request *r)
{
    static const char *const lists[] = {"If-Match", "If-None-Match"};
    struct span              if_range = request_header(r, "If-Range");

    for (size_t i = 0; i < COUNT(lists); i++) {
        struct span list = request_header(r, lists[i]);

        if (list.data && !etag_list_valid(list))
            return bad_condition(r, lists[i], "*, or entity tags such as \"1.7\" in quotation marks, separated by commas");
    }
    if (if_range.data && r->method == METHOD_GET && request_header(r, "Range").data && !if_range_valid(if_range))
        return bad_condition(r, "If-Range", "one entity tag such as \"1.7\" in quotation marks, or a date");
    return STATUS_OK;
}

enum status request_begin(struct request *r)
{
    enum status st = request_prefer(r).lenient ? STATUS_OK : request_query_only(r, r->endpoint->query);

    if (!st && r->endpoint->conditional)
        st = check_conditions(r);
    return st || !r->endpoint->begin ? st : r->endpoint->begin(r);
}

enum status request_handle(struct request *r)
{
    enum status st = r->endpoint->handle(r);

    json_document_destroy(r->document);
    r->document = NULL;
    return st;
}

enum status body_sink_write(struct body_sink *s, struct request *r, struct span piece, size_t *consumed)
{
    enum status st;
    size_t      room;
    char       *to;

    *consumed = 0;
    if (s->write)
        return s->write(s, r, piece, consumed);
    st = s->borrow(s, r, &to, &room);
    if (st)
        return st;
    piece = span_first(piece, room);
    memcpy(to, piece.data, piece.bytes);
    *consumed = piece.bytes;
    return s->commit(s, r, piece.bytes);
}

/* UINT64_MAX means "absent". */
static const uint64_t WAIT_S_GREATEST = UINT64_MAX - 1;

static void apply_preference(struct prefer *p, struct span item)
{
    struct span head = span_trim(span_cut(&item, ';'));
    struct span name = span_trim(span_cut(&head, '='));
    struct span value = span_unquote(span_trim(head));
    uint64_t    seconds;

    if (span_equal_nocase(name, SPAN_LITERAL("respond-async")))
        p->respond_async = true;
    if (span_equal_nocase(name, SPAN_LITERAL("handling")))
        p->lenient = span_equal_nocase(value, SPAN_LITERAL("lenient"));
    if (span_equal_nocase(name, SPAN_LITERAL("return")))
        p->minimal = span_equal_nocase(value, SPAN_LITERAL("minimal"));
    if (span_equal_nocase(name, SPAN_LITERAL("wait")) && p->wait_s == UINT64_MAX && span_u64_saturated(value, &seconds))
        p->wait_s = seconds < WAIT_S_GREATEST ? seconds : WAIT_S_GREATEST;
}

struct prefer request_prefer(struct request *r)
{
    struct span rest;

    if (r->prefer_read)
        return r->prefer;
    r->prefer = (struct prefer){.wait_s = UINT64_MAX};
    rest = request_header(r, "Prefer");
    while (rest.bytes)
        apply_preference(&r->prefer, span_cut(&rest, ','));
    r->prefer_read = true;
    return r->prefer;
}

/* q=0, q=0.0, ...: not acceptable. */
static bool zero_quality(struct span parameters)
{
    while (parameters.bytes) {
        struct span value = span_cut(&parameters, ';');
        struct span name = span_trim(span_cut(&value, '='));
        bool        zero = true;

        if (!span_equal_nocase(name, SPAN_LITERAL("q")))
            continue;
        value = span_trim(value);
        for (size_t i = 0; i < value.bytes; i++)
            zero = zero && (value.data[i] == '0' || value.data[i] == '.');
        return zero;
    }
    return false;
}

/* How well a media range matches: 3 exact, 2 "type/<any>", 1 any, 0 not at all. */
static unsigned range_fits(struct span range, struct span type)
{
    const char *slash = memchr(type.data, '/', type.bytes);
    size_t      main_bytes = slash ? (size_t)(slash - type.data) + 1 : type.bytes;

    if (span_equal_nocase(range, type))
        return 3;
    if (span_is(range, "*/*"))
        return 1;
    if (range.bytes == main_bytes + 1 && range.data[main_bytes] == '*' &&
        span_equal_nocase(span_first(range, main_bytes), span_first(type, main_bytes)))
        return 2;
    return 0;
}

bool request_accepts(const struct request *r, const char *media_type)
{
    struct span rest = request_header(r, "Accept");
    unsigned    best = 0;
    bool        accepted = false;

    if (span_trim(rest).bytes == 0)
        return true;
    while (rest.bytes) {
        struct span item = span_cut(&rest, ',');
        struct span range = span_trim(span_cut(&item, ';'));
        unsigned    fit = range_fits(range, span_of(media_type));

        if (fit > best) {
            best = fit;
            accepted = !zero_quality(item);
        }
    }
    return accepted;
}

struct span request_media_type(const struct request *r)
{
    struct span value = request_header(r, "Content-Type");

    return span_trim(span_cut(&value, ';'));
}
