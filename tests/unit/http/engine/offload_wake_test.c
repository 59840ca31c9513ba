/* How many bytes of an upload wake its I/O thread. poll() and setsockopt() of this program go through here: they look, at every wait for more than a
 * byte, whether it is for more than the client has still to send, for too long, or again after it was in vain. How fast the machine is
 * decides only how often a test tries. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/deadline.h"
#include "http/bounds.h"
#include "unit/http/engine/memory_endpoints.h"
#include "unit/http/engine/server_fixture.h"

enum { FDS_MAX = 256, FIRST_BYTES = 3 * 1024 * 1024, BODY_BYTES = FIRST_BYTES + 2 * UPLOAD_WAKE_BYTES + 17, DRIPS = 20 };

/* ---- what the server asks of the kernel ---- */

static struct watch {
    atomic_int    wakes_from[FDS_MAX]; /* 0: never set */
    atomic_ullong missed_at[FDS_MAX];  /* taken when a wait for more than a byte ended by time; 0: it was set since */
    atomic_uint   raised;              /* to more than a byte, so many times */
    atomic_uint   too_much, too_long;  /* waits that should not be */
    atomic_ullong wire_bytes;          /* of the only request of a connection, its head included; 0: not looked at */
    atomic_int    fd;                  /* the last that was set */
    atomic_bool   refuses;
} watch;

static uint64_t received(int fd)
{
    struct tcp_info info = {0};
    socklen_t       bytes = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) ? 0 : info.tcpi_bytes_received;
}

static uint64_t unread(int fd)
{
    int bytes = 0;

    return ioctl(fd, FIONREAD, &bytes) ? 0 : (uint64_t)bytes;
}

/* What was taken from the socket: bytes that come between the two questions make it too little here, and too much below. Of a Unix socket nothing is known. */
static uint64_t taken_at_least(int fd)
{
    uint64_t all = received(fd), waiting = unread(fd);

    return all > waiting ? all - waiting : 0;
}

static uint64_t taken_at_most(int fd)
{
    uint64_t waiting = unread(fd), all = received(fd);

    return all ? all - waiting : UINT64_MAX;
}

static bool more_than_will_come(int fd, int from)
{
    uint64_t all = atomic_load(&watch.wire_bytes);

    return all && all - taken_at_least(fd) < (uint64_t)from;
}

static bool missed_just_now(int fd)
{
    uint64_t at = atomic_load(&watch.missed_at[fd]);

    return at && taken_at_most(fd) < at + UPLOAD_WAKE_BYTES;
}

/* Whether it is a wait for more than a byte. */
static bool check_wait(const struct pollfd *p, int timeout_ms)
{
    int from = (p->events & POLLIN) && p->fd >= 0 && p->fd < FDS_MAX ? atomic_load(&watch.wakes_from[p->fd]) : 0;

    if (from <= 1)
        return false;
    if (more_than_will_come(p->fd, from))
        atomic_fetch_add(&watch.too_much, 1);
    if (timeout_ms < 0 || timeout_ms > UPLOAD_WAKE_MS || missed_just_now(p->fd))
        atomic_fetch_add(&watch.too_long, 1);
    return true;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t bytes)
{
    if (level == SOL_SOCKET && name == SO_RCVLOWAT && fd >= 0 && fd < FDS_MAX) {
        int from = *(const int *)value;

        atomic_store(&watch.wakes_from[fd], from);
        atomic_store(&watch.missed_at[fd], 0);
        atomic_store(&watch.fd, fd);
        if (from > 1)
            atomic_fetch_add(&watch.raised, 1);
        if (atomic_load(&watch.refuses)) {
            errno = ENOPROTOOPT;
            return -1;
        }
    }
    return (int)syscall(SYS_setsockopt, fd, level, name, value, bytes);
}

/* poll(), under a name that the compiler has no opinion of: its own it takes for one that never reads what it is given. */
int watched_poll(struct pollfd *fds, nfds_t count, int timeout_ms) __asm__("poll");

int watched_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    struct timespec limit = {timeout_ms / 1000, (long)(timeout_ms % 1000) * (long)NS_PER_MS};
    bool            for_many = count > 0 && check_wait(&fds[0], timeout_ms);
    uint64_t        taken = for_many ? taken_at_least(fds[0].fd) : 0;
    int             n = ppoll(fds, count, timeout_ms < 0 ? NULL : &limit, NULL);

    if (for_many && n == 0)
        atomic_store(&watch.missed_at[fds[0].fd], taken);
    return n;
}

