/* Small requests over kept connections: how many a second, and how long each takes. The same load for any HTTP server, and for a bare
 * echo of as many bytes. request_rate HOST:PORT PATH [--connections N] [--seconds S]   or   request_rate echo REQUEST:REPLY [...]
 * Prints one line of JSON. One thread, one request under way per connection. */
#include "base/deadline.h"
#include "bench/http_client.h"
#include "bench/percentile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 256,
    REQUEST_BYTES_MAX = 1024,
    REPLY_BYTES_MAX = 65536,
    KEPT_MAX = 1 << 20,
    EVENTS = 64,
    ECHO_FDS_MAX = 1024,
    WARM_UP_PERCENT = 10
};

struct connection {
    int      fd;
    size_t   missing; /* bytes of the answer that have not come */
    uint64_t began;
};

struct load {
    struct sockaddr_in to;
    char               request[REQUEST_BYTES_MAX];
    size_t             request_bytes, reply_bytes;
    struct connection  connections[CONNECTIONS_MAX];
    unsigned           connections_count;
    double             seconds;
};

static uint64_t durations[KEPT_MAX];
static size_t   kept, answered;

static void fail(const char *what)
{
    fprintf(stderr, "request_rate: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static void no_delay(int fd)
{
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void ask(const struct load *l, struct connection *c)
{
    c->missing = l->reply_bytes;
    c->began = now_ns();
    if (send(c->fd, l->request, l->request_bytes, MSG_NOSIGNAL) != (ssize_t)l->request_bytes)
        fail("send");
}

/* True when the whole answer is there. */
static bool take(struct connection *c)
{
    char    piece[REPLY_BYTES_MAX];
    ssize_t n = recv(c->fd, piece, sizeof piece, 0);

    if (n <= 0 || (size_t)n > c->missing)
        fail(n <= 0 ? "the connection closed" : "the answers differ in length");
    c->missing -= (size_t)n;
    return c->missing == 0;
}

static void connect_all(struct load *l, int poll)
{
    for (unsigned i = 0; i < l->connections_count; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};
        int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (struct sockaddr *)&l->to, sizeof l->to) || epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e))
            fail("connect");
        no_delay(fd);
        l->connections[i].fd = fd;
        ask(l, &l->connections[i]);
    }
}

static double run(struct load *l)
{
    int      poll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t begin = now_ns(), counted_from = begin + (uint64_t)(l->seconds * 1e9 / 100 * WARM_UP_PERCENT);
    uint64_t end = counted_from + (uint64_t)(l->seconds * 1e9), now;

    connect_all(l, poll);
    while ((now = now_ns()) < end) {
        struct epoll_event ready[EVENTS];
        int                n = epoll_wait(poll, ready, EVENTS, 1000);

        for (int i = 0; i < n; i++) {
            struct connection *c = &l->connections[ready[i].data.u32];
            if (!take(c))
                continue;
            if (c->began >= counted_from) {
                answered++;
                if (kept < KEPT_MAX)
                    durations[kept++] = now_ns() - c->began;
            }
            ask(l, c);
        }
    }
    close(poll);
    return (double)(now - counted_from) / 1e9;
}

/* Answers each `request_bytes` with `reply_bytes`, on all connections, until the process ends. */
struct echo {
    int    listener;
    size_t request_bytes, reply_bytes;
};

static void accept_one(int poll, int listener)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = accept(listener, NULL, NULL)};

    if (e.data.fd < 0 || e.data.fd >= ECHO_FDS_MAX || epoll_ctl(poll, EPOLL_CTL_ADD, e.data.fd, &e))
        fail("accept");
    no_delay(e.data.fd);
}

static void answer(const struct echo *e, int fd)
{
    static size_t got[ECHO_FDS_MAX];
    static char   bytes[REPLY_BYTES_MAX];
    ssize_t       n = recv(fd, bytes, sizeof bytes, 0);

    if (n <= 0) {
        close(fd);
        return;
    }
    for (got[fd] += (size_t)n; got[fd] >= e->request_bytes; got[fd] -= e->request_bytes) {
        if (send(fd, bytes, e->reply_bytes, MSG_NOSIGNAL) < 0)
            fail("send");
    }
}

static void *serve_echo(void *context)
{
    const struct echo *e = context;
    struct epoll_event ready[EVENTS], add = {.events = EPOLLIN, .data.fd = e->listener};
    int                poll = epoll_create1(EPOLL_CLOEXEC);

    if (poll < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, e->listener, &add))
        fail("echo server");
    for (;;) {
        int n = epoll_wait(poll, ready, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.fd == e->listener)
                accept_one(poll, e->listener);
            else
                answer(e, ready[i].data.fd);
        }
    }
    return NULL;
}

static void start_echo(struct load *l, const char *sizes)
{
    static struct echo e;
    pthread_t          thread;
    socklen_t          length = sizeof l->to;
    char              *colon;

    e.request_bytes = l->request_bytes = strtoul(sizes, &colon, 10);
    e.reply_bytes = l->reply_bytes = *colon ? strtoul(colon + 1, NULL, 10) : 0;
    if (!e.request_bytes || e.request_bytes > REQUEST_BYTES_MAX || !e.reply_bytes || e.reply_bytes > REPLY_BYTES_MAX)
        fail("sizes");
    l->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    e.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(e.listener, (struct sockaddr *)&l->to, sizeof l->to) || listen(e.listener, CONNECTIONS_MAX) ||
        getsockname(e.listener, (struct sockaddr *)&l->to, &length) || pthread_create(&thread, NULL, serve_echo, &e))
        fail("echo server");
    pthread_detach(thread);
}

/* One request to learn how long the answer is; all later ones must be as long. */
static void prepare_http(struct load *l, const char *address, const char *path)
{
    static struct http_client c;
    const char               *colon = strrchr(address, ':');
    char                      host[64];

    if (!colon || !http_connect(&c, address, ""))
        fail(address);
    l->request_bytes = http_build(&c, l->request, sizeof l->request, "GET", path, NULL, NULL, 0);
    if (!l->request_bytes || !http_exchange(&c, l->request, l->request_bytes) || c.status != 200)
        fail("the first request was not answered with 200");
    l->reply_bytes = c.reply_bytes;
    l->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    if (inet_pton(AF_INET, host, &l->to.sin_addr) != 1)
        fail(host);
    close(c.fd);
}

static void report(const struct load *l, double seconds)
{
    printf("{\"requests\":%zu,\"seconds\":%.3f,\"per_second\":%.0f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"request_bytes\":%zu,\"reply_bytes\":%"
           "zu}\n",
           answered, seconds, (double)answered / seconds, percentile_us(durations, kept, 50), percentile_us(durations, kept, 99),
           l->request_bytes, l->reply_bytes);
}

int main(int argc, char **argv)
{
    static struct load l = {.connections_count = 8, .seconds = 2};
    double             seconds;

    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--connections") == 0)
            l.connections_count = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0)
            l.seconds = strtod(argv[i + 1], NULL);
    }
    if (argc < 3 || l.connections_count < 1 || l.connections_count > CONNECTIONS_MAX || l.seconds <= 0) {
        fprintf(stderr, "usage: request_rate HOST:PORT PATH|echo REQUEST:REPLY [--connections N] [--seconds S]\n");
        return EXIT_FAILURE;
    }
    if (strcmp(argv[1], "echo") == 0)
        start_echo(&l, argv[2]);
    else
        prepare_http(&l, argv[1], argv[2]);
    seconds = run(&l);
    if (!kept)
        fail("no answers");
    report(&l, seconds);
    return EXIT_SUCCESS;
}
