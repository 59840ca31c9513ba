/* Long bodies that bypass MHD: every size around the thresholds, requests before and after them on the connection, refusals. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "http/bounds.h"
#include "unit/http/engine/memory_endpoints.h"
#include "unit/http/engine/server_fixture.h"

TestSuite(offload, .fini = stop_server);

enum { LONG_BYTES = 3 * 1024 * 1024 + 17 };

static char *body_of(size_t bytes)
{
    char *data = malloc(bytes);

    for (size_t i = 0; i < bytes; i++)
        data[i] = memory_byte(i);
    return data;
}

static void put_header(struct client *c, const char *id, size_t bytes, const char *more)
{
    client_text(c, "PUT /memory/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n%s\r\n", id, bytes, more);
}

static void put(struct client *c, const char *id, size_t bytes)
{
    char *data = body_of(bytes);

    put_header(c, id, bytes, "");
    client_send(c, (struct span){data, bytes});
    free(data);
}

static void check_sum(const struct answer *a, size_t bytes)
{
    char *data = body_of(bytes), want[64];

    snprintf(want, sizeof want, "%zu %llu", bytes, (unsigned long long)memory_sum(0, data, bytes));
    cr_assert(span_is(a->body, want), "%s", a->buffer);
    free(data);
}

static void check_put(struct client *c, const char *id, size_t bytes)
{
    put(c, id, bytes);
    cr_assert_eq(client_read(c), 200, "%s", c->answer.buffer);
    check_sum(&c->answer, bytes);
    cr_assert(span_is(answer_header(&c->answer, "ETag"), "\"7\""));
    cr_assert(span_is(answer_header(&c->answer, "X-Content-Type-Options"), "nosniff"));
    cr_assert_not_null(answer_header(&c->answer, "Date").data);
    cr_assert_null(answer_header(&c->answer, "Connection").data);
}

static void check_bytes(const struct answer *a, size_t bytes)
{
    cr_assert_eq(a->status, 200);
    cr_assert_eq(a->body.bytes, bytes);
    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(a->buffer[i], memory_byte(i));
}

static void check_get(struct client *c, const char *id, size_t bytes)
{
    char path[64];

    snprintf(path, sizeof path, "/memory/%s", id);
    client_get(c, path);
    check_bytes(&c->answer, bytes);
    /* MHD never saw an offloaded body: the connection ends after it, and the answer says so. */
    cr_assert_eq(answer_header(&c->answer, "Connection").data != NULL, atomic_load(&memory_counters.lends) > 0);
}

static void check_hello(struct client *c)
{
    cr_assert_eq(client_get(c, "/hello"), 200);
}

/* True if `borrows` grew. */
static bool handed_off(atomic_uint *count)
{
    return atomic_exchange(count, 0) > 0;
}

static struct client connect_to(struct server *s, const char *unix_path)
{
    return unix_path ? client_connect_unix(unix_path) : client_connect(s);
}

/* unix_path NULL: over TCP. */
static void round_trips(struct server *s, const char *unix_path, bool hands_off)
{
    static const size_t up[] = {OFFLOAD_UPLOAD_BYTES_MIN - 1, OFFLOAD_UPLOAD_BYTES_MIN, OFFLOAD_UPLOAD_BYTES_MIN + 1, LONG_BYTES};
    static const size_t down[] = {1, OFFLOAD_DOWNLOAD_BYTES_MIN - 1, OFFLOAD_DOWNLOAD_BYTES_MIN, OFFLOAD_DOWNLOAD_BYTES_MIN + 1,
                                  LONG_BYTES};
    struct client       c = connect_to(s, unix_path);
    bool                handed;
    char                path[32];

    for (size_t i = 0; i < COUNT(up); i++) {
        check_put(&c, "x", up[i]);
        cr_assert_eq(handed_off(&memory_counters.borrows), hands_off && up[i] >= OFFLOAD_UPLOAD_BYTES_MIN);
        check_hello(&c);
    }
    for (size_t i = 0; i < COUNT(down); i++) {
        snprintf(path, sizeof path, "%zu", down[i]);
        check_get(&c, path, down[i]);
        handed = handed_off(&memory_counters.lends);
        cr_assert_eq(handed, hands_off && down[i] >= OFFLOAD_DOWNLOAD_BYTES_MIN);
        if (handed) {
            client_close(&c);
            c = connect_to(s, unix_path);
        }
        check_hello(&c);
    }
    client_close(&c);
    stop_server();
    cr_assert_eq(counters.finishes, 2 * COUNT(up) + COUNT(down));
    cr_assert_eq(counters.closes, COUNT(down));
    cr_assert_eq(counters.aborts, 0);
}

