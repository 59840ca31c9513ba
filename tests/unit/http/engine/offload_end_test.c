/* Every way in which a long body may end early: the client leaves or stalls, the server quiesces or is destroyed. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/deadline.h"
#include "unit/http/engine/memory_endpoints.h"
#include "unit/http/engine/server_fixture.h"

TestSuite(offload_end, .fini = stop_server);

enum { BODY_BYTES = 4 * 1024 * 1024, HALF_BYTES = BODY_BYTES / 2, DOWN_BYTES = 32 * 1024 * 1024 };

static char half[HALF_BYTES];

static void put_half(struct client *c, const char *id)
{
    client_text(c, "PUT /memory/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", id, BODY_BYTES);
    client_send(c, (struct span){half, HALF_BYTES});
}

/* With buffers so small that the server's send buffer and ours are full long before the end. */
static struct client start_download(struct server *s, const char *id)
{
    struct client c = client_connect(s);
    int           bytes = 4096;

    setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    client_text(&c, "GET /memory/%s HTTP/1.1\r\nHost: localhost\r\n\r\n", id);
    return c;
}

Test(offload_end, aborts_the_sink_of_a_client_that_leaves)
{
    static const char *const ids[] = {"x", "holds"};
    struct server           *s = start_server((struct server_options){.io_threads = 2});

    for (unsigned i = 0; i < COUNT(ids); i++) {
        struct client c = client_connect(s);

        put_half(&c, ids[i]);
        cr_assert(reaches(&memory_counters.receiving, i + 1));
        cr_assert(i == 0 || reaches(&memory_counters.held, 1));
        /* With a reset: nothing else of a client can be noticed while its bytes are not read. */
        setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
        client_close(&c);
        cr_assert(reaches(&counters.aborts, i + 1));
        cr_assert(reaches(&counters.finishes, i + 1));
    }
    stop_server();
    cr_assert_eq(counters.sinks_handled, 0);
}

Test(offload_end, closes_the_source_of_a_client_that_leaves)
{
    struct server *s = start_server((struct server_options){.io_threads = 1});
    struct client  c = start_download(s, "100000000");

    cr_assert(reaches(&counters.sources, 1));
    cr_assert(recv(c.fd, half, 1, 0) == 1);
    client_close(&c);
    cr_assert(reaches(&counters.closes, 1));
}

Test(offload_end, a_client_that_stalls_is_ended)
{
    struct server *s = start_server((struct server_options){.io_threads = 2, .body_stall_s = 1});
    struct client  up = client_connect(s), down = start_download(s, "100000000");

    put_half(&up, "x");
    cr_assert_eq(client_read(&up), 408);
    cr_assert(span_is(answer_header(&up.answer, "Connection"), "close"));
    cr_assert(client_at_end(&up));
    cr_assert(reaches(&counters.closes, 1));
    client_close(&up);
    client_close(&down);
    stop_server();
    cr_assert_eq(counters.aborts, 1);
}

