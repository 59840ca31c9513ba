/* A body that goes from one service to another one: whole, or in a way that nobody takes it for whole. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/mock.h"

enum { BYTES = 9 * 1000 * 1000 + 7 };

static char *contents;

/* What each of both does; zeroed: a body comes whole, and is taken. */
static struct {
    size_t      cut; /* of the answer to GET; 0: none */
    int         get_status, put_status;
    const char *raw, *code;
    bool        put_cuts;
    atomic_int  puts, whole; /* handled at all, and with a whole and equal body */
} act;

static void take(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    (void)arg;
    if (strcmp(q->path, "/version") == 0) {
        mock_json(a, 200, MOCK_VERSION);
        return;
    }
    atomic_fetch_add(&act.puts, 1);
    if (strstr(q->head, "\r\nContent-Type: text/x-test\r\n") && q->body_bytes == BYTES && memcmp(q->body, contents, BYTES) == 0)
        atomic_fetch_add(&act.whole, 1);
    if (act.put_status)
        mock_problem(a, act.put_status, "", act.code, true);
    else
        mock_json(a, 201, "{\"id\":\"new\"}");
    if (act.put_cuts)
        a->cut = 0;
}

static void give(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    if (strcmp(q->path, "/version") == 0) {
        mock_json(a, 200, MOCK_VERSION);
    } else if (strcmp(q->method, "PUT") == 0) { /* of one service to itself */
        take(arg, q, a);
    } else if (act.raw) {
        mock_raw(a, act.raw);
    } else if (act.get_status) {
        mock_problem(a, act.get_status, "", "session_not_found", false);
    } else {
        mock_reply(a, 200, "", "application/octet-stream", contents, BYTES);
        if (act.cut)
            a->cut = act.cut;
    }
}

static struct mock           *giver, *taker;
static gpurest_http_response *response;

static gpurest_client *client_of(const struct mock *m, int use_libcurl)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;
    gpurest_client *c;

    o.url = mock_url(m);
    o.use_libcurl = use_libcurl;
    o.max_connections = 1;
    cr_assert_eq(gpurest_open_with(&c, &o), GPUREST_OK, "%s", gpurest_last_error()->message);
    return c;
}

static gpurest_status pass_between(gpurest_client *from, gpurest_client *to)
{
    gpurest_http_request get = GPUREST_HTTP_REQUEST_INIT, put = GPUREST_HTTP_REQUEST_INIT;

    get.method = "GET";
    get.path = "/v1/sessions/a/snapshot";
    put.method = "PUT";
    put.path = "/v1/sessions/b";
    put.content_type = "text/x-test";
    response = NULL;
    return gpurest_http_pass(from, &get, to, &put, &response);
}

static gpurest_status pass_with(int use_libcurl, bool early)
{
    gpurest_client *from, *to;
    gpurest_status  st;

    giver = mock_start(give, NULL);
    taker = mock_start(take, NULL);
    from = client_of(giver, use_libcurl);
    to = client_of(taker, use_libcurl);
    if (early) { /* the first connection was for /version */
        gpurest_close(to);
        mock_stop(taker);
        taker = mock_start_early(take, NULL);
        to = client_of(taker, use_libcurl);
    }
    st = pass_between(from, to);
    gpurest_close(from);
    gpurest_close(to);
    mock_stop(giver);
    mock_stop(taker);
    return st;
}

static int status_of_pass(int use_libcurl, bool early)
{
    gpurest_status st = pass_with(use_libcurl, early);
    int            status;

    cr_assert_eq(st, GPUREST_OK, "%s", gpurest_last_error()->message);
    status = gpurest_http_status(response);
    gpurest_http_response_free(response);
    return status;
}

static void start(void)
{
    contents = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        contents[i] = (char)(i * 2654435761u >> 13);
    memset(&act, 0, sizeof act);
}

static void end(void)
{
    free(contents);
}

TestSuite(pass, .init = start, .fini = end);

Test(pass, a_body_comes_whole)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++)
        cr_assert_eq(status_of_pass(use_libcurl, false), 201);
    cr_assert_eq(atomic_load(&act.whole), 2);
}

Test(pass, one_client_with_one_connection_is_enough)
{
    gpurest_client *c;

    giver = mock_start(give, NULL);
    c = client_of(giver, 0);
    cr_assert_eq(pass_between(c, c), GPUREST_OK, "%s", gpurest_last_error()->message);
    gpurest_http_response_free(response);
    cr_assert_eq(atomic_load(&act.whole), 1);
    gpurest_close(c);
    mock_stop(giver);
}

Test(pass, one_that_ends_early_is_never_taken_for_whole)
{
    static const size_t cuts[] = {20, 1000, BYTES / 2, BYTES};

    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++)
        for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
            act.cut = cuts[i];
            cr_assert_eq(pass_with(use_libcurl, false), GPUREST_E_CONNECT, "%s", gpurest_last_error()->message);
            cr_assert(strstr(gpurest_last_error()->message, "GET /v1/sessions/a/snapshot"), "%s", gpurest_last_error()->message);
        }
    cr_assert_eq(atomic_load(&act.puts), 0); /* the mock has a handler only for whole requests */
}

Test(pass, a_refusal_of_the_first_one_keeps_the_second_one_from_being_asked)
{
    act.get_status = 404;
    cr_assert_eq(status_of_pass(0, false), 404);
    cr_assert_eq(atomic_load(&act.puts), 0);
}

Test(pass, without_a_length_the_end_could_not_be_told)
{
    static const char *const answers[] = {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                                          "HTTP/1.1 200 OK\r\n\r\nabc", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"};

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        act.raw = answers[i];
        cr_assert_eq(pass_with(0, false), GPUREST_E_PROTO);
        cr_assert(strstr(gpurest_last_error()->message, "no body of known length"), "%s", gpurest_last_error()->message);
    }
    cr_assert_eq(atomic_load(&act.puts), 0);
}

Test(pass, a_refusal_before_the_body_ends_both)
{
    act.put_status = 409;
    act.code = "spec_conflict";
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++)
        cr_assert_eq(status_of_pass(use_libcurl, true), 409);
}

Test(pass, a_taker_that_is_gone_is_named)
{
    act.put_cuts = true;
    cr_assert_eq(pass_with(0, true), GPUREST_E_CONNECT);
    cr_assert(strstr(gpurest_last_error()->message, "PUT /v1/sessions/b"), "%s", gpurest_last_error()->message);
}

Test(pass, what_cannot_be_sent_again_is_not_sent_on)
{
    act.put_status = 421;
    act.code = "session_moved";
    cr_assert_eq(pass_with(0, false), GPUREST_E_BUSY);
    cr_assert(strstr(gpurest_last_error()->message, "cannot be sent a second time"), "%s", gpurest_last_error()->message);
    cr_assert_eq(atomic_load(&act.puts), 1);
}