Test(offload, short_bodies_are_copied_to_and_from_memory_that_is_lent)
{
    static const size_t up[] = {1, SMALL_BODY_BYTES_MAX, SMALL_BODY_BYTES_MAX + 1, OFFLOAD_UPLOAD_BYTES_MIN - 1};
    struct client       c = client_connect(start_server((struct server_options){.loops = 1, .io_threads = 1}));

    for (size_t i = 0; i < COUNT(up); i++)
        check_put(&c, "lends", up[i]);
    client_get(&c, "/memory/lends");
    check_bytes(&c.answer, OFFLOAD_DOWNLOAD_BYTES_MIN - 1);
    cr_assert_null(answer_header(&c.answer, "Connection").data);
    client_close(&c);
    stop_server();
    cr_assert_eq(counters.closes, 1);
    cr_assert_eq(counters.aborts, 0);
}

Test(offload, sizes_around_the_thresholds_over_one_connection)
{
    round_trips(start_server((struct server_options){.io_threads = 2}), NULL, true);
}

Test(offload, sizes_around_the_thresholds_over_a_unix_socket)
{
    char           address[64];
    struct server *s;

    snprintf(address, sizeof address, "unix:/tmp/server-offload-%d.sock", (int)getpid());
    s = start_server((struct server_options){.io_threads = 2, .unix_path = address});
    round_trips(s, address + strlen("unix:"), true);
}

Test(offload, nothing_is_handed_off_without_threads_for_it)
{
    round_trips(start_server((struct server_options){.io_threads = 0}), NULL, false);
}

Test(offload, more_at_once_than_threads_are_served_by_the_loop)
{
    struct server *s = start_server((struct server_options){.io_threads = 1});
    struct client  first = client_connect(s), second = client_connect(s);
    char          *data = body_of(LONG_BYTES);

    put_header(&first, "x", LONG_BYTES, "");
    client_send(&first, (struct span){data, LONG_BYTES / 2});
    cr_assert(reaches(&counters.sinks, 1));
    cr_assert(reaches(&memory_counters.receiving, 1));
    check_get(&second, "1000000", 1000000);
    cr_assert_eq(memory_counters.lends, 0);
    check_put(&second, "x", LONG_BYTES);
    cr_assert_eq(counters.sinks_handled, 1);
    client_send(&first, (struct span){data + LONG_BYTES / 2, LONG_BYTES - LONG_BYTES / 2});
    cr_assert(client_read(&first));
    check_sum(&first.answer, LONG_BYTES);
    free(data);
    client_close(&first);
    client_close(&second);
}

/* Less than the number of bytes that the thread is woken for, with pauses, and after them a small request on the same connection. */
Test(offload, a_body_in_small_pieces_arrives_whole)
{
    enum { PIECE_BYTES_HERE = 30011 };
    struct client c = client_connect(start_server((struct server_options){.io_threads = 1}));
    char         *data = body_of(LONG_BYTES);

    put_header(&c, "x", LONG_BYTES, "");
    for (size_t at = 0; at < LONG_BYTES; at += PIECE_BYTES_HERE) {
        size_t left = LONG_BYTES - at;

        client_send(&c, (struct span){data + at, left < PIECE_BYTES_HERE ? left : PIECE_BYTES_HERE});
        usleep(at / PIECE_BYTES_HERE % 50 == 49 ? 700 * 1000 : 500);
    }
    cr_assert(client_read(&c));
    check_sum(&c.answer, LONG_BYTES);
    cr_assert(handed_off(&memory_counters.borrows));
    check_hello(&c);
    free(data);
    client_close(&c);
}

