/* The C SDK's uploads and downloads beside a raw socket and beside libcurl, in the same run: one connection, then as many as it takes by
 * itself. Usage: sdk_bulk URL [MIB]; the token comes from the environment. */
#include <gpurest/gpurest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 5, MIB_DEFAULT = 256, PIECE_BYTES = 4 * 1024 * 1024 };

static void fail(const char *what)
{
    fprintf(stderr, "sdk_bulk: %s: %s\n", what, gpurest_last_error()->message);
    exit(EXIT_FAILURE);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Touched, so that no page is made while the clock runs. */
static char *make_memory(size_t bytes)
{
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    if (at == MAP_FAILED)
        fail("no memory");
    memset(at, 0x5a, bytes);
    return at;
}

/* ---- the raw peer ---- */

static void tune(int fd)
{
    int one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4); /* a host default such as bbr costs half of the rate on loopback */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void move(int fd, char *memory, size_t bytes, bool out)
{
    for (size_t at = 0; at < bytes;) {
        size_t  left = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        ssize_t n = out ? send(fd, memory + at, left, MSG_NOSIGNAL) : recv(fd, memory + at, left, 0);
        if (n <= 0)
            fail("the raw connection broke");
        at += (size_t)n;
    }
}

struct peer {
    int    listener;
    char  *memory;
    size_t bytes;
    bool   receives;
};

static void *serve(void *arg)
{
    struct peer *p = arg;
    int          fd = accept(p->listener, NULL, NULL);
    char         done = 'd';

    tune(fd);
    move(fd, p->receives ? p->memory : &done, p->receives ? p->bytes : 1, false);
    move(fd, p->receives ? &done : p->memory, p->receives ? 1 : p->bytes, true);
    close(fd);
    return NULL;
}

static double raw_rate(char *memory, char *other, size_t bytes, bool upload)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          a_bytes = sizeof a;
    struct peer        p = {.listener = socket(AF_INET, SOCK_STREAM, 0), .memory = other, .bytes = bytes, .receives = upload};
    int                fd = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t          thread;
    char               done = 'g';
    double             begun;

    tune(p.listener);
    tune(fd);
    if (bind(p.listener, (struct sockaddr *)&a, sizeof a) || listen(p.listener, 1) ||
        getsockname(p.listener, (struct sockaddr *)&a, &a_bytes) || pthread_create(&thread, NULL, serve, &p) ||
        connect(fd, (struct sockaddr *)&a, sizeof a))
        fail("no raw peer");
    begun = seconds();
    move(fd, upload ? memory : &done, upload ? bytes : 1, true);
    move(fd, upload ? &done : memory, upload ? 1 : bytes, false);
    begun = seconds() - begun;
    pthread_join(thread, NULL);
    close(fd);
    close(p.listener);
    return (double)bytes / begun / 1e9;
}

/* ---- the SDK ---- */

struct side {
    const char      *name;
    gpurest_client  *client;
    gpurest_session *session;
    gpurest_buffer   buffer;
};

static void open_side(struct side *s, const char *url, const char *name, int connections, int use_libcurl, size_t bytes)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;

    o.url = url;
    o.bulk_connections = connections;
    o.use_libcurl = use_libcurl;
    s->name = name;
    if (gpurest_open_with(&s->client, &o) || gpurest_session_open(&s->session, s->client, NULL) ||
        gpurest_alloc(s->session, &s->buffer, bytes))
        fail(name);
}

static double side_rate(struct side *s, char *memory, size_t bytes, bool upload)
{
    double         begun = seconds();
    gpurest_status st =
        upload ? gpurest_write(s->session, s->buffer, 0, memory, bytes) : gpurest_read(s->session, s->buffer, 0, memory, bytes);

    if (st)
        fail(s->name);
    return (double)bytes / (seconds() - begun) / 1e9;
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

/* Raw and ours take turns, so that a busy moment meets both. */
static void compare(struct side *s, char *memory, char *other, size_t bytes, bool upload)
{
    double raw[ROUNDS], ours[ROUNDS], ratio[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        raw[i] = raw_rate(memory, other, bytes, upload);
        ours[i] = side_rate(s, memory, bytes, upload);
        ratio[i] = ours[i] / raw[i];
    }
    printf("%-8s %-22s %6.2f GB/s, raw %6.2f GB/s over one connection, ratio %.2f\n", upload ? "upload" : "download", s->name, median(ours),
           median(raw), median(ratio));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct side sides[3];
    size_t             bytes = (size_t)(argc > 2 ? atoi(argv[2]) : MIB_DEFAULT) * 1024 * 1024;
    char              *memory, *other;

    if (argc < 2 || bytes == 0) {
        fprintf(stderr, "usage: sdk_bulk URL [MIB]\n");
        return EXIT_FAILURE;
    }
    memory = make_memory(bytes);
    other = make_memory(bytes);
    open_side(&sides[0], argv[1], "sdk, 1 connection", 1, 0, bytes);
    open_side(&sides[1], argv[1], "sdk, 4 connections", 4, 0, bytes);
    open_side(&sides[2], argv[1], "libcurl, 1 connection", 1, 1, bytes);
    for (int i = 0; i < 3; i++) {
        compare(&sides[i], memory, other, bytes, true);
        compare(&sides[i], memory, other, bytes, false);
    }
    for (int i = 0; i < 3; i++) {
        gpurest_session_close(sides[i].session);
        gpurest_close(sides[i].client);
    }
    return EXIT_SUCCESS;
}