/* None wakes for more than a byte any more, and there was no wait that should not be. */
static void check_all_lowered(void)
{
    for (int fd = 0; fd < FDS_MAX; fd++)
        cr_assert_leq(atomic_load(&watch.wakes_from[fd]), 1, "%d", fd);
    cr_assert_eq(watch.too_much, 0);
    cr_assert_eq(watch.too_long, 0);
}

/* ---- clients ---- */

static char *body; /* BODY_BYTES */

static void make_body(void)
{
    body = malloc(BODY_BYTES);
    for (size_t i = 0; i < BODY_BYTES; i++)
        body[i] = memory_byte(i);
}

static void send_part(struct client *c, size_t from, size_t to)
{
    client_send(c, (struct span){body + from, to - from});
}

static void send_head(struct client *c, const char *id)
{
    char head[128];
    int  bytes = snprintf(head, sizeof head, "PUT /memory/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", id, BODY_BYTES);

    atomic_store(&watch.wire_bytes, (unsigned long long)bytes + BODY_BYTES);
    client_send(c, (struct span){head, (size_t)bytes});
}

/* As much as makes a client a fast one, and a moment for the server to run out of it: true if it waits, or has waited, for many bytes. */
static bool start_fast(struct client *c, const char *id)
{
    unsigned before = atomic_load(&watch.raised);

    send_head(c, id);
    send_part(c, 0, FIRST_BYTES);
    for (int i = 0; i < 20 && atomic_load(&watch.raised) == before; i++)
        usleep(1000);
    return atomic_load(&watch.raised) != before;
}

static void check_answer(struct client *c)
{
    struct answer a;
    char          want[64];

    snprintf(want, sizeof want, "%d %llu", BODY_BYTES, (unsigned long long)memory_sum(0, body, BODY_BYTES));
    cr_assert(client_read(c, false, &a));
    cr_assert(span_is(a.body, want), "%s", a.buffer);
    answer_free(&a);
}

static void check_next_request(struct client *c)
{
    struct answer a;

    atomic_store(&watch.wire_bytes, 0);
    cr_assert_eq(client_get(c, "/hello", &a), 200);
    answer_free(&a);
}

static void check_socket_lowered(void)
{
    int       from = 0;
    socklen_t bytes = sizeof from;

    cr_assert_eq(getsockopt(atomic_load(&watch.fd), SOL_SOCKET, SO_RCVLOWAT, &from, &bytes), 0);
    cr_assert_eq(from, 1);
}

/* Tries until the server has waited for many bytes. */
static void repeat(bool (*once)(struct server *s), struct server *s)
{
    uint64_t deadline = deadline_after_ms(60 * 1000);
    bool     waited = false;

    make_body();
    while (!waited && deadline_left_ns(deadline)) {
        waited = once(s);
        check_all_lowered();
    }
    cr_assert(waited, "the server waits for every byte");
    free(body);
    stop_server(s);
    check_all_lowered();
}

/* ---- tests ---- */

/* Drips, then all but less than it was woken for, then that but for a byte, then the byte. */
static bool upload_below_the_mark(struct server *s)
{
    struct client c = client_connect(s);
    bool          waited = start_fast(&c, "keeps");
    size_t        tail = BODY_BYTES - (UPLOAD_WAKE_BYTES - 1);

    for (size_t i = 0; i < DRIPS; i++) {
        send_part(&c, FIRST_BYTES + i, FIRST_BYTES + i + 1);
        usleep(2000);
    }
    send_part(&c, FIRST_BYTES + DRIPS, tail);
    usleep(20000);
    send_part(&c, tail, BODY_BYTES - 1);
    usleep(20000);
    send_part(&c, BODY_BYTES - 1, BODY_BYTES);
    check_answer(&c);
    if (waited)
        check_socket_lowered();
    check_next_request(&c);
    client_close(&c);
    return waited;
}

Test(offload_wake, many_bytes_wake_while_they_come_fast)
{
    repeat(upload_below_the_mark, start_server((struct server_options){.io_threads = 1}));
}

/* All but a byte at once: it is fast until there is nothing left but that. */
Test(offload_wake, never_more_than_will_come)
{
    struct server *s = start_server((struct server_options){.io_threads = 1});

    make_body();
    for (int i = 0; i < 10; i++) {
        struct client c = client_connect(s);

        send_head(&c, "keeps");
        send_part(&c, 0, BODY_BYTES - 1);
        usleep(20000);
        send_part(&c, BODY_BYTES - 1, BODY_BYTES);
        check_answer(&c);
        check_all_lowered();
        check_next_request(&c);
        client_close(&c);
    }
    free(body);
    stop_server(s);
}

