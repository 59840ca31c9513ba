/* The scripted server. */
#include "mock.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 4096, HEAD_BYTES_MAX = 65536 };

struct connection {
    struct mock *mock;
    int          fd;
    pthread_t    thread;
};

struct mock {
    mock_handler     *handler;
    void             *arg;
    bool              early, stopping;
    int               listener, requests, count;
    char              url[64];
    pthread_t         thread;
    pthread_mutex_t   lock;
    pthread_cond_t    changed;
    struct connection connections[CONNECTIONS_MAX];
    void (*on_head)(void *arg, const struct mock_request *q); /* NULL: none */
};

static void give_up(const char *what)
{
    perror(what);
    abort();
}

/* ---- a connection ---- */

/* Reads up to and including the empty line; bytes after it go to *rest. False: the peer is gone. */
static bool read_head(int fd, char *head, size_t *bytes, char **rest)
{
    char *end;

    for (;;) {
        head[*bytes] = '\0';
        end = strstr(head, "\r\n\r\n");
        if (end) {
            *rest = end + 4;
            return true;
        }
        ssize_t n = *bytes < HEAD_BYTES_MAX ? recv(fd, head + *bytes, HEAD_BYTES_MAX - *bytes, 0) : 0;
        if (n <= 0)
            return false;
        *bytes += (size_t)n;
    }
}

static size_t length_of(const char *head)
{
    const char *at = strcasestr(head, "\r\nContent-Length:");

    return at ? (size_t)strtoull(at + 17, NULL, 10) : 0;
}

