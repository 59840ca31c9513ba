/* Query, preferences, media types; and replies. */
#include <criterion/criterion.h>

#include "http/bounds.h"
#include "http/message/request.h"

static struct {
    const char *name, *value;
} header;

static struct span lent_header(const struct request *r, const char *name)
{
    (void)r;
    return header.name && span_equal_nocase(span_of(name), span_of(header.name)) ? span_of(header.value) : (struct span){NULL, 0};
}

static struct request_port port = {.header = lent_header};

static struct request make(const char *query, const char *name, const char *value)
{
    struct request r = {.port = &port};

    arena_init(&r.arena, 64 * 1024);
    port.query = span_of(query);
    header.name = name;
    header.value = value;
    return r;
}

Test(request, decodes_query_values)
{
    struct request r = make("a=1&b=%41%2f+&&c&d=", NULL, NULL);
    struct span    out;

    cr_assert(request_query(&r, "a", &out) && span_is(out, "1"));
    cr_assert(request_query(&r, "b", &out) && span_is(out, "A/+"));
    cr_assert(request_query(&r, "c", &out) && span_is(out, ""));
    cr_assert(request_query(&r, "d", &out) && span_is(out, ""));
    cr_assert_not(request_query(&r, "e", &out));
    cr_assert_not(request_query(&r, "", &out));
    arena_finish(&r.arena);
}

Test(request, decodes_parameters_of_the_path)
{
    struct request r = make("", NULL, NULL);
    struct route   route = {.params_count = 2, .params = {SPAN_LITERAL("cpu%3A0"), SPAN_LITERAL("a@b")}};

    cr_assert_eq(request_take_params(&r, &route), STATUS_OK);
    cr_assert(span_is(r.params[0], "cpu:0"));
    cr_assert(span_is(r.params[1], "a@b"));
    route.params[1] = SPAN_LITERAL("%e");
    cr_assert_eq(request_take_params(&r, &route), STATUS_INVALID_REQUEST);
    route.params[1] = SPAN_LITERAL("%0a");
    cr_assert_eq(request_take_params(&r, &route), STATUS_INVALID_REQUEST);
    arena_finish(&r.arena);
}

Test(request, admits_only_known_query_names)
{
    static const char *const names[] = {"a", "b", NULL};
    static const struct {
        const char *query;
        enum status st;
    } cases[] = {
        {"", STATUS_OK},
        {"a=1&b=2", STATUS_OK},
        {"a=1&c=2", STATUS_UNKNOWN_FIELD},
        {"A=1", STATUS_UNKNOWN_FIELD},
        {"=1", STATUS_UNKNOWN_FIELD},
        {"a=1&a=2", STATUS_INVALID_FIELD},
        {"a=%4", STATUS_INVALID_FIELD},
        {"a=%zz", STATUS_INVALID_FIELD},
        {"a=%0a", STATUS_INVALID_FIELD},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request r = make(cases[i].query, NULL, NULL);
        cr_assert_eq(request_query_only(&r, names), cases[i].st, "%s", cases[i].query);
        arena_finish(&r.arena);
    }
}

Test(request, reads_preferences)
{
    struct request r = make("", "Prefer", "Respond-Async, wait=30;x=y , handling=\"lenient\", wait=5, Return=minimal");
    struct prefer  p = request_prefer(&r);

    cr_assert(p.respond_async && p.lenient && p.minimal);
    cr_assert_eq(p.wait_s, 30);
    r = make("", "Prefer", "wait=-1, handling=strict, respond-asynchronously, return=representation");
    p = request_prefer(&r);
    cr_assert_not(p.respond_async || p.lenient || p.minimal);
    cr_assert_eq(p.wait_s, UINT64_MAX);
    r = make("", NULL, NULL);
    cr_assert_eq(request_prefer(&r).wait_s, UINT64_MAX);
}

