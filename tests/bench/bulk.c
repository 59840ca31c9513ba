/* Upload and download of much data over 1 and 4 connections, beside a raw socket peer in the same run. Usage: bulk HOST:PORT [MIB [TOKEN]] */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/deadline.h"
#include "bench/http_client.h"

enum { CONNECTIONS_MAX_HERE = 4, ROUNDS = 5, PIECE_BYTES = 1024 * 1024, WINDOW_BYTES = 64 * 1024 * 1024, MIB_DEFAULT = 1024 };

static void fail(const char *what)
{
    fprintf(stderr, "bulk: %s\n", what);
    exit(EXIT_FAILURE);
}

/* Touched, so that no page is made while the clock runs. */
static char *make_memory(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (at == MAP_FAILED)
        fail("no memory");
    memset(at, 0x5a, bytes);
    return at;
}

/* A host default such as bbr costs half of the rate on loopback. */
static void tune(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void send_bytes(int fd, const char *window, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes;) {
        size_t  offset = (size_t)(at % WINDOW_BYTES);
        size_t  left = WINDOW_BYTES - offset < PIECE_BYTES ? WINDOW_BYTES - offset : PIECE_BYTES;
        ssize_t n = send(fd, window + offset, bytes - at < left ? (size_t)(bytes - at) : left, MSG_NOSIGNAL);
        if (n <= 0)
            fail("sending failed");
        at += (uint64_t)n;
    }
}

static void receive_bytes(int fd, char *window, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes;) {
        size_t  offset = (size_t)(at % WINDOW_BYTES);
        size_t  left = WINDOW_BYTES - offset < PIECE_BYTES ? WINDOW_BYTES - offset : PIECE_BYTES;
        ssize_t n = recv(fd, window + offset, bytes - at < left ? (size_t)(bytes - at) : left, 0);
        if (n <= 0)
            fail("receiving failed");
        at += (uint64_t)n;
    }
}

/* ---- the raw peer: one thread a connection ---- */

struct raw {
    int       listener;
    uint16_t  port; /* network order */
    bool      receives;
    uint64_t  bytes;
    char     *window;
    pthread_t thread;
};

static void *raw_serve(void *argument)
{
    struct raw *r = argument;
    int         fd = accept(r->listener, NULL, NULL);
    char        done = 'd';

    tune(fd);
    if (r->receives) {
        receive_bytes(fd, r->window, r->bytes);
        send_bytes(fd, &done, 1);
    } else {
        receive_bytes(fd, &done, 1);
        send_bytes(fd, r->window, r->bytes);
    }
    close(fd);
    return NULL;
}

static void raw_start(struct raw *r)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          bytes = sizeof a;

    r->listener = socket(AF_INET, SOCK_STREAM, 0);
    tune(r->listener);
    if (bind(r->listener, (struct sockaddr *)&a, sizeof a) || listen(r->listener, 1) ||
        getsockname(r->listener, (struct sockaddr *)&a, &bytes) || pthread_create(&r->thread, NULL, raw_serve, r))
        fail("the raw peer cannot be set up");
    r->port = a.sin_port;
}

static void raw_end(struct raw *r)
{
    pthread_join(r->thread, NULL);
    close(r->listener);
}

/* ---- clients ---- */

struct job {
    struct http_client http; /* of the service */
    const char        *address, *token;
    int                raw_fd;
    bool               raw, upload;
    unsigned           index;
    uint64_t           bytes;
    char              *window;
    pthread_t          thread;
    pthread_barrier_t *start;
};

/* Reads an answer's head; gives what was read behind it. */
static size_t read_head(struct http_client *c, unsigned *status, const char **rest)
{
    size_t have = 0;
    char  *end = NULL;

    while (!end) {
        ssize_t n = recv(c->fd, c->reply + have, sizeof c->reply - 1 - have, 0);
        if (n <= 0)
            fail("no answer");
        have += (size_t)n;
        c->reply[have] = '\0';
        end = strstr(c->reply, "\r\n\r\n");
    }
    *status = (unsigned)atoi(c->reply + 9);
    *rest = end + 4;
    return have - (size_t)(end + 4 - c->reply);
}

static void http_transfer(struct job *j)
{
    char        head[1024], token[192] = "", length[96] = "";
    const char *rest;
    unsigned    status;
    size_t      there;

    if (j->http.token[0])
        snprintf(token, sizeof token, "Authorization: Bearer %s\r\n", j->http.token);
    if (j->upload)
        snprintf(length, sizeof length, "Content-Type: application/octet-stream\r\nContent-Length: %" PRIu64 "\r\n", j->bytes);
    snprintf(head, sizeof head, "%s /v1/sessions/bulk/buffers/b%u/data HTTP/1.1\r\nHost: localhost\r\n%s%s\r\n", j->upload ? "PUT" : "GET",
             j->index, token, length);
    if (send(j->http.fd, head, strlen(head), MSG_NOSIGNAL) != (ssize_t)strlen(head))
        fail("sending failed");
    if (j->upload)
        send_bytes(j->http.fd, j->window, j->bytes);
    there = read_head(&j->http, &status, &rest);
    if (status / 100 != 2)
        fail(rest);
    if (!j->upload)
        receive_bytes(j->http.fd, j->window, j->bytes - there);
}

