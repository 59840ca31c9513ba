/* From paths and methods to rows. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "http/message/route.h"

static const struct endpoint table[] = {
    {.operation = "root", .method = METHOD_GET, .path = "/"},
    {.operation = "list", .method = METHOD_GET, .path = "/v1/sessions"},
    {.operation = "create", .method = METHOD_POST, .path = "/v1/sessions"},
    {.operation = "get", .method = METHOD_GET, .path = "/v1/sessions/{sid}"},
    {.operation = "put", .method = METHOD_PUT, .path = "/v1/sessions/{sid}"},
    {.operation = "delete", .method = METHOD_DELETE, .path = "/v1/sessions/{sid}"},
    {.operation = "data", .method = METHOD_GET, .path = "/v1/sessions/{sid}/buffers/{bid}/data"},
    {.operation = "head", .method = METHOD_HEAD, .path = "/v1/sessions/{sid}/buffers/{bid}/data"},
};

static struct route find(enum method m, const char *path)
{
    struct route r;

    route_find(table, COUNT(table), m, span_of(path), &r);
    return r;
}

Test(route, finds_rows_and_parameters)
{
    struct route r = find(METHOD_GET, "/v1/sessions/s_1/buffers/a.b~c:d-e/data");

    cr_assert_eq(r.status, STATUS_OK);
    cr_assert_str_eq(r.endpoint->operation, "data");
    cr_assert_eq(r.params_count, 2);
    cr_assert(span_is(r.params[0], "s_1"));
    cr_assert(span_is(r.params[1], "a.b~c:d-e"));
    cr_assert_str_eq(find(METHOD_GET, "/").endpoint->operation, "root");
    cr_assert_str_eq(find(METHOD_POST, "/v1/sessions").endpoint->operation, "create");
}

/* The handler that creates an object refuses an invalid name, and gives the rule for names. */
Test(route, leaves_names_to_the_handlers)
{
    static const char *const names[] = {"a@b", "a:b", "a;b", "a,b", "a=b", "a!b", "(a)", "%61", "A.B", "..."};
    char                     path[64];

    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof path, "/v1/sessions/%s", names[i]);
        cr_assert_eq(find(METHOD_GET, path).status, STATUS_OK, "%s", path);
        cr_assert(span_is(find(METHOD_GET, path).params[0], names[i]));
    }
}

Test(route, head_finds_its_own_row_or_that_of_get)
{
    cr_assert_str_eq(find(METHOD_HEAD, "/v1/sessions/a/buffers/b/data").endpoint->operation, "head");
    cr_assert_str_eq(find(METHOD_HEAD, "/v1/sessions/a").endpoint->operation, "get");
    cr_assert_eq(find(METHOD_HEAD, "/nothing").status, STATUS_NOT_FOUND);
}

Test(route, tells_exactly_what_is_allowed)
{
    struct route r = find(METHOD_PATCH, "/v1/sessions/x");

    cr_assert_eq(r.status, STATUS_METHOD_NOT_ALLOWED);
    cr_assert_null(r.endpoint);
    cr_assert_str_eq(r.allow, "GET, HEAD, PUT, DELETE");
    cr_assert_str_eq(find(METHOD_PUT, "/v1/sessions").allow, "GET, HEAD, POST");
    cr_assert_str_eq(find(METHOD_COUNT, "/v1/sessions").allow, "GET, HEAD, POST");
}

Test(route, takes_no_near_misses)
{
    static const char *const bad[] = {"",
                                      "v1/sessions",
                                      "/v1",
                                      "/v1/",
                                      "/v1/sessions/",
                                      "//v1/sessions",
                                      "/v1//sessions",
                                      "/v1/Sessions",
                                      "/v1/sessions/a/",
                                      "/v1/sessions/..",
                                      "/v1/sessions/.",
                                      "/v1/sessions/a/buffers//data",
                                      "/v1/sessions/a/buffers/b/data/x",
                                      "//",
                                      "/v1/sessions/a/buffers/b/data/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"};

    for (size_t i = 0; i < COUNT(bad); i++)
        cr_assert_eq(find(METHOD_GET, bad[i]).status, STATUS_NOT_FOUND, "%s", bad[i]);
}

/* The text ends where the span does, whatever follows it. */
Test(route, looks_at_nothing_behind_the_path)
{
    static const char text[] = "/v1/sessions\0/x";
    struct route      r;

    route_find(table, COUNT(table), METHOD_GET, (struct span){text, sizeof text - 1}, &r);
    cr_assert_eq(r.status, STATUS_NOT_FOUND);
    route_find(table, COUNT(table), METHOD_GET, (struct span){"/v1/sessions/abc", 14}, &r);
    cr_assert_str_eq(r.endpoint->operation, "get");
    cr_assert(span_is(r.params[0], "a"));
}

Test(route, methods_have_exact_names)
{
    enum method m;

    for (unsigned i = 0; i < METHOD_COUNT; i++) {
        cr_assert(method_parse(span_of(method_name((enum method)i)), &m));
        cr_assert_eq(m, i);
    }
    cr_assert_not(method_parse(SPAN_LITERAL("get"), &m));
    cr_assert_not(method_parse(SPAN_LITERAL("TRACE"), &m));
    cr_assert_not(method_parse(SPAN_LITERAL(""), &m));
}