/* Of the tries, which all end like this. */
static void close_aborted(struct client *c)
{
    static unsigned tries;

    tries++;
    client_close(c);
    cr_assert(reaches(&counters.aborts, tries));
    cr_assert(reaches(&counters.finishes, tries));
}

static bool reset_below_the_mark(struct server *s)
{
    struct client c = client_connect(s);
    bool          waited = start_fast(&c, "keeps");

    send_part(&c, FIRST_BYTES, FIRST_BYTES + 1000);
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close_aborted(&c);
    return waited;
}

Test(offload_wake, a_reset_below_wakes)
{
    repeat(reset_below_the_mark, start_server((struct server_options){.io_threads = 1}));
}

/* The end of stream counts as a byte received: not looked at. */
static bool half_close_below_the_mark(struct server *s)
{
    struct client c = client_connect(s);
    bool          waited = start_fast(&c, "keeps");

    atomic_store(&watch.wire_bytes, 0);
    send_part(&c, FIRST_BYTES, FIRST_BYTES + 1000);
    shutdown(c.fd, SHUT_WR);
    cr_assert(client_at_end(&c), "without an answer, as half of the body is not there");
    close_aborted(&c);
    return waited;
}

Test(offload_wake, an_end_of_stream_below_wakes)
{
    repeat(half_close_below_the_mark, start_server((struct server_options){.io_threads = 1}));
}

static bool stall_below_the_mark(struct server *s)
{
    struct client c = client_connect(s);
    bool          waited = start_fast(&c, "keeps");
    struct answer a;

    send_part(&c, FIRST_BYTES, FIRST_BYTES + 1000);
    cr_assert(client_read(&c, false, &a));
    cr_assert_eq(a.status, 408);
    answer_free(&a);
    close_aborted(&c);
    return waited;
}

Test(offload_wake, a_client_that_stalls_below_is_ended)
{
    repeat(stall_below_the_mark, start_server((struct server_options){.io_threads = 1, .body_stall_s = 5}));
}

/* The sink refuses in the middle, the rest is dropped, and the connection goes on. */
static bool fail_after_waiting(struct server *s)
{
    struct client c = client_connect(s);
    bool          waited = start_fast(&c, "keeps-some");
    struct answer a;

    send_part(&c, FIRST_BYTES, BODY_BYTES);
    cr_assert(client_read(&c, false, &a));
    cr_assert_eq(a.status, 507);
    answer_free(&a);
    check_next_request(&c);
    client_close(&c);
    return waited;
}

Test(offload_wake, the_rest_of_a_refused_body_wakes)
{
    repeat(fail_after_waiting, start_server((struct server_options){.io_threads = 1}));
}

static bool upload_refused(struct server *s)
{
    struct client c = client_connect(s);
    bool          waited = start_fast(&c, "keeps");

    send_part(&c, FIRST_BYTES, BODY_BYTES);
    check_answer(&c);
    check_next_request(&c);
    client_close(&c);
    return waited;
}

Test(offload_wake, a_kernel_that_refuses_costs_nothing_but_time)
{
    atomic_store(&watch.refuses, true);
    repeat(upload_refused, start_server((struct server_options){.io_threads = 1}));
}

/* More than is lent cannot be taken at once, and is not waited for. */
Test(offload_wake, never_more_than_was_lent)
{
    struct server *s = start_server((struct server_options){.io_threads = 1});
    struct client  c = client_connect(s);

    make_body();
    cr_assert_not(start_fast(&c, "x"));
    send_part(&c, FIRST_BYTES, BODY_BYTES);
    check_answer(&c);
    check_next_request(&c);
    client_close(&c);
    free(body);
    stop_server(s);
    cr_assert_eq(watch.raised, 0);
}

/* Where every byte wakes, whatever was set. */
Test(offload_wake, a_unix_socket_wakes_for_a_byte)
{
    char           address[64];
    struct server *s;
    struct client  c;

    make_body();
    snprintf(address, sizeof address, "unix:/tmp/server-offload-wake-%d.sock", (int)getpid());
    s = start_server((struct server_options){.io_threads = 1, .unix_path = address});
    for (int i = 0; i < 3; i++) {
        c = client_connect_unix(address + strlen("unix:"));
        start_fast(&c, "keeps");
        send_part(&c, FIRST_BYTES, BODY_BYTES - 1);
        usleep(20000);
        send_part(&c, BODY_BYTES - 1, BODY_BYTES);
        check_answer(&c);
        check_next_request(&c);
        client_close(&c);
    }
    free(body);
    stop_server(s);
    check_all_lowered();
}