Test(request, weighs_accept)
{
    static const struct {
        const char *accept;
        bool        json;
    } cases[] = {
        {"", true},
        {"*/*", true},
        {"application/*", true},
        {"application/json", true},
        {"APPLICATION/JSON;q=0.1", true},
        {"text/html", false},
        {"text/html, */*;q=0.1", true},
        {"application/json;q=0, */*", false},
        {"*/*;q=0", false},
        {"application/*;q=0.0,application/json", true},
        {"applic/*", false},
        {"application/jsonx", false},
        {"*/*; q=0.000", false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request r = make("", "Accept", cases[i].accept);
        cr_assert_eq(request_accepts(&r, "application/json"), cases[i].json, "%s", cases[i].accept);
    }
}

Test(request, media_type_has_no_parameters)
{
    struct request r = make("", "Content-Type", " text/x-cuda ; charset=utf-8");

    cr_assert(span_is(request_media_type(&r), "text/x-cuda"));
    r = make("", NULL, NULL);
    cr_assert_eq(request_media_type(&r).bytes, 0);
}

static unsigned closed;

static enum status read_nothing(struct body_source *s, char *to, size_t room, size_t *bytes, struct waker *w)
{
    (void)s, (void)to, (void)room, (void)bytes, (void)w;
    return STATUS_INTERNAL;
}

static void count_close(struct body_source *s)
{
    (void)s;
    closed++;
}

Test(reply, owns_headers_body_and_source)
{
    struct body_source source = {.read = read_nothing, .close = count_close};
    struct reply       r;

    reply_init(&r);
    reply_header(&r, "X-A", "%d\r\nX-B: 2", 1);
    cr_assert_str_eq(r.headers[0].value, "1??X-B: 2");
    reply_source_take(&r, 200, &source, 5);
    reply_json(&r, 201, SPAN_LITERAL("{}")); /* a second answer replaces the first */
    cr_assert_eq(closed, 1);
    reply_text(&r, 202, "text/plain", SPAN_LITERAL("abc"));
    cr_assert_eq(r.http_status, 202);
    cr_assert(span_is(buf_span(&r.body), "abc"));
    cr_assert_eq(r.headers_count, 2);
    cr_assert_str_eq(r.headers[1].value, "text/plain");
    reply_source_take(&r, 200, &source, 5);
    reply_finish(&r);
    reply_finish(&r);
    cr_assert_eq(closed, 2);
}

Test(reply, takes_a_text_and_long_values_whole)
{
    struct reply r;
    struct buf   text;
    char         longer[1000];

    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    buf_init(&text, 100);
    buf_add_text(&text, "{}");
    reply_init(&r);
    reply_header(&r, "X-Long", "%s", longer);
    reply_header_text(&r, "X-Text", longer);
    reply_header_text(&r, "X-Lines", "a\r\nb");
    cr_assert_str_eq(r.headers[0].value, longer);
    cr_assert_str_eq(r.headers[1].value, longer);
    cr_assert_str_eq(r.headers[2].value, "a??b");
    reply_text(&r, 200, "text/plain", SPAN_LITERAL("abc"));
    reply_json_take(&r, 201, &text);
    cr_assert(span_is(buf_span(&r.body), "{}"));
    cr_assert_null(text.data);
    cr_assert_eq(r.headers_count, 4);
    cr_assert_str_eq(r.headers[3].value, "application/json");
    cr_assert_not(r.body.failed);
    reply_header_text(&r, "X-None", NULL);
    reply_json_take(&r, 201, &text); /* the failure stays */
    cr_assert(r.body.failed);
    reply_finish(&r);
}

Test(reply, too_many_headers_are_noticed)
{
    struct reply r;

    reply_init(&r);
    for (int i = 0; i < REPLY_HEADERS_MAX; i++)
        reply_header(&r, "X", "%d", i);
    cr_assert_not(r.body.failed);
    reply_header(&r, "X", "more");
    cr_assert(r.body.failed);
    reply_finish(&r);
}
