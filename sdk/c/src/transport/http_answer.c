/* HTTP/1.1 answers: status, header, and a body by length, in chunks or until close. */
#include "transport/http_answer.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

static gpurest_status malformed_answer(const struct http_answer *a, const char *what)
{
    return fail(GPUREST_E_PROTO, "check that the URL is that of a gpurest service", "the answer to %s %.200s is not HTTP: %s", a->x->method,
                a->x->path, what);
}

void http_answer_init(struct http_answer *a, struct exchange *x)
{
    *a = (struct http_answer){.x = x};
    buf_clear(&x->head);
    buf_init(&a->lines, ANSWER_HEAD_BYTES_MAX);
}

void http_answer_finish(struct http_answer *a)
{
    buf_finish(&a->lines);
}

/* ---- the head ---- */

static gpurest_status parse_status(struct http_answer *a, const char *line)
{
    if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ')
        return malformed_answer(a, "it does not begin with HTTP/1.1");
    a->x->status = 0;
    for (int i = 9; i < 12; i++) {
        if (line[i] < '0' || line[i] > '9')
            return malformed_answer(a, "its status is not a number");
        a->x->status = 10 * a->x->status + (line[i] - '0');
    }
    if ((line[12] != ' ' && line[12] != '\r') || a->x->status < 100 || a->x->status > 599)
        return malformed_answer(a, "its status is not a number");
    a->closes = line[7] == '0';
    return GPUREST_OK;
}

static gpurest_status parse_length(struct http_answer *a, const char *text)
{
    uint64_t length = 0;

    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9' || length > (UINT64_MAX - 9) / 10)
            return malformed_answer(a, "its Content-Length is not a number");
        length = 10 * length + (uint64_t)(*p - '0');
    }
    if (!*text)
        return malformed_answer(a, "its Content-Length is not a number");
    a->left = length;
    a->state = length ? ANSWER_LENGTH : ANSWER_DONE;
    return GPUREST_OK;
}

static bool bodyless(const struct exchange *x)
{
    return x->status == 204 || x->status == 304 || strcmp(x->method, "HEAD") == 0;
}

/* It must not: whether a body follows nobody knows, and it would be taken for the next answer. */
static bool announces_body(const struct exchange *x)
{
    char text[64];

    if (x->status != 204)
        return false;
    return exchange_header(x, "Transfer-Encoding", text, sizeof text) ||
           (exchange_header(x, "Content-Length", text, sizeof text) && strcmp(text, "0") != 0);
}

static bool contains(const char *text, const char *word)
{
    while (*text && strncasecmp(text, word, strlen(word)) != 0)
        text++;
    return *text;
}

static gpurest_status begin_body(struct http_answer *a)
{
    struct exchange *x = a->x;
    char             text[64];

    if (exchange_header(x, "Connection", text, sizeof text) && contains(text, "close"))
        a->closes = true;
    if (bodyless(x)) {
        a->closes = a->closes || announces_body(x);
        a->state = ANSWER_DONE;
        return GPUREST_OK;
    }
    if (exchange_header(x, "Transfer-Encoding", text, sizeof text)) {
        if (strcasecmp(text, "chunked") != 0)
            return malformed_answer(a, "its Transfer-Encoding is unknown");
        a->state = ANSWER_CHUNK_SIZE;
        return GPUREST_OK;
    }
    if (exchange_header(x, "Content-Length", text, sizeof text))
        return parse_length(a, text);
    a->closes = true;
    a->state = ANSWER_UNTIL_CLOSE;
    return GPUREST_OK;
}

/* The status line and the empty one go; skips interim (1xx) answers. */
static gpurest_status finish_head(struct http_answer *a)
{
    struct buf    *head = &a->x->head;
    const char    *rest = strstr(head->data, "\r\n") + 2;
    gpurest_status st = parse_status(a, head->data);

    if (st)
        return st;
    if (memchr(head->data, '\0', head->bytes))
        return malformed_answer(a, "it has a NUL in its header");
    if (a->x->status / 100 == 1) {
        buf_clear(head);
        return GPUREST_OK;
    }
    head->bytes -= (size_t)(rest - head->data) + 2;
    memmove(head->data, rest, head->bytes);
    head->data[head->bytes] = '\0';
    return begin_body(a);
}

/* Bytes of `data` up to and including `end`, which ends with a line; all of them if it is not there. *complete: it is. */
static size_t bytes_until(const char *data, size_t bytes, const char *end, size_t end_bytes, bool *complete)
{
    size_t take = 0;

    *complete = false;
    while (take < bytes && !*complete) {
        const char *line_end = memchr(data + take, '\n', bytes - take);

        take = line_end ? (size_t)(line_end - data) + 1 : bytes;
        *complete = take >= end_bytes && memcmp(data + take - end_bytes, end, end_bytes) == 0;
    }
    return take;
}

