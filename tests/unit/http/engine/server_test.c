/* The server as a client sees it: answers, bodies, waiting, keep-alive. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit/http/engine/server_fixture.h"

TestSuite(server, .fini = stop_server);

Test(server, chooses_its_loops_by_the_cpus)
{
    static const unsigned expected[][2] = {{1, 2}, {2, 2}, {4, 2}, {6, 3}, {8, 4}, {16, 8}, {32, 8}, {65536, 8}};

    for (size_t i = 0; i < COUNT(expected); i++)
        cr_assert_eq(server_loops_for(expected[i][0]), expected[i][1], "%u CPUs", expected[i][0]);
}

static char *pattern(size_t bytes)
{
    char *text = malloc(bytes + 1);

    for (size_t i = 0; i < bytes; i++)
        text[i] = (char)(i * 13 >> 2);
    return text;
}

static char *summed(const char *text, size_t bytes)
{
    uint64_t    sum = 0;
    static char out[64];

    for (size_t i = 0; i < bytes; i++)
        sum = sum * 31 + (unsigned char)text[i];
    snprintf(out, sizeof out, "%zu %llu", bytes, (unsigned long long)sum);
    return out;
}

static void expect(struct client *c, const char *path, unsigned status, const char *body)
{
    cr_assert_eq(client_get(c, path), status, "%s", path);
    if (body)
        cr_assert(span_starts(c->answer.body, body), "%s: %s", path, c->answer.body.data);
}

Test(server, keeps_the_connection_through_every_kind_of_answer)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1}));

    for (int round = 0; round < 2; round++) {
        expect(&c, "/hello", 200, "anonymous");
        expect(&c, "/woken", 200, "woken");
        expect(&c, "/woken-executor", 200, "woken");
        expect(&c, "/timer", 200, "timer");
        expect(&c, "/timer-executor", 200, "timer");
        expect(&c, "/nothing", 404, NULL);
        expect(&c, "/silent", 500, NULL);
        expect(&c, "/fails", 422, "{\"type\":\"/problems/argument_mismatch\"");
        expect(&c, "/too-much", 503, "{\"type\":\"/problems/out_of_memory\"");
        expect(&c, "/hello?x=1%2F2", 200, "anonymous");
    }
    client_close(&c);
    stop_server();
    cr_assert_eq(counters.begins, counters.finishes);
    cr_assert_eq(counters.problems, 8);
}

Test(server, echoes_json_and_headers)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 2}));

    for (int i = 0; i < 2; i++) {
        client_text(&c,
                    "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-Id: abc.1_2-3\r\nContent-Type: application/json; charset=utf-8\r\n"
                    "Content-Length: 7\r\n\r\n{\"a\":1}",
                    i ? "/executor" : "/echo");
        cr_assert_eq(client_read(&c), 200);
        cr_assert(span_is(c.answer.body, "{\"a\":1}"));
        cr_assert(span_is(answer_header(&c.answer, "X-Request-Id"), "abc.1_2-3"));
        cr_assert(span_is(answer_header(&c.answer, "X-Content-Type-Options"), "nosniff"));
        cr_assert(span_is(answer_header(&c.answer, "Cache-Control"), "no-store"));
        cr_assert(span_is(answer_header(&c.answer, "Content-Type"), "application/json"));
    }
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost:1\r\nX-Request-Id: a b\r\n\r\n");
    cr_assert(client_read(&c));
    cr_assert_eq(answer_header(&c.answer, "X-Request-Id").bytes, 22);
    client_close(&c);
}

Test(server, answers_a_client_that_has_finished_sending)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1}));

    client_text(&c, "PUT /sink/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
    shutdown(c.fd, SHUT_WR);
    cr_assert_eq(client_read(&c), 200);
    cr_assert(client_at_end(&c));
    client_close(&c);
}

Test(server, answers_head_delete_and_wrong_methods)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1}));

    client_text(&c, "HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert_eq(client_read_head(&c), 200);
    cr_assert(span_is(answer_header(&c.answer, "Content-Length"), "9"));
    client_text(&c, "HEAD /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert(client_read_head(&c));
    cr_assert(span_is(answer_header(&c.answer, "Content-Length"), "8388608"));
    client_text(&c, "DELETE /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert_eq(client_read(&c), 204);
    for (int i = 0; i < 2; i++) {
        client_text(&c, "%s /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", i ? "TRACE" : "PATCH");
        cr_assert_eq(client_read(&c), 405);
        cr_assert(span_is(answer_header(&c.answer, "Allow"), "GET, HEAD, DELETE"));
    }
    expect(&c, "/hello", 200, NULL);
    client_close(&c);
    stop_server();
    cr_assert_eq(counters.sources, counters.closes);
}

Test(server, answers_pipelined_requests_in_order)
{
    struct client            c = client_connect(start_server((struct server_options){.loops = 1}));
    static const char *const bodies[] = {"woken", "[1]", "anonymous", "woken", "timer"};

    client_text(&c, "GET /woken HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    "POST /executor HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n[1]"
                    "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\nGET /woken-executor HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    "GET /timer HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for (size_t i = 0; i < COUNT(bodies); i++) {
        cr_assert(client_read(&c), "%zu", i);
        cr_assert(span_is(c.answer.body, bodies[i]), "%zu: %s", i, c.answer.body.data);
    }
    client_close(&c);
}

Test(server, streams_a_body_through_a_sink_that_waits)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1}));
    size_t        most = 3 * 1024 * 1024 + 17;
    char         *text = pattern(most);

    for (int i = 0; i < 4; i++) {
        size_t bytes = i < 2 ? most : SMALL_BODY_BYTES_MAX; /* which is held, and given to the sink on the executor */

        client_text(&c, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n",
                    i % 2 ? "POST /either/x" : "PUT /sink/x", bytes);
        client_send(&c, (struct span){text, bytes});
        cr_assert(client_read(&c));
        cr_assert(span_is(c.answer.body, summed(text, bytes)), "%s", c.answer.body.data);
    }
    client_text(&c,
                "PUT /sink/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n");
    cr_assert(client_read(&c));
    cr_assert(span_is(c.answer.body, summed("hello world", 11)));
    client_text(&c, "PUT /sink/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    cr_assert(client_read(&c));
    cr_assert(span_is(c.answer.body, "0 0"));
    client_close(&c);
    free(text);
    stop_server();
    cr_assert_eq(counters.sinks, 6);
    cr_assert_eq(counters.sinks_handled, 6);
    cr_assert_eq(counters.aborts, 0);
    cr_assert_eq(counters.finishes, 6);
}