static void raw_transfer(struct job *j)
{
    char done = 'g';

    if (j->upload) {
        send_bytes(j->raw_fd, j->window, j->bytes);
        receive_bytes(j->raw_fd, &done, 1);
    } else {
        send_bytes(j->raw_fd, &done, 1);
        receive_bytes(j->raw_fd, j->window, j->bytes);
    }
}

static void *run_job(void *argument)
{
    struct job *j = argument;

    pthread_barrier_wait(j->start);
    if (j->raw)
        raw_transfer(j);
    else
        http_transfer(j);
    return NULL;
}

static int raw_connect(const struct raw *r)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = r->port};
    int                fd = socket(AF_INET, SOCK_STREAM, 0);

    tune(fd);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a))
        fail("the raw peer cannot be reached");
    return fd;
}

/* A connection of its own for every transfer: the service may close behind a long answer. */
static void connect_job(struct job *j, struct raw *peer)
{
    if (j->raw) {
        peer->receives = j->upload;
        peer->bytes = j->bytes;
        raw_start(peer);
        j->raw_fd = raw_connect(peer);
        return;
    }
    if (!http_connect(&j->http, j->address, j->token))
        fail("the service cannot be reached");
    tune(j->http.fd);
}

static void disconnect_job(struct job *j, struct raw *peer)
{
    if (!j->raw) {
        close(j->http.fd);
        return;
    }
    close(j->raw_fd);
    raw_end(peer);
}

/* GB/s over `count` connections, which together move `bytes`. */
static double measure(struct job *jobs, struct raw *peers, unsigned count, uint64_t bytes, bool raw, bool upload)
{
    pthread_barrier_t start;
    uint64_t          begun;

    pthread_barrier_init(&start, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        struct job *j = &jobs[i];

        j->raw = raw;
        j->upload = upload;
        j->bytes = bytes / count;
        j->start = &start;
        connect_job(j, &peers[i]);
        pthread_create(&j->thread, NULL, run_job, j);
    }
    pthread_barrier_wait(&start);
    begun = now_ns();
    for (unsigned i = 0; i < count; i++)
        pthread_join(jobs[i].thread, NULL);
    begun = now_ns() - begun;
    for (unsigned i = 0; i < count; i++)
        disconnect_job(&jobs[i], &peers[i]);
    pthread_barrier_destroy(&start);
    return (double)(bytes / count * count) / (double)begun;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double v[ROUNDS])
{
    qsort(v, ROUNDS, sizeof v[0], by_value);
    return v[ROUNDS / 2];
}

/* ---- the program ---- */

static void make_buffers(struct http_client *c, unsigned count, uint64_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        char path[96], body[64];

        snprintf(path, sizeof path, "/v1/sessions/bulk/buffers/b%u", i);
        snprintf(body, sizeof body, "{\"size\":%" PRIu64 "}", bytes / count);
        http_must(c, "PUT", path, "application/json", body, strlen(body));
    }
}

static void compare(struct job *jobs, struct raw *peers, unsigned count, uint64_t bytes, bool upload, double raw_of_one[2])
{
    double ours[ROUNDS], raw[ROUNDS], ratio[ROUNDS], o, r;

    for (unsigned i = 0; i < ROUNDS; i++) {
        raw[i] = measure(jobs, peers, count, bytes, true, upload);
        ours[i] = measure(jobs, peers, count, bytes, false, upload);
        ratio[i] = ours[i] / raw[i];
    }
    o = median(ours);
    r = median(raw);
    if (count == 1)
        raw_of_one[upload] = r;
    printf("%-8s %u connection%s  raw %6.2f GB/s  gpurest %6.2f GB/s  ratio %.2f  (of raw over one: %.2f)\n", upload ? "upload" : "download",
           count, count == 1 ? " " : "s", r, o, median(ratio), o / raw_of_one[upload]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const unsigned  counts[] = {1, 4};
    static struct job      jobs[CONNECTIONS_MAX_HERE];
    static struct raw      peers[CONNECTIONS_MAX_HERE];
    static struct http_client control;
    uint64_t               bytes = (uint64_t)(argc > 2 ? atoi(argv[2]) : MIB_DEFAULT) * 1024 * 1024;
    double                 raw_of_one[2] = {0};

    if (argc < 2 || bytes < CONNECTIONS_MAX_HERE * PIECE_BYTES || !http_connect(&control, argv[1], argc > 3 ? argv[3] : ""))
        fail("usage: bulk HOST:PORT [MIB [TOKEN]]");
    for (unsigned i = 0; i < CONNECTIONS_MAX_HERE; i++) {
        jobs[i].index = i;
        jobs[i].address = argv[1];
        jobs[i].token = argc > 3 ? argv[3] : "";
        jobs[i].window = make_memory(WINDOW_BYTES);
        peers[i].window = make_memory(WINDOW_BYTES);
    }
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        http_must(&control, "PUT", "/v1/sessions/bulk", "application/json", "{}", 2);
        make_buffers(&control, counts[k], bytes);
        compare(jobs, peers, counts[k], bytes, true, raw_of_one);
        compare(jobs, peers, counts[k], bytes, false, raw_of_one);
        http_must(&control, "DELETE", "/v1/sessions/bulk", NULL, NULL, 0);
    }
    return EXIT_SUCCESS;
}