Test(offload, sends_100_continue_first)
{
    struct client c = client_connect(start_server((struct server_options){.io_threads = 1}));
    char         *data = body_of(LONG_BYTES);

    put_header(&c, "x", LONG_BYTES, "Expect: 100-continue\r\n");
    cr_assert_eq(client_read_head(&c), 100);
    client_send(&c, (struct span){data, LONG_BYTES});
    cr_assert(client_read(&c));
    check_sum(&c.answer, LONG_BYTES);
    cr_assert(handed_off(&memory_counters.borrows));
    check_hello(&c);
    free(data);
    client_close(&c);
}

Test(offload, what_is_pipelined_behind_a_long_body_is_answered_in_order)
{
    static const char get[] = "GET /memory/1000000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char hello[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct client     c = client_connect(start_server((struct server_options){.io_threads = 2}));

    client_text(&c, "%s", hello);
    put(&c, "x", LONG_BYTES);
    client_text(&c, "%s", hello);
    put(&c, "x", LONG_BYTES);
    client_text(&c, "%s%s", hello, get);
    for (size_t i = 0; i < 6; i++) {
        cr_assert_eq(client_read(&c), 200);
        if (i == 1 || i == 3)
            check_sum(&c.answer, LONG_BYTES);
        else if (i == 5)
            check_bytes(&c.answer, 1000000);
        else
            cr_assert_lt(c.answer.body.bytes, 64);
    }
    cr_assert_gt(memory_counters.borrows, 0);
    cr_assert_gt(memory_counters.lends, 0);
    client_close(&c);
}

Test(offload, memory_that_is_wanted_back_is_returned)
{
    struct client c = client_connect(start_server((struct server_options){.io_threads = 1}));

    check_put(&c, "recalled", LONG_BYTES);
    cr_assert(handed_off(&memory_counters.borrows));
    check_get(&c, "recalled", BIG_BYTES);
    cr_assert(handed_off(&memory_counters.lends));
    client_close(&c);
}

Test(offload, a_failure_in_the_middle_is_answered_behind_the_body)
{
    static const struct {
        const char *id;
        unsigned    status;
    } cases[] = {{"refuses", 507}, {"commit", 503}, {"waits", 500}};
    struct client c = client_connect(start_server((struct server_options){.io_threads = 1}));

    for (size_t i = 0; i < COUNT(cases); i++) {
        put(&c, cases[i].id, LONG_BYTES);
        cr_assert_eq(client_read(&c), cases[i].status);
        cr_assert(span_is(answer_header(&c.answer, "Content-Type"), "application/problem+json"));
        cr_assert_eq(counters.problems, i + 1);
        check_hello(&c);
    }
    client_close(&c);
    stop_server();
    cr_assert_eq(counters.aborts, 2); /* the third had its handler */
}

Test(offload, a_source_that_fails_in_the_middle_closes_the_connection)
{
    struct client c = client_connect(start_server((struct server_options){.io_threads = 1}));

    client_text(&c, "GET /memory/broken HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert(!client_read(&c));
    cr_assert(reaches(&counters.closes, 1));
    cr_assert_lt(c.held_bytes, BIG_BYTES);
    client_close(&c);
}

Test(offload, a_head_request_is_not_handed_off)
{
    struct client c = client_connect(start_server((struct server_options){.io_threads = 1}));

    client_text(&c, "HEAD /memory/1000000 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cr_assert_eq(client_read_head(&c), 200);
    cr_assert(span_is(answer_header(&c.answer, "Content-Length"), "1000000"));
    check_hello(&c);
    cr_assert_eq(memory_counters.lends, 0);
    client_close(&c);
}

Test(offload, the_connection_is_closed_when_the_client_says_so)
{
    struct server *s = start_server((struct server_options){.io_threads = 1});
    struct client  c = client_connect(s);
    char          *data = body_of(LONG_BYTES);

    put_header(&c, "x", LONG_BYTES, "Connection: close\r\n");
    client_send(&c, (struct span){data, LONG_BYTES});
    cr_assert_eq(client_read(&c), 200);
    cr_assert(span_is(answer_header(&c.answer, "Connection"), "close"));
    cr_assert(client_at_end(&c));
    client_close(&c);
    c = client_connect(s);
    client_text(&c, "GET /memory/1000000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    cr_assert(client_read(&c));
    check_bytes(&c.answer, 1000000);
    cr_assert(client_at_end(&c));
    client_close(&c);
    free(data);
}