Test(server, a_sink_that_fails_drops_the_rest_and_answers)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1}));
    size_t        bytes = 2 * 1024 * 1024;
    char         *text = pattern(bytes);

    client_text(&c, "PUT /sink/refuses HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", bytes);
    client_send(&c, (struct span){text, bytes});
    cr_assert_eq(client_read(&c), 507);
    expect(&c, "/hello", 200, NULL);
    client_close(&c);
    free(text);
    stop_server();
    cr_assert_eq(counters.aborts, 1);
    cr_assert_eq(counters.sinks_handled, 0);
}

Test(server, refuses_before_the_body_and_sends_100_only_when_it_accepts)
{
    struct server *s = start_server((struct server_options){.loops = 1});
    struct client  c = client_connect(s);

    client_text(&c, "PUT /sink/x HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    cr_assert_eq(client_read(&c), 100);
    client_text(&c, "hello");
    cr_assert_eq(client_read(&c), 200);
    client_text(&c, "PUT /sink/early HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    cr_assert_eq(client_read(&c), 404);
    cr_assert(client_at_end(&c));
    client_close(&c);
    c = client_connect(s);
    client_text(&c, "PUT /sink/early HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
    cr_assert_eq(client_read(&c), 404);
    expect(&c, "/hello", 200, NULL); /* a small refused body does not end the connection */
    client_close(&c);
}

Test(server, a_large_refused_upload_still_gets_its_answer)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1}));
    size_t        bytes = 900 * 1024;
    char         *text = pattern(bytes);

    client_text(&c, "PUT /sink/early HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", bytes);
    client_send(&c, (struct span){text, bytes});
    cr_assert_eq(client_read(&c), 404);
    cr_assert(client_at_end(&c));
    client_close(&c);
    free(text);
}

