/* Answers with a descriptor: on a Unix socket, in order, and never elsewhere. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/http/engine/server_fixture.h"

static const char ASK[] = "POST /descriptor HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
static const char INTERIM[] = "HTTP/1.1 100 Continue\r\n\r\n";

struct temp_buffer {
    struct server *server;
    struct client  client;
};

static struct temp_buffer begin(const char *name)
{
    struct temp_buffer l;
    char               address[128];

    snprintf(address, sizeof address, "unix:/tmp/%s-%d.sock", name, (int)getpid());
    l.server = start_server((struct server_options){.loops = 1, .unix_path = address});
    l.client = client_connect_unix(address + strlen("unix:"));
    return l;
}

static void end(struct temp_buffer *l)
{
    client_close(&l->client);
    stop_server();
}

/* One recvmsg. Returns the descriptor that arrived, or -1. */
static int receive(int fd, char *to, size_t room, size_t *bytes)
{
    union {
        struct cmsghdr header;
        char           bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec    line = {to, room};
    struct msghdr   m = {.msg_iov = &line, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *h;
    ssize_t         n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    int             got = -1;

    cr_assert_gt(n, 0);
    *bytes = (size_t)n;
    h = CMSG_FIRSTHDR(&m);
    if (!h)
        return -1;
    cr_assert_eq(h->cmsg_type, SCM_RIGHTS);
    cr_assert_eq(h->cmsg_len, CMSG_LEN(sizeof got));
    memcpy(&got, CMSG_DATA(h), sizeof got);
    return got;
}

static void check_pipe(int fd)
{
    char text[64];

    cr_assert_geq(fd, 0);
    cr_assert_eq(read(fd, text, sizeof text), 11);
    cr_assert_eq(memcmp(text, "in the pipe", 11), 0);
    close(fd);
}

static void expect_descriptor(struct client *c)
{
    char   text[256];
    size_t bytes;
    int    fd = receive(c->fd, text, sizeof text, &bytes);

    cr_assert_eq(bytes, sizeof INTERIM - 1);
    cr_assert_eq(memcmp(text, INTERIM, bytes), 0);
    check_pipe(fd);
    cr_assert_eq(client_read(c), 200);
    cr_assert(span_is(c->answer.body, "local"));
}

Test(descriptor, comes_ahead_of_its_answer_and_the_connection_goes_on)
{
    struct temp_buffer l = begin("descriptor");

    for (int i = 0; i < 3; i++) {
        client_text(&l.client, "%s", ASK);
        expect_descriptor(&l.client);
        client_text(&l.client,
                    "POST /descriptor-executor HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
        expect_descriptor(&l.client);
        cr_assert_eq(client_get(&l.client, "/hello"), 200);
    }
    end(&l);
}

Test(descriptor, pipelined_requests_get_theirs_in_order)
{
    struct temp_buffer l = begin("pipelined");
    char               text[4096], all[8192];
    size_t             bytes, total = 0;
    unsigned           fds = 0;

    for (int i = 0; i < 5; i++)
        client_text(&l.client, "%s", ASK);
    while (fds < 5 || memcmp(all + total - 5, "local", 5)) {
        int fd = receive(l.client.fd, text, sizeof text, &bytes);

        if (fd >= 0) { /* it came with the interim answer, which may follow whole answers */
            cr_assert_eq(memcmp(text + bytes - (sizeof INTERIM - 1), INTERIM, sizeof INTERIM - 1), 0);
            check_pipe(fd);
            fds++;
        }
        cr_assert_lt(total + bytes, sizeof all);
        memcpy(all + total, text, bytes);
        total += bytes;
    }
    cr_assert_eq(fds, 5);
    end(&l);
}

Test(descriptor, is_never_sent_over_tcp_nor_to_old_clients)
{
    struct temp_buffer l = begin("never");
    struct client      tcp = client_connect(l.server);
    char               text[1024];
    size_t             bytes;

    client_text(&tcp, "%s", ASK);
    cr_assert_eq(client_read(&tcp), 500);
    client_close(&tcp);
    client_text(&l.client, "POST /descriptor HTTP/1.0\r\nContent-Length: 0\r\n\r\n");
    cr_assert_eq(receive(l.client.fd, text, sizeof text - 1, &bytes), -1);
    text[bytes] = '\0';
    cr_assert_not_null(strstr(text, " 500 "));
    end(&l);
}

static unsigned open_descriptors(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

static bool down_to(unsigned wanted)
{
    for (int i = 0; i < 2000 && open_descriptors() > wanted; i++)
        usleep(5000);
    return open_descriptors() <= wanted;
}

Test(descriptor, a_client_that_reads_no_answers_harms_nobody)
{
    struct temp_buffer l = begin("full");
    struct client      other = client_connect(l.server);
    unsigned           before = open_descriptors();
    int                full = 0;

    while (full < 20) { /* until the server reads nothing for a while, or has closed */
        if (send(l.client.fd, ASK, sizeof ASK - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            full++;
            usleep(5000);
        }
    }
    cr_assert_eq(client_get(&other, "/hello"), 200);
    client_close(&l.client);
    cr_assert(down_to(before));
    cr_assert_eq(client_get(&other, "/hello"), 200);
    client_close(&other);
    stop_server();
}
