/* Every way in which a request or the server may end: hang-ups, slow clients, quiesce, destroy. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/deadline.h"
#include "http/bounds.h"
#include "unit/http/engine/server_fixture.h"

TestSuite(server_end, .fini = stop_server);

Test(server_end, notices_a_client_that_leaves_while_it_waits)
{
    static const char *const paths[] = {"/never", "/never-executor"};
    struct server           *s = start_server((struct server_options){.loops = 1});

    for (size_t i = 0; i < COUNT(paths); i++) {
        struct client c = client_connect(s);

        client_text(&c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", paths[i]);
        cr_assert(reaches(&counters.waiting, 1));
        client_close(&c);
        cr_assert(reaches(&counters.waiting, 0));
        cr_assert_eq(counters.saw_gone, i + 1);
        cr_assert_eq(counters.finishes, i + 1);
    }
}

Test(server_end, aborts_the_sink_of_a_client_that_leaves_in_its_body)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1}));

    client_text(&c, "PUT /sink/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nsome bytes");
    cr_assert(reaches(&counters.sinks, 1));
    client_close(&c);
    cr_assert(reaches(&counters.aborts, 1));
    cr_assert(reaches(&counters.finishes, 1));
    cr_assert_eq(counters.sinks_handled, 0);
    stop_server();
    cr_assert_eq(counters.aborts, 1);
}

Test(server_end, closes_the_source_of_a_client_that_leaves_in_the_answer)
{
    struct client c = client_connect(start_server((struct server_options){.loops = 1}));

    client_text(&c, "GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert(reaches(&counters.sources, 1));
    client_close(&c);
    cr_assert(reaches(&counters.closes, 1));
    stop_server();
    cr_assert_eq(counters.closes, 1);
}

Test(server_end, ends_slow_headers_bodies_and_idle_connections)
{
    struct server *s = start_server((struct server_options){.loops = 1, .header_deadline_s = 1, .body_stall_s = 1, .idle_s = 1});
    struct client  quiet = client_connect(s), line = client_connect(s), body = client_connect(s), idle = client_connect(s);

    client_text(&line, "GET /hello HTTP/1.1\r\nHost: loc");
    client_text(&body, "PUT /sink/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
    cr_assert_eq(client_get(&idle, "/hello"), 200);
    cr_assert(client_at_end(&quiet));
    cr_assert_eq(client_read(&line), 408);
    cr_assert(client_at_end(&line));
    cr_assert_eq(client_read(&body), 408);
    cr_assert(span_is(answer_header(&body.answer, "Content-Type"), "application/problem+json"));
    cr_assert(span_is(answer_header(&body.answer, "Connection"), "close"));
    cr_assert(span_is(answer_header(&body.answer, "Cache-Control"), "no-store"));
    cr_assert_not_null(answer_header(&body.answer, "X-Request-Id").data);
    cr_assert_not_null(answer_header(&body.answer, "Date").data);
    cr_assert(client_at_end(&body));
    cr_assert(client_at_end(&idle));
    client_close(&quiet);
    client_close(&line);
    client_close(&body);
    client_close(&idle);
    cr_assert(reaches(&counters.aborts, 1));
}

Test(server_end, a_header_that_drips_is_ended_too)
{
    struct client  c = client_connect(start_server((struct server_options){.loops = 1, .header_deadline_s = 1}));
    struct timeval pause = {0, 100000};
    uint64_t       deadline = deadline_after_ms(15000);
    bool           ended = false;

    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof pause);
    client_text(&c, "GET /hello HTTP/1.1\r\nX: ");
    while (!ended && deadline_left_ns(deadline)) {
        char byte;
        client_text(&c, "a");
        ended = recv(c.fd, &byte, 1, 0) >= 0;
    }
    cr_assert(ended);
    client_close(&c);
}

/* An occasional byte does not keep a connection open; a client that is fast enough is not cut off, however long it takes. */
Test(server_end, a_body_that_drips_is_ended_and_one_that_flows_is_not)
{
    struct server *s = start_server((struct server_options){.loops = 1, .body_bytes_per_s = 1000});
    struct client  slow = client_connect(s), fast = client_connect(s);
    uint64_t       deadline = deadline_after_ms(15000), sent = 0;
    char           piece[500] = {0};
    char           byte;

    client_text(&slow, "PUT /sink/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
    client_text(&fast, "PUT /sink/y HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
    while (recv(slow.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && deadline_left_ns(deadline)) {
        client_text(&slow, "a");
        client_send(&fast, (struct span){piece, sizeof piece});
        sent += sizeof piece;
        poll(NULL, 0, 50);
    }
    cr_assert(deadline_left_ns(deadline), "it is cut off while it sends");
    cr_assert_eq(client_read(&slow), 408);
    cr_assert(client_at_end(&slow));
    for (; sent < 1000000; sent += sizeof piece)
        client_send(&fast, (struct span){piece, sizeof piece});
    cr_assert_eq(client_read(&fast), 200);
    client_close(&slow);
    client_close(&fast);
}

/* Connections without a request in progress make room, the one silent longest first. */
Test(server_end, limits_connections_of_one_address)
{
    struct server *s = start_server((struct server_options){.loops = 1, .per_address = 2});
    struct client  c[3];

    for (size_t i = 0; i < COUNT(c); i++) {
        c[i] = client_connect(s);
        cr_assert_eq(client_get(&c[i], "/hello"), 200);
    }
    cr_assert(client_at_end(&c[0]));
    cr_assert_eq(client_get(&c[1], "/hello"), 200);
    for (size_t i = 0; i < COUNT(c); i++)
        client_close(&c[i]);
}

/* While all connections are busy, new ones are refused, except a probe. */
Test(server_end, connections_at_work_make_no_room)
{
    struct server *s = start_server((struct server_options){.loops = 2, .per_address = 2});
    struct client  c[2], third = {0}, silent[CONNECTIONS_RESERVED + 8];

    for (size_t i = 0; i < COUNT(c); i++) {
        c[i] = client_connect(s);
        client_text(&c[i], "GET /blocks HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    cr_assert(reaches(&counters.running, 2));
    for (size_t i = 0; i < COUNT(silent); i++)
        silent[i] = client_connect(s);
    for (unsigned i = 0; i < 3; i++) {
        third = client_connect(s);
        cr_assert_eq(client_get(&third, "/probe"), 200);
        cr_assert_eq(client_get(&third, "/hello"), 503);
        cr_assert(client_at_end(&third));
        client_close(&third);
    }
    open_gate();
    for (size_t i = 0; i < COUNT(c); i++) {
        cr_assert(client_read(&c[i]));
        cr_assert(span_is(c[i].answer.body, "unblocked"));
        client_close(&c[i]);
    }
    for (size_t i = 0; i < COUNT(silent); i++)
        client_close(&silent[i]);
}

Test(server_end, quiesce_finishes_what_is_under_way)
{
    struct server *s = start_server((struct server_options){.loops = 2});
    struct client  c = client_connect(s);

    client_text(&c, "GET /blocks HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert(reaches(&counters.running, 1));
    server_quiesce(s);
    open_gate();
    cr_assert(client_read(&c));
    cr_assert(span_is(c.answer.body, "unblocked"));
    cr_assert(span_is(answer_header(&c.answer, "Connection"), "close"));
    cr_assert(client_at_end(&c));
    client_close(&c);
}

/* All handlers have ended before the loop gets their results. */
Test(server_end, what_handlers_say_last_is_sent)
{
    struct server *s = start_server((struct server_options){.loops = 1});
    struct client  late = client_connect(s), c = client_connect(s);

    client_text(&c, "GET /blocks HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert(reaches(&counters.running, 1));
    client_text(&late, "GET /lags-loop HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert(reaches(&counters.running, 2));
    open_gate();
    stop_server();
    cr_assert(client_read(&c));
    cr_assert(span_is(c.answer.body, "unblocked"));
    cr_assert(client_read(&late));
    cr_assert(span_is(late.answer.body, "unblocked"));
    client_close(&c);
    client_close(&late);
}

/* Suspended in every way, idle, and in the middle of a body: nothing leaks or aborts, and all threads end. */
Test(server_end, destroy_cuts_everything_that_waits)
{
    static const char *const texts[] = {
        "GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /never-executor HTTP/1.1\r\nHost: localhost\r\n\r\nGET /never HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /blocks HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "PUT /sink/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nsome",
        "GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /hel",
        "",
    };
    struct server *s = start_server((struct server_options){.loops = 2});
    struct client  c[3 * COUNT(texts)];

    for (size_t i = 0; i < COUNT(c); i++) {
        c[i] = client_connect(s);
        client_text(&c[i], "%s", texts[i % COUNT(texts)]);
    }
    cr_assert(reaches(&counters.waiting, 6));
    cr_assert(reaches(&counters.running, 3));
    cr_assert(reaches(&counters.sources, 3));
    cr_assert(reaches(&counters.sinks, 3));
    open_gate();
    stop_server();
    cr_assert_eq(counters.waiting, 0);
    cr_assert_eq(counters.closes, 3);
    cr_assert_eq(counters.aborts, 3);
    for (size_t i = 0; i < COUNT(c); i++)
        client_close(&c[i]);
}

Test(server_end, the_loops_turn_and_bad_addresses_are_refused)
{
    struct server       *s = start_server((struct server_options){.loops = 2}), *other = NULL;
    uint64_t             first = server_last_turn_ns(s), deadline = deadline_after_ms(15000);
    struct problem       why;
    struct auth         *auth = NULL;
    const char          *address = server_address(s, 0);
    struct server_config config = {
        .listen = &address, .listen_count = 1, .loop_threads = 1, .connections_max = 1, .connections_per_address_max = 1};
    static const char *const bad[] = {"", "localhost", "1.2.3.4", "127.0.0.1:99999", "[::1:80", "unix:", "127.0.0.1:x"};

    while (server_last_turn_ns(s) == first && deadline_left_ns(deadline))
        ;
    cr_assert_gt(server_last_turn_ns(s), first);
    cr_assert_eq(auth_create(&auth, NULL, &why), STATUS_OK);
    config.auth = auth;
    cr_assert_eq(server_create(&other, &config, &why), STATUS_INVALID_REQUEST); /* the port is in use */
    for (size_t i = 0; i < COUNT(bad); i++) {
        address = bad[i];
        cr_assert_eq(server_create(&other, &config, &why), STATUS_INVALID_REQUEST, "%s", bad[i]);
    }
    auth_destroy(auth);
}