Test(server, limits_collected_bodies)
{
    struct server *s = start_server((struct server_options){.loops = 1});
    size_t         bytes = 1024 * 1024 + 1;
    char          *text = pattern(bytes);
    struct client  c = client_connect(s);

    client_text(&c, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", bytes);
    cr_assert_eq(client_read(&c), 413);
    cr_assert_not_null(strstr(c.answer.body.data, "\"limit\":{\"name\":\"json_body_bytes\",\"max\":1048576"));
    client_close(&c);
    c = client_connect(s);
    client_text(&c, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n",
                bytes);
    client_send(&c, (struct span){text, bytes});
    client_text(&c, "\r\n0\r\n\r\n");
    cr_assert_eq(client_read(&c), 413);
    client_text(&c, "GET /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nxx");
    cr_assert_eq(client_read(&c), 413);
    client_close(&c);
    free(text);
}

Test(server, gives_a_large_body_from_a_source_that_waits)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1}));

    for (int round = 0; round < 2; round++) {
        cr_assert_eq(client_get(&c, "/big"), 200);
        cr_assert_eq(c.answer.body.bytes, BIG_BYTES);
        cr_assert(span_is(answer_header(&c.answer, "ETag"), "\"1.2\""));
        for (size_t i = 0, start = 0; i < BIG_BYTES; i++, start = i)
            cr_assert_eq(c.answer.body.data[i], (char)(start * 7 >> 3), "byte %zu", i);
    }
    cr_assert_eq(client_get(&c, "/large"), 200);
    cr_assert_eq(c.answer.body.bytes, LARGE_BYTES);
    cr_assert_eq(c.answer.body.data[LARGE_BYTES - 1], 'a' + (LARGE_BYTES - 1) % 23);
    expect(&c, "/hello", 200, NULL);
    cr_assert_eq(client_get(&c, "/broken"), 0); /* the connection ends in the middle */
    client_close(&c);
    stop_server();
    cr_assert_eq(counters.sources, 3);
    cr_assert_eq(counters.closes, 3);
}

/* With exactly 128 ready events in one turn the library's own loop waits before it serves them. The loop is held until all have arrived. */
Test(server, answers_128_connections_that_are_ready_at_once)
{
    struct server *s = start_server((struct server_options){.loops = 1});
    struct client  blocking = client_connect(s), c[128];

    for (size_t i = 0; i < COUNT(c); i++) {
        c[i] = client_connect(s);
        expect(&c[i], "/hello", 200, NULL);
    }
    client_text(&blocking, "GET /blocks-loop HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert(reaches(&counters.running, 1));
    for (size_t i = 0; i < COUNT(c); i++)
        client_text(&c[i], "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    open_gate();
    for (size_t i = 0; i < COUNT(c); i++) {
        cr_assert(client_read(&c[i]));
        client_close(&c[i]);
    }
    client_close(&blocking);
    stop_server();
    cr_assert_eq(counters.begins, 256);
    cr_assert_eq(counters.finishes, 256);
}

Test(server, executor_runs_many_at_once)
{
    struct server *s = start_server((struct server_options){.loops = 2});
    struct client  c[16];

    for (size_t i = 0; i < COUNT(c); i++) {
        c[i] = client_connect(s);
        client_text(&c[i], "GET /blocks HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    cr_assert(reaches(&counters.running, COUNT(c)));
    cr_assert_eq(server_in_flight(s), COUNT(c));
    open_gate();
    for (size_t i = 0; i < COUNT(c); i++) {
        cr_assert(client_read(&c[i]));
        cr_assert(span_is(c[i].answer.body, "unblocked"));
        client_close(&c[i]);
    }
}

Test(server, limits_requests_in_flight_of_a_caller)
{
    struct server *s = start_server((struct server_options){.loops = 1});
    struct client  c[REQUESTS_IN_FLIGHT_PER_CALLER_MAX], last = client_connect(s);

    for (size_t i = 0; i < COUNT(c); i++) {
        c[i] = client_connect(s);
        client_text(&c[i], "GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    cr_assert(reaches(&counters.waiting, COUNT(c)));
    cr_assert_eq(client_get(&last, "/hello"), 429);
    cr_assert_neq(answer_header(&last.answer, "Retry-After").bytes, 0);
    expect(&last, "/open", 200, "anonymous");
    for (size_t i = 0; i < COUNT(c); i++)
        client_close(&c[i]);
    cr_assert(reaches(&counters.waiting, 0));
    expect(&last, "/hello", 200, NULL);
    client_close(&last);
}

Test(server, serves_a_unix_socket_with_any_host)
{
    char               path[] = "/tmp/http_test_XXXXXX";
    char               address[128];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct client      c = {.fd = socket(AF_UNIX, SOCK_STREAM, 0)};
    struct server     *s;

    cr_assert_not_null(mkdtemp(path));
    snprintf(address, sizeof address, "unix:%s/s", path);
    snprintf(a.sun_path, sizeof a.sun_path, "%s/s", path);
    s = start_server((struct server_options){.loops = 2, .unix_path = address});
    cr_assert_str_eq(server_address(s, 1), address);
    cr_assert_eq(connect(c.fd, (struct sockaddr *)&a, sizeof a), 0);
    for (int i = 0; i < 3; i++) {
        client_text(&c, "GET /woken-executor HTTP/1.1\r\nHost: whatever\r\n\r\n");
        cr_assert_eq(client_read(&c), 200);
    }
    client_close(&c);
    stop_server();
    cr_assert_neq(access(a.sun_path, F_OK), 0);
    rmdir(path);
}
