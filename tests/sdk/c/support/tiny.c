/* A small service in memory, for tests with many threads: every path has its bytes. */
#include "mock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 4096 };

struct entry {
    char   name[128];
    char  *bytes;
    size_t count;
};

struct tiny {
    pthread_mutex_t lock;
    struct entry    entries[ENTRIES_MAX];
    int             count;
};

struct tiny *tiny_create(void)
{
    struct tiny *t = calloc(1, sizeof *t);

    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void tiny_destroy(struct tiny *t)
{
    for (int i = 0; i < t->count; i++)
        free(t->entries[i].bytes);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static struct entry *find(struct tiny *t, const char *name)
{
    for (int i = 0; i < t->count; i++)
        if (t->entries[i].bytes && strcmp(t->entries[i].name, name) == 0)
            return &t->entries[i];
    return NULL;
}

static void make(struct tiny *t, const char *name, size_t count, const void *contents)
{
    struct entry *e = find(t, name);

    if (e)
        return;
    e = &t->entries[t->count++];
    if (t->count == ENTRIES_MAX)
        abort();
    snprintf(e->name, sizeof e->name, "%s", name);
    e->bytes = calloc(1, count);
    e->count = count;
    if (contents)
        memcpy(e->bytes, contents, count);
}

/* "bytes a-b" or "bytes=a-b" of a header; without it, everything. */
static void range_of(const struct mock_request *q, const char *header, const struct entry *e, size_t *from, size_t *count)
{
    const char   *at = strcasestr(q->head, header);
    unsigned long a, b;

    *from = 0;
    *count = e->count;
    if (at && (sscanf(at + strlen(header), "bytes %lu-%lu", &a, &b) == 2 || sscanf(at + strlen(header), "bytes=%lu-%lu", &a, &b) == 2)) {
        *from = a;
        *count = b + 1 - a;
    }
}

static void data(struct tiny *t, const struct mock_request *q, struct mock_answer *a, const char *name)
{
    struct entry *e = find(t, name);
    size_t        from, count;

    if (!e) {
        mock_problem(a, 404, "", "buffer_not_found", false);
    } else if (strcmp(q->method, "PUT") == 0) {
        range_of(q, "Content-Range: ", e, &from, &count);
        if (count != q->body_bytes || from + count > e->count) {
            mock_problem(a, 416, "", "range_not_satisfiable", false);
            return;
        }
        memcpy(e->bytes + from, q->body, count);
        mock_reply(a, 204, "", NULL, NULL, 0);
    } else {
        range_of(q, "Range: ", e, &from, &count);
        mock_reply(a, 206, "", "application/octet-stream", e->bytes + from, count);
    }
}

static void buffer(struct tiny *t, const struct mock_request *q, struct mock_answer *a, const char *name)
{
    struct entry *e = find(t, name);
    unsigned long count = 0;

    if (strcmp(q->method, "DELETE") == 0) {
        if (e) {
            free(e->bytes);
            e->bytes = NULL;
        }
        mock_reply(a, 204, "", NULL, NULL, 0);
        return;
    }
    if (strcasestr(q->head, "octet-stream"))
        make(t, name, q->body_bytes, q->body);
    else if (sscanf(q->body, "{\"size\":%lu}", &count) == 1)
        make(t, name, count, NULL);
    mock_json(a, 201, "{\"id\":\"x\"}");
}

static void launch(struct tiny *t, const struct mock_request *q, struct mock_answer *a)
{
    const char   *at = strstr(q->body, "\"buf\":\"");
    char          name[128] = "";
    struct entry *e = NULL;

    if (at && sscanf(at + 7, "%127[^\"]", name) == 1)
        e = find(t, name);
    for (size_t i = 0; e && i < e->count; i++)
        e->bytes[i]++;
    if (e)
        mock_json(a, 200, "{\"id\":\"l\",\"state\":\"succeeded\",\"gpu_us\":1.5,\"stdout\":\"\"}");
    else
        mock_problem(a, 422, "", "argument_mismatch", false);
}

static void handle(struct tiny *t, const struct mock_request *q, struct mock_answer *a)
{
    const char *at = strstr(q->path, "/buffers/");
    char        name[128] = "";

    if (strcmp(q->path, "/version") == 0)
        mock_json(a, 200, MOCK_VERSION);
    else if (at && sscanf(at + 9, "%127[^/]", name) == 1 && strstr(at, "/data"))
        data(t, q, a, name);
    else if (at)
        buffer(t, q, a, name);
    else if (strstr(q->path, "/modules/"))
        mock_json(a, 201,
                  "{\"id\":\"m\",\"kernels\":[{\"name\":\"k\",\"mangled\":\"k\",\"params\":[{\"offset\":0,\"size\":8,\"type\":\"u64\"},"
                  "{\"offset\":8,\"size\":4,\"type\":\"u32\"}]}],\"log\":\"\"}");
    else if (strstr(q->path, "/launches"))
        launch(t, q, a);
    else if (strcmp(q->method, "DELETE") == 0)
        mock_reply(a, 204, "", NULL, NULL, 0);
    else
        mock_json(a, 200, "{\"id\":\"s\"}");
}

void tiny_handle(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    struct tiny *t = arg;

    pthread_mutex_lock(&t->lock);
    handle(t, q, a);
    pthread_mutex_unlock(&t->lock);
}
