/* Upload and download of much data over 1 and 4 connections, beside a raw socket peer in the same run, uploads also beside one that receives into
 * memory like the service's staging. With the service's process id also the context switches of both.
 * Usage: bulk HOST:PORT [MIB [TOKEN [PID]]] */
#include <dirent.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/deadline.h"
#include "bench/http_client.h"

enum { CONNECTIONS_MAX_HERE = 4, ROUNDS = 5, PIECE_BYTES = 1024 * 1024, WINDOW_BYTES = 64 * 1024 * 1024, MIB_DEFAULT = 1024 };
/* Of the staging memory an upload uses so much at most, over and over: four pieces of 4 MiB. */
enum { STAGING_BYTES = 16 * 1024 * 1024 };

static void fail(const char *what)
{
    fprintf(stderr, "bulk: %s\n", what);
    exit(EXIT_FAILURE);
}

/* Touched, so that no page is made while the clock runs. A file's is what a worker and its front-end share. */
static char *make_memory(size_t bytes, bool file)
{
    int   fd = file ? memfd_create("bulk", MFD_CLOEXEC) : -1;
    char *at;

    if (file && (fd < 0 || ftruncate(fd, (off_t)bytes)))
        fail("no memory file");
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE | (file ? 0 : MAP_ANONYMOUS), fd, 0);
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

static void receive_bytes(int fd, char *window, size_t window_bytes, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes;) {
        size_t  offset = (size_t)(at % window_bytes);
        size_t  left = window_bytes - offset < PIECE_BYTES ? window_bytes - offset : PIECE_BYTES;
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
    size_t    window_bytes;
    pthread_t thread;
};

static _Atomic long raw_switches; /* of all raw peers so far */

