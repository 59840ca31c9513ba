/* Refusals before anything else happens: framing tricks, invalid bytes, hosts, origins, tokens. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/digests/digest.h"
#include "http/bounds.h"
#include "unit/http/engine/server_fixture.h"

TestSuite(server_guard, .fini = stop_server);

#define GET  "GET /hello HTTP/1.1\r\nHost: localhost\r\n"
#define POST "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

/* Sends the text and a request after it, which must never be served: a refused framing ends the connection. */
static unsigned refused(struct server *s, const char *text)
{
    struct client c = client_connect(s);
    unsigned      status, before = atomic_load(&counters.begins);

    client_text(&c, "%sGET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", text);
    status = client_read(&c);
    cr_assert(client_at_end(&c), "%s: something follows %u", text, status);
    client_close(&c);
    cr_assert_eq(atomic_load(&counters.begins), before, "%s: reached an endpoint", text);
    return status;
}

Test(server_guard, refuses_ambiguous_framing_and_ends_the_connection)
{
    static const struct {
        const char *text;
        unsigned    status;
    } cases[] = {
        {POST "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
        {POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400},
        {POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {POST "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", 400},
        {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
        {POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
        {POST "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n", 501},
        {"POST /echo HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {POST "Content-Length: 18446744073709551615\r\n\r\n{}", 400},
        {POST "Content-Length: 9223372036854775808\r\n\r\n{}", 400},
        {POST "Content-Length : 5\r\n\r\n{}", 400},
        {POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
        {GET "Host: localhost\r\n\r\n", 400},
        {GET "X-A: a\rb\r\n\r\n", 400},
        {GET "X-A: a\x01\r\n\r\n", 400},
        {GET "X(A): a\r\n\r\n", 400},
        {GET "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400},
        {"GET ftp://localhost/hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET https://localhost/hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 400}, /* on a plain connection */
        {"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /hello%00x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /a%2Fb HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /a%5cb HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /a\\b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /a#b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /a\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /hello?a=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
    };
    struct server *s = start_server((struct server_options){.loops = 1});

    for (size_t i = 0; i < COUNT(cases); i++)
        cr_assert_eq(refused(s, cases[i].text), cases[i].status, "%s", cases[i].text);
}

static void check(struct server *s, const char *request, unsigned status, const char *code)
{
    struct client c = client_connect(s);

    client_text(&c, "%s", request);
    cr_assert_eq(client_read(&c), status, "%s: %u", request, c.answer.status);
    if (code)
        cr_assert_not_null(strstr(c.answer.body.data, code), "%s: %s", request, c.answer.body.data);
    client_close(&c);
}

Test(server_guard, admits_only_known_hosts_and_origins)
{
    struct server *s = start_server((struct server_options){.loops = 1});

    check(s, "GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, "misdirected_request");
    check(s, "GET /hello HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 421, NULL);
    check(s, "GET /hello HTTP/1.1\r\nHost: 10.1.2.3\r\n\r\n", 421, NULL);
    check(s, "GET /hello HTTP/1.1\r\nHost: \r\n\r\n", 421, NULL);
    check(s, "GET /hello HTTP/1.1\r\nHost: LOCALHOST:99\r\n\r\n", 200, NULL);
    check(s, "GET /hello HTTP/1.1\r\nHost: [::1]:99\r\n\r\n", 200, NULL);
    check(s, "GET /hello HTTP/1.1\r\nHost: gpu.example:8080\r\n\r\n", 200, NULL);
    check(s, "GET /hello HTTP/1.0\r\n\r\n", 200, NULL);
    check(s, "GET /hello HTTP/1.1\r\n\r\n", 400, "invalid_header");
    check(s, GET "Origin: https://evil.example\r\n\r\n", 403, "origin_not_allowed");
    check(s, GET "Origin: null\r\n\r\n", 403, NULL);
    check(s, GET "Sec-Fetch-Site: cross-site\r\n\r\n", 403, NULL);
    check(s, GET "Origin: https://ok.example\r\n\r\n", 200, NULL);
    check(s, GET "Origin: http://localhost\r\n\r\n", 200, NULL);
    check(s, GET "Sec-Fetch-Site: same-origin\r\n\r\n", 200, NULL);
}

Test(server_guard, checks_types_codings_and_expectations)
{
    struct server *s = start_server((struct server_options){.loops = 1});

    check(s, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415,
          "unsupported_media_type");
    check(s, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 415, NULL);
    check(s, "POST /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, NULL);
    check(s, "PUT /sink/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 415, NULL);
    check(s, "POST /either/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415, NULL);
    check(s, POST "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415, NULL);
    check(s, POST "Content-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}", 200, NULL);
    check(s, POST "Expect: magic\r\nContent-Length: 2\r\n\r\n{}", 417, "expectation_failed");
    check(s, "POST /source HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/x-cuda\r\nContent-Length: 2\r\n\r\n//", 200, NULL);
}

Test(server_guard, bounds_the_header)
{
    struct server *s = start_server((struct server_options){.loops = 1});
    char          *text = calloc(1, 64 * 1024);
    size_t         at;

    at = (size_t)sprintf(text, "GET /");
    memset(text + at, 'a', 9000);
    strcpy(text + at + 9000, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    check(s, text, 414, "uri_too_long");
    at = (size_t)sprintf(text, GET);
    for (int i = 0; i < REQUEST_HEADERS_MAX; i++)
        at += (size_t)sprintf(text + at, "X-%d: 1\r\n", i);
    strcpy(text + at, "\r\n");
    check(s, text, 431, "headers_too_large");
    free(text);
}

static void token_file(char *path, const char *expires)
{
    struct sha256 h;
    unsigned char digest[SHA256_BYTES];
    char          hex[SHA256_HEX_BYTES];
    FILE         *file = fdopen(mkstemp(path), "w");

    digest_init(&h);
    digest_add(&h, "secret", 6);
    digest_end(&h, digest);
    digest_hex(digest, hex);
    fprintf(file, "{\"tokens\":[{\"name\":\"alice\",\"sha256\":\"%s\",\"scopes\":[\"read\"]%s}]}", hex, expires);
    fclose(file);
}

Test(server_guard, authenticates_before_it_routes_and_authorises_after)
{
    char           path[] = "/tmp/http_tokens_XXXXXX";
    struct server *s;

    token_file(path, "");
    s = start_server((struct server_options){.loops = 1, .tokens = path});
    check(s, GET "\r\n", 401, "unauthenticated");
    check(s, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 401, NULL);
    check(s, GET "Authorization: Bearer wrong\r\n\r\n", 401, NULL);
    check(s, GET "Authorization: Basic secret\r\n\r\n", 401, NULL);
    check(s, GET "Authorization: bearer secret\r\n\r\n", 200, "alice");
    check(s, "GET /nothing HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n", 404, NULL);
    check(s, "GET /admin HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n", 403, "insufficient_scope");
    check(s, "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "anonymous");
    check(s, "GET /open HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n\r\n", 200, "alice");
    check(s, "GET /open HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n", 200, "anonymous");
    stop_server();
    unlink(path);
}

static void check_waits(const struct answer *a, const char *code)
{
    cr_assert_eq(a->status, 429);
    cr_assert_not_null(strstr(a->body.data, code), "%s", a->body.data);
    cr_assert(answer_header(a, "Retry-After").bytes && !span_is(answer_header(a, "Retry-After"), "0"));
}

Test(server_guard, limits_the_rate_of_a_caller)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1, .requests_per_s = 3}));
    unsigned      taken = 0, refused_ones = 0;

    while (taken + refused_ones < 12) {
        taken += client_get(&c, "/hello") == 200;
        if (c.answer.status != 200) {
            check_waits(&c.answer, "requests_per_s");
            refused_ones++;
        }
    }
    cr_assert_geq(taken, 3);
    cr_assert_geq(refused_ones, 1);
    cr_assert_eq(client_get(&c, "/open"), 200, "what is open to everyone is not counted");
    while (client_get(&c, "/nothing") != 429) { /* requests without a route count, too */
        cr_assert_eq(c.answer.status, 404);
    }
    client_close(&c);
}

static unsigned get_with(struct server *s, const char *token, struct client *c)
{
    *c = client_connect(s);
    client_text(c, GET "Authorization: Bearer %s\r\n\r\n", token);
    return client_read(c);
}

Test(server_guard, an_address_that_guesses_tokens_is_refused_and_its_known_callers_are_not)
{
    char           path[] = "/tmp/http_tokens_XXXXXX";
    struct server *s;
    struct client  c;
    unsigned       guesses = 0;

    token_file(path, "");
    s = start_server((struct server_options){.loops = 2, .tokens = path, .token_failures = 5});
    check(s, GET "Authorization: Bearer secret\r\n\r\n", 200, "alice");
    for (; get_with(s, "wrong", &c) == 401; guesses++)
        client_close(&c);
    cr_assert_geq(guesses, 5);
    check_waits(&c.answer, "rate_limited");
    client_close(&c);
    check(s, GET "Authorization: Bearer secret\r\n\r\n", 200, "alice");
    check(s, GET "\r\n", 401, "unauthenticated"); /* a missing token does not count as a wrong one */
    check(s, "GET /open HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n", 200, "anonymous");
    stop_server();
    unlink(path);
}