static bool read_body(int fd, struct mock_request *q, const char *there, size_t there_bytes)
{
    q->body_bytes = length_of(q->head);
    q->body = malloc(q->body_bytes + 1);
    if (!q->body || there_bytes > q->body_bytes)
        give_up("mock: more than a body came");
    memcpy(q->body, there, there_bytes);
    for (size_t at = there_bytes; at < q->body_bytes;) {
        ssize_t n = recv(fd, q->body + at, q->body_bytes - at, 0);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    q->body[q->body_bytes] = '\0';
    return true;
}

static bool send_bytes(int fd, const char *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = send(fd, data + at, bytes - at, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static void hang(struct mock *m)
{
    pthread_mutex_lock(&m->lock);
    while (!m->stopping)
        pthread_cond_wait(&m->changed, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

/* False: the connection is over. */
static bool answer(struct connection *c, struct mock_request *q)
{
    struct mock       *m = c->mock;
    struct mock_answer a = {.cut = SIZE_MAX};
    size_t             at = 0;
    bool               on = true;

    pthread_mutex_lock(&m->lock);
    q->number = m->requests++;
    pthread_mutex_unlock(&m->lock);
    m->handler(m->arg, q, &a);
    if (a.hangs)
        hang(m);
    if (a.pause) {
        at = a.pause_at;
        on = send_bytes(c->fd, a.bytes, at);
        a.pause(m->arg);
    }
    on = on && send_bytes(c->fd, a.bytes + at, (a.count < a.cut ? a.count : a.cut) - at) && a.cut >= a.count && !a.closes && !a.hangs;
    free(a.bytes);
    return on;
}

static bool exchange(struct connection *c, char *head)
{
    struct mock_request q = {.head = head};
    size_t              bytes = 0;
    char               *rest;
    bool                on;

    if (!read_head(c->fd, head, &bytes, &rest))
        return false;
    char  *there = malloc(bytes + 1);
    size_t there_bytes = bytes - (size_t)(rest - head);
    memcpy(there, rest, there_bytes);
    *rest = '\0';
    if (sscanf(head, "%15s %511s", q.method, q.path) != 2)
        give_up("mock: no request");
    if (c->mock->on_head)
        c->mock->on_head(c->mock->arg, &q);
    on = (c->mock->early || read_body(c->fd, &q, there, there_bytes)) && answer(c, &q);
    free(q.body);
    free(there);
    return on && !c->mock->early;
}

/* Reads what the peer still sends, so that closing does not reset the connection and lose the answer. */
static void linger(int fd)
{
    char waste[65536];

    shutdown(fd, SHUT_WR);
    while (recv(fd, waste, sizeof waste, 0) > 0)
        continue;
}

static void *serve(void *argument)
{
    struct connection *c = argument;
    char              *head = malloc(HEAD_BYTES_MAX + 1);

    while (exchange(c, head))
        continue;
    linger(c->fd);
    free(head);
    return NULL;
}

static void *listen_on(void *argument)
{
    struct mock *m = argument;
    int          fd;

    while ((fd = accept(m->listener, NULL, NULL)) >= 0) {
        pthread_mutex_lock(&m->lock);
        struct connection *c = &m->connections[m->count];
        if (m->stopping || m->count == CONNECTIONS_MAX) {
            close(fd);
        } else {
            *c = (struct connection){.mock = m, .fd = fd};
            if (pthread_create(&c->thread, NULL, serve, c))
                give_up("mock: thread");
            m->count++;
        }
        pthread_mutex_unlock(&m->lock);
    }
    return NULL;
}

/* ---- the server ---- */

static struct mock *start(mock_handler *handler, void *arg, bool early)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          bytes = sizeof a;
    struct mock       *m = calloc(1, sizeof *m);

    m->handler = handler;
    m->arg = arg;
    m->early = early;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    m->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(m->listener, (struct sockaddr *)&a, sizeof a) || listen(m->listener, 128) ||
        getsockname(m->listener, (struct sockaddr *)&a, &bytes) || pthread_create(&m->thread, NULL, listen_on, m))
        give_up("mock");
    snprintf(m->url, sizeof m->url, "http://127.0.0.1:%d", ntohs(a.sin_port));
    return m;
}

struct mock *mock_start(mock_handler *handler, void *arg)
{
    return start(handler, arg, false);
}

struct mock *mock_start_early(mock_handler *handler, void *arg)
{
    return start(handler, arg, true);
}

void mock_on_head(struct mock *m, void (*on_head)(void *arg, const struct mock_request *q))
{
    m->on_head = on_head;
}

void mock_stop(struct mock *m)
{
    pthread_mutex_lock(&m->lock);
    m->stopping = true;
    pthread_cond_broadcast(&m->changed);
    for (int i = 0; i < m->count; i++)
        shutdown(m->connections[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&m->lock);
    shutdown(m->listener, SHUT_RDWR);
    pthread_join(m->thread, NULL);
    for (int i = 0; i < m->count; i++) {
        pthread_join(m->connections[i].thread, NULL);
        close(m->connections[i].fd);
    }
    close(m->listener);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    free(m);
}

const char *mock_url(const struct mock *m)
{
    return m->url;
}

int mock_requests(struct mock *m)
{
    int n;

    pthread_mutex_lock(&m->lock);
    n = m->requests;
    pthread_mutex_unlock(&m->lock);
    return n;
}

int mock_connections(struct mock *m)
{
    int n;

    pthread_mutex_lock(&m->lock);
    n = m->count;
    pthread_mutex_unlock(&m->lock);
    return n;
}

/* ---- answers ---- */

void mock_reply(struct mock_answer *a, int status, const char *headers, const char *type, const void *body, size_t bytes)
{
    char head[1024];
    int  n = snprintf(head, sizeof head, "HTTP/1.1 %d Scripted\r\nX-Request-Id: req-1\r\n%s%s%s%s", status, headers,
                     type ? "Content-Type: " : "", type ? type : "", type ? "\r\n" : "");

    if (status != 204)
        n += snprintf(head + n, sizeof head - (size_t)n, "Content-Length: %zu\r\n", bytes);
    n += snprintf(head + n, sizeof head - (size_t)n, "\r\n");
    a->count = (size_t)n + bytes;
    a->bytes = malloc(a->count + 1);
    memcpy(a->bytes, head, (size_t)n);
    if (bytes)
        memcpy(a->bytes + n, body, bytes);
}

void mock_json(struct mock_answer *a, int status, const char *json)
{
    mock_reply(a, status, "", "application/json", json, strlen(json));
}

void mock_problem(struct mock_answer *a, int status, const char *headers, const char *code, bool retryable)
{
    char json[512];

    snprintf(
        json, sizeof json,
        "{\"type\":\"/problems/%s\",\"title\":\"T\",\"status\":%d,\"detail\":\"the detail of %s\",\"code\":\"%s\",\"request_id\":\"req-7\","
        "\"retryable\":%s,\"errors\":[{\"pointer\":\"/args/2\",\"code\":\"size\",\"detail\":\"d\"}],\"cuda\":null,\"compile\":null}",
        code, status, code, code, retryable ? "true" : "false");
    mock_reply(a, status, headers, "application/problem+json", json, strlen(json));
}

void mock_raw(struct mock_answer *a, const char *text)
{
    a->bytes = strdup(text);
    a->count = strlen(text);
    a->closes = true;
}