Test(offload_end, a_client_that_drips_is_ended)
{
    struct client c = client_connect(start_server((struct server_options){.io_threads = 1, .body_bytes_per_s = 1000 * 1000 * 1000}));
    uint64_t      deadline = deadline_after_ms(15000);
    char          byte;

    put_half(&c, "x");
    while (recv(c.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && deadline_left_ns(deadline)) {
        client_text(&c, "a");
        poll(NULL, 0, 20);
    }
    cr_assert(deadline_left_ns(deadline), "it is cut off while it sends");
    cr_assert_eq(client_read(&c), 408);
    client_close(&c);
    stop_server();
    cr_assert_eq(counters.aborts, 1);
}

/* Tiny occasional reads do not keep an answer going. */
static void download_in_drips(unsigned io_threads)
{
    struct server *s = start_server((struct server_options){.io_threads = io_threads, .answer_bytes_per_s = 100 * 1000 * 1000});
    struct client  c = start_download(s, "1000000000");
    uint64_t       deadline = deadline_after_ms(20000);
    char           piece[64];

    cr_assert(reaches(&counters.sources, 1));
    while (atomic_load(&counters.closes) == 0 && deadline_left_ns(deadline)) {
        cr_assert(recv(c.fd, piece, sizeof piece, 0) > 0);
        poll(NULL, 0, 20);
    }
    cr_assert(atomic_load(&counters.closes) == 1, "it goes on for as long as it likes");
    client_close(&c);
    stop_server();
}

Test(offload_end, a_client_that_reads_in_drips_is_ended)
{
    download_in_drips(0);
}

Test(offload_end, a_client_that_reads_in_drips_from_an_io_thread_is_ended)
{
    download_in_drips(1);
}

Test(offload_end, a_client_that_reads_fast_enough_on_the_whole_is_not)
{
    for (unsigned io_threads = 0; io_threads < 2; io_threads++) {
        struct server *s = start_server((struct server_options){.io_threads = io_threads, .answer_bytes_per_s = 1});
        struct client  c = start_download(s, "100000000");
        char           piece[64];

        cr_assert(reaches(&counters.sources, 1 + io_threads));
        for (int i = 0; i < 40; i++) { /* longer than the time of grace */
            cr_assert(recv(c.fd, piece, sizeof piece, 0) > 0);
            poll(NULL, 0, 50);
        }
        cr_assert_eq(atomic_load(&counters.closes), io_threads);
        client_close(&c);
        cr_assert(reaches(&counters.closes, 1 + io_threads));
        stop_server();
    }
}

Test(offload_end, a_sink_without_room_is_no_stall)
{
    struct server *s = start_server((struct server_options){.io_threads = 1, .body_stall_s = 1});
    struct client  c = client_connect(s), other = client_connect(s);

    put_half(&c, "holds");
    cr_assert(reaches(&memory_counters.held, 1));
    client_text(&other, "PUT /sink/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
    cr_assert_eq(client_read(&other), 408); /* one more stall time later */
    cr_assert(reaches(&counters.finishes, 1));
    cr_assert_eq(counters.aborts, 1);
    client_close(&other);
    client_close(&c);
    stop_server();
    cr_assert_eq(counters.aborts, 2);
}

Test(offload_end, quiesce_lets_it_finish)
{
    struct server *s = start_server((struct server_options){.io_threads = 2});
    struct client  up = client_connect(s), down = client_connect(s);

    client_text(&down, "GET /memory/%d HTTP/1.1\r\nHost: localhost\r\n\r\n", DOWN_BYTES);
    put_half(&up, "x");
    cr_assert(reaches(&memory_counters.receiving, 1));
    cr_assert(reaches(&counters.sources, 1));
    server_quiesce(s);
    client_send(&up, (struct span){half, HALF_BYTES});
    cr_assert_eq(client_read(&up), 200);
    cr_assert(span_is(answer_header(&up.answer, "Connection"), "close"));
    cr_assert(client_at_end(&up));
    cr_assert(client_read(&down));
    cr_assert_eq(down.answer.body.bytes, DOWN_BYTES);
    client_close(&up);
    client_close(&down);
    cr_assert(reaches(&counters.closes, 1));
    stop_server();
    cr_assert_eq(counters.aborts, 0);
}

Test(offload_end, destroy_cuts_it_in_every_state)
{
    struct server *s = start_server((struct server_options){.loops = 2, .io_threads = 6});
    struct client  c[8];

    for (unsigned i = 0; i < 4; i++) {
        c[i] = client_connect(s);
        put_half(&c[i], i < 2 ? "x" : "holds");
        c[4 + i] = start_download(s, "100000000");
    }
    cr_assert(reaches(&counters.sinks, 4));
    cr_assert(reaches(&counters.sources, 4));
    stop_server();
    cr_assert_eq(counters.aborts, 4);
    cr_assert_eq(counters.finishes, 4);
    cr_assert_eq(counters.closes, 4);
    for (unsigned i = 0; i < COUNT(c); i++)
        client_close(&c[i]);
}

/* Connections that returned from an offload, idle and in the next request. */
Test(offload_end, destroy_after_it_finds_the_connections_that_came_back)
{
    struct server *s = start_server((struct server_options){.loops = 2, .io_threads = 2});
    struct client  c[4];

    for (unsigned i = 0; i < COUNT(c); i++) {
        c[i] = client_connect(s);
        put_half(&c[i], "x");
        client_send(&c[i], (struct span){half, HALF_BYTES});
        cr_assert_eq(client_read(&c[i]), 200);
        if (i % 2)
            put_half(&c[i], "x");
    }
    cr_assert(reaches(&counters.sinks, 6));
    stop_server();
    cr_assert_eq(counters.finishes, 6);
    cr_assert_eq(counters.aborts, 2);
    for (unsigned i = 0; i < COUNT(c); i++)
        client_close(&c[i]);
}