/* Moves bytes to `lines` up to and including `end`, which ends with a line; true when it is complete. In one piece if all of it is there. */
static gpurest_status gather_until(struct http_answer *a, struct buf *lines, const char **data, size_t *bytes, const char *end, size_t max,
                                   bool *complete)
{
    size_t end_bytes = strlen(end);

    *complete = false;
    while (*bytes && !*complete) {
        const char *line_end = lines->bytes ? memchr(*data, '\n', *bytes) : NULL;
        size_t      take = line_end ? (size_t)(line_end - *data) + 1 : *bytes;

        if (!lines->bytes)
            take = bytes_until(*data, *bytes, end, end_bytes, complete);
        if (take > max - lines->bytes)
            return malformed_answer(a, "its header is too long");
        if (!buf_add(lines, *data, take))
            return fail_memory();
        *complete = lines->bytes >= end_bytes && memcmp(lines->data + lines->bytes - end_bytes, end, end_bytes) == 0;
        *data += take;
        *bytes -= take;
    }
    assert(lines->bytes <= max);
    return GPUREST_OK;
}

static gpurest_status feed_head(struct http_answer *a, const char **data, size_t *bytes)
{
    bool           complete;
    struct buf    *head = &a->x->head;
    gpurest_status st = gather_until(a, head, data, bytes, "\r\n\r\n", ANSWER_HEAD_BYTES_MAX, &complete);

    if (!st && head->bytes >= 5 && memcmp(head->data, "HTTP/", 5) != 0)
        return malformed_answer(a, "it does not begin with HTTP/1.1");
    return st || !complete ? st : finish_head(a);
}

/* ---- the body ---- */

static gpurest_status feed_counted(struct http_answer *a, const char **data, size_t *bytes, enum answer_state next)
{
    size_t         n = *bytes < a->left ? *bytes : (size_t)a->left;
    gpurest_status st = exchange_take(a->x, *data, n);

    *data += n;
    *bytes -= n;
    a->left -= n;
    if (a->left == 0)
        a->state = next;
    return st;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static gpurest_status parse_chunk_size(struct http_answer *a)
{
    const char *p = a->lines.data;
    uint64_t    size = 0;

    for (; hex_digit(*p) >= 0; p++) {
        if (size >> 60)
            return malformed_answer(a, "a chunk is too long");
        size = size << 4 | (uint64_t)hex_digit(*p);
    }
    if (p == a->lines.data || (*p != '\r' && *p != ';' && *p != ' '))
        return malformed_answer(a, "a chunk has no size");
    a->left = size;
    a->state = size ? ANSWER_CHUNK : ANSWER_TRAILER;
    buf_clear(&a->lines);
    return GPUREST_OK;
}

static gpurest_status feed_chunk_lines(struct http_answer *a, const char **data, size_t *bytes)
{
    bool           complete;
    gpurest_status st = gather_until(a, &a->lines, data, bytes, "\r\n", CHUNK_LINE_BYTES_MAX, &complete);

    if (st || !complete)
        return st;
    if (a->state == ANSWER_CHUNK_SIZE)
        return parse_chunk_size(a);
    if (a->state == ANSWER_CHUNK_END && a->lines.bytes != 2)
        return malformed_answer(a, "a chunk does not end where it should");
    if (a->state == ANSWER_CHUNK_END)
        a->state = ANSWER_CHUNK_SIZE;
    else if (a->lines.bytes == 2)
        a->state = ANSWER_DONE;
    buf_clear(&a->lines);
    return GPUREST_OK;
}

static gpurest_status feed_some(struct http_answer *a, const char **data, size_t *bytes)
{
    gpurest_status st;

    switch (a->state) {
    case ANSWER_HEAD:
        return feed_head(a, data, bytes);
    case ANSWER_LENGTH:
        return feed_counted(a, data, bytes, ANSWER_DONE);
    case ANSWER_CHUNK:
        return feed_counted(a, data, bytes, ANSWER_CHUNK_END);
    case ANSWER_CHUNK_SIZE:
    case ANSWER_CHUNK_END:
    case ANSWER_TRAILER:
        return feed_chunk_lines(a, data, bytes);
    case ANSWER_UNTIL_CLOSE:
        st = exchange_take(a->x, *data, *bytes);
        *bytes = 0;
        return st;
    case ANSWER_DONE:
        break;
    }
    return malformed_answer(a, "data after its end");
}

gpurest_status http_answer_feed(struct http_answer *a, const char *data, size_t bytes)
{
    gpurest_status st = GPUREST_OK;

    while (bytes && !st)
        st = feed_some(a, &data, &bytes);
    return st;
}

void *http_answer_place(struct http_answer *a, size_t *room)
{
    void *place = a->state == ANSWER_LENGTH ? exchange_place(a->x, room) : NULL;

    if (place && *room > a->left)
        *room = (size_t)a->left;
    return place;
}

gpurest_status http_answer_placed(struct http_answer *a, size_t bytes)
{
    a->left -= bytes;
    if (a->left == 0)
        a->state = ANSWER_DONE;
    return exchange_placed(a->x, bytes);
}

gpurest_status http_answer_closed(struct http_answer *a)
{
    if (a->state == ANSWER_UNTIL_CLOSE)
        a->state = ANSWER_DONE;
    if (a->state == ANSWER_DONE)
        return GPUREST_OK;
    return fail(GPUREST_E_CONNECT, "see the log of the service and of proxies in front of it",
                "the connection closed during the answer to %s %.200s", a->x->method, a->x->path);
}
