/* For operators: the log's levels, changed at run time, and its last lines. */
#include <stdlib.h>

#include "api/bounds.h"
#include "api/call.h"
#include "api/endpoints.h"
#include "base/log/log.h"

#define LINES_TYPE "text/plain; charset=utf-8"

/* ---- levels ---- */

struct logging_request {
    const struct json *levels;
};

static const struct json_field logging_fields[] = {
    JSON_FIELD(FIELD_ANY, struct logging_request, levels, true, 0),
};

enum status logging_get(struct request *r)
{
    const struct config *config = app_of(r)->config;
    struct answer        a;

    answer_begin(&a);
    json_open_object(&a.w, "levels");
    for (unsigned c = 0; c < LOG_CATEGORIES; c++)
        json_add_text(&a.w, log_category_name(c), log_level_name(log_level_get(c)));
    json_close_object(&a.w);
    json_add_text(&a.w, "format", config->log_format);
    json_add_bool(&a.w, "file", config->log_file[0] != '\0');
    return answer_end(&a, r, 200);
}

static enum status decode_level(const struct json *v, enum log_category *category, enum log_level *level, struct problem *why)
{
    char pointer[PROBLEM_POINTER_BYTES] = "/levels/";

    span_copy(span_first(json_name(v), 32), pointer + 8, sizeof pointer - 8);
    if (!log_category_parse(json_name(v), category))
        return problem_field(why, STATUS_UNKNOWN_FIELD, pointer, "unknown", "unknown log category");
    if (!log_level_parse(json_text(v), level))
        return problem_field(why, STATUS_INVALID_FIELD, pointer, "value", "a level must be critical, error, warn, info, debug or trace");
    return STATUS_OK;
}

/* Sets all levels or none. */
static enum status set_levels(const struct json *levels, struct problem *why)
{
    enum log_category category;
    enum log_level    level;
    enum status       st = STATUS_OK;

    if (json_type_of(levels) != JSON_OBJECT)
        return problem_field(why, STATUS_INVALID_FIELD, "/levels", "type", "levels must be an object");
    for (const struct json *v = json_first(levels); v && !st; v = json_next(v))
        st = decode_level(v, &category, &level, why);
    for (const struct json *v = json_first(levels); v && !st; v = json_next(v))
        if (!decode_level(v, &category, &level, why))
            log_level_set(category, level);
    return st;
}

enum status logging_put(struct request *r)
{
    struct logging_request q = {0};
    enum status            st = body_decode(r, logging_fields, COUNT(logging_fields), &q);

    if (!st)
        st = set_levels(q.levels, &r->problem);
    if (st)
        return st;
    log_info("frontend", "%s changed the log levels", r->caller->name);
    return logging_get(r);
}

/* ---- lines ---- */

struct wanted {
    bool           follow;
    uint64_t       lines, seconds;
    enum log_level most;
};

/* Polled every LOG_FOLLOW_TICK_MS, so that writing a line never has to wake followers. */
struct log_stream {
    struct body_source source;
    struct request    *request;
    uint64_t           last, end_ns;
    enum log_level     most;
    char               line[LOG_LINE_BYTES];
    size_t             bytes, sent;
};

static atomic_uint followers;

static enum status read_log(struct body_source *source, char *to, size_t room, size_t *bytes, struct waker *w)
{
    struct log_stream *s = (struct log_stream *)source;
    uint64_t           now = now_ns();

    (void)w; /* only the timer wakes it */
    *bytes = 0;
    if (now >= s->end_ns || atomic_load(&app_of(s->request)->leaving))
        return STATUS_OK;
    if (s->sent == s->bytes) {
        s->bytes = log_next(&s->last, s->most, s->line);
        s->sent = 0;
    }
    s->request->wake_at_ns = now + LOG_FOLLOW_TICK_MS * NS_PER_MS;
    if (!s->bytes)
        return STATUS_PENDING;
    *bytes = s->bytes - s->sent < room ? s->bytes - s->sent : room;
    memcpy(to, s->line + s->sent, *bytes);
    s->sent += *bytes;
    return STATUS_OK;
}

static void close_log(struct body_source *source)
{
    atomic_fetch_sub(&followers, 1);
    free(source);
}

static enum status follow_log(struct request *r, const struct wanted *w, uint64_t last)
{
    unsigned           before = atomic_fetch_add(&followers, 1);
    struct log_stream *s = before < LOG_FOLLOWERS_MAX ? calloc(1, sizeof *s) : NULL;

    if (!s) {
        atomic_fetch_sub(&followers, 1);
        return problem_limit(&r->problem, STATUS_TOO_MANY_IN_FLIGHT, "log_followers", LOG_FOLLOWERS_MAX, before, 1);
    }
    s->source = (struct body_source){.read = read_log, .close = close_log};
    s->request = r;
    s->last = last;
    s->most = w->most;
    s->end_ns = deadline_after_ns(w->seconds * NS_PER_S);
    reply_header_text(&r->reply, "Content-Type", LINES_TYPE);
    reply_header_text(&r->reply, "X-Accel-Buffering", "no");
    return reply_source_take(&r->reply, 200, &s->source, REPLY_BYTES_UNKNOWN);
}

static enum status send_log(struct request *r, const struct wanted *w, uint64_t last)
{
    struct buf  text;
    char       *line = arena_alloc(&r->arena, LOG_LINE_BYTES);
    uint64_t    newest = log_newest();
    size_t      bytes;
    enum status st;

    buf_init(&text, (size_t)LOG_LINES_KEPT * LOG_LINE_BYTES);
    while (line && last < newest && (bytes = log_next(&last, w->most, line)) > 0)
        buf_add(&text, line, bytes);
    st = line && !text.failed ? reply_text(&r->reply, 200, LINES_TYPE, buf_span(&text))
                              : problem_set(&r->problem, STATUS_OUT_OF_MEMORY, "not enough memory for the lines");
    buf_finish(&text);
    return st;
}

static enum status parse_log_query(struct request *r, struct wanted *w)
{
    struct span level;
    uint64_t    follow = 0;
    enum status st = number_of(r, "follow", 0, 1, &follow);

    *w = (struct wanted){.lines = LIST_ITEMS_DEFAULT, .seconds = EVENT_STREAM_S_MAX, .most = LOG_LEVEL_TRACE};
    if (!st)
        st = number_of(r, "lines", 0, LOG_LINES_KEPT, &w->lines);
    if (!st)
        st = number_of(r, "timeout_seconds", 1, EVENT_STREAM_S_MAX, &w->seconds);
    if (!st && request_query(r, "level", &level) && !log_level_parse(level, &w->most))
        st = problem_field(&r->problem, STATUS_INVALID_FIELD, "level", "value",
                           "a level must be critical, error, warn, info, debug or trace");
    w->follow = follow == 1;
    return st;
}

enum status logs_get(struct request *r)
{
    uint64_t      newest = log_newest();
    struct wanted w;
    uint64_t      last;
    enum status   st = parse_log_query(r, &w);

    if (st)
        return st;
    if (!request_accepts(r, "text/plain"))
        return problem_set(&r->problem, STATUS_NOT_ACCEPTABLE, "Accept must allow text/plain, the type of the log");
    last = newest > w.lines ? newest - w.lines : 0;
    return w.follow && r->method != METHOD_HEAD ? follow_log(r, &w, last) : send_log(r, &w, last);
}