static void *raw_serve(void *argument)
{
    struct raw   *r = argument;
    int           fd = accept(r->listener, NULL, NULL);
    char          done = 'd';
    struct rusage used;

    tune(fd);
    if (r->receives) {
        receive_bytes(fd, r->window, r->window_bytes, r->bytes);
        send_bytes(fd, &done, 1);
    } else {
        receive_bytes(fd, &done, 1, 1);
        send_bytes(fd, r->window, r->bytes);
    }
    getrusage(RUSAGE_THREAD, &used);
    atomic_fetch_add(&raw_switches, used.ru_nvcsw + used.ru_nivcsw);
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

enum peer { SERVICE, RAW, RAW_STAGING };

struct job {
    struct http_client http; /* of the service */
    const char        *address, *token;
    int                raw_fd;
    enum peer          peer;
    bool               upload;
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
        receive_bytes(j->http.fd, j->window, WINDOW_BYTES, j->bytes - there);
}

static void raw_transfer(struct job *j)
{
    char done = 'g';

    if (j->upload) {
        send_bytes(j->raw_fd, j->window, j->bytes);
        receive_bytes(j->raw_fd, &done, 1, 1);
    } else {
        send_bytes(j->raw_fd, &done, 1);
        receive_bytes(j->raw_fd, j->window, WINDOW_BYTES, j->bytes);
    }
}

static void *run_job(void *argument)
{
    struct job *j = argument;

    pthread_barrier_wait(j->start);
    if (j->peer != SERVICE)
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

static char *windows[2][CONNECTIONS_MAX_HERE]; /* of the raw peers: plain, as staging */

/* A connection of its own for every transfer: the service may close behind a long answer. */
static void connect_job(struct job *j, struct raw *peer)
{
    if (j->peer != SERVICE) {
        peer->window = windows[j->peer == RAW_STAGING][j->index];
        peer->window_bytes = j->peer == RAW_STAGING ? STAGING_BYTES : WINDOW_BYTES;
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
    if (j->peer == SERVICE) {
        close(j->http.fd);
        return;
    }
    close(j->raw_fd);
    raw_end(peer);
}

/* GB/s over `count` connections, which together move `bytes`. */
static double measure(struct job *jobs, struct raw *peers, unsigned count, uint64_t bytes, enum peer peer, bool upload)
{
    pthread_barrier_t start;
    uint64_t          begun;

    pthread_barrier_init(&start, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        struct job *j = &jobs[i];

        j->peer = peer;
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

/* Context switches of all threads of a process so far; 0 when there is none. */
static long switches_of(const char *pid)
{
    char           path[512], line[128];
    DIR           *tasks;
    struct dirent *e;
    long           sum = 0, n;

    snprintf(path, sizeof path, "/proc/%s/task", pid);
    tasks = *pid ? opendir(path) : NULL;
    while (tasks && (e = readdir(tasks))) {
        FILE *status;

        snprintf(path, sizeof path, "/proc/%s/task/%.64s/status", pid, e->d_name);
        status = fopen(path, "r");
        while (status && fgets(line, sizeof line, status))
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 || sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1)
                sum += n;
        if (status)
            fclose(status);
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

static void compare(struct job *jobs, struct raw *peers, unsigned count, uint64_t bytes, bool upload, double raw_of_one[2], const char *pid)
{
    double ours[ROUNDS], raw[ROUNDS], ratio[ROUNDS], staging[ROUNDS], to_staging[ROUNDS], o, r, gib = (double)(bytes * ROUNDS) / (1 << 30);
    long   of_raw = 0, of_ours = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        of_raw -= atomic_load(&raw_switches);
        raw[i] = measure(jobs, peers, count, bytes, RAW, upload);
        of_raw += atomic_load(&raw_switches);
        of_ours -= switches_of(pid);
        ours[i] = measure(jobs, peers, count, bytes, SERVICE, upload);
        of_ours += switches_of(pid);
        ratio[i] = ours[i] / raw[i];
        if (upload) {
            staging[i] = measure(jobs, peers, count, bytes, RAW_STAGING, upload);
            to_staging[i] = ours[i] / staging[i];
        }
    }
    o = median(ours);
    r = median(raw);
    if (count == 1)
        raw_of_one[upload] = r;
    printf("%-8s %u connection%s  raw %6.2f GB/s  gpurest %6.2f GB/s  ratio %.2f  (of raw over one: %.2f)\n",
           upload ? "upload" : "download", count, count == 1 ? " " : "s", r, o, median(ratio), o / raw_of_one[upload]);
    if (upload)
        printf("  raw into memory like the staging: %.2f GB/s  gpurest's ratio to it %.2f\n", median(staging), median(to_staging));
    if (*pid)
        printf("  context switches a GiB: raw peer %.0f, front-end %.0f\n", (double)of_raw / gib, (double)of_ours / gib);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const unsigned     counts[] = {1, 4};
    static struct job         jobs[CONNECTIONS_MAX_HERE];
    static struct raw         peers[CONNECTIONS_MAX_HERE];
    static struct http_client control;
    uint64_t                  bytes = (uint64_t)(argc > 2 ? atoi(argv[2]) : MIB_DEFAULT) * 1024 * 1024;
    double                    raw_of_one[2] = {0};
    const char               *pid = argc > 4 ? argv[4] : "";

    if (argc < 2 || bytes < CONNECTIONS_MAX_HERE * PIECE_BYTES || !http_connect(&control, argv[1], argc > 3 ? argv[3] : ""))
        fail("usage: bulk HOST:PORT [MIB [TOKEN [PID]]]");
    for (unsigned i = 0; i < CONNECTIONS_MAX_HERE; i++) {
        jobs[i].index = i;
        jobs[i].address = argv[1];
        jobs[i].token = argc > 3 ? argv[3] : "";
        jobs[i].window = make_memory(WINDOW_BYTES, false);
        windows[0][i] = make_memory(WINDOW_BYTES, false);
        windows[1][i] = make_memory(STAGING_BYTES, true);
    }
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        http_must(&control, "PUT", "/v1/sessions/bulk", "application/json", "{}", 2);
        make_buffers(&control, counts[k], bytes);
        compare(jobs, peers, counts[k], bytes, true, raw_of_one, pid);
        compare(jobs, peers, counts[k], bytes, false, raw_of_one, pid);
        http_must(&control, "DELETE", "/v1/sessions/bulk", NULL, NULL, 0);
    }
    return EXIT_SUCCESS;
}
