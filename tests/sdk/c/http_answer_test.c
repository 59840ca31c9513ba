/* The parser of answers: every split, every form of body, and invalid HTTP. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "transport/http_answer.h"

struct outcome {
    gpurest_status st;
    int            status;
    bool           done, closes;
    char           body[256];
    size_t         body_bytes;
};

/* Feeds pieces of `step` bytes, then the end of the connection if `ends`. */
static struct outcome parse(const char *text, size_t bytes, size_t step, const char *method, bool ends)
{
    struct outcome     o = {.st = GPUREST_OK};
    struct exchange    x;
    struct http_answer a;

    exchange_init(&x, method, "/x");
    http_answer_init(&a, &x);
    for (size_t at = 0; at < bytes && !o.st && a.state != ANSWER_DONE; at += step) {
        size_t n = bytes - at < step ? bytes - at : step;
        char  *copy = malloc(n); /* so that reads past its end are detected */
        memcpy(copy, text + at, n);
        o.st = http_answer_feed(&a, copy, n);
        free(copy);
    }
    if (!o.st && ends)
        o.st = http_answer_closed(&a);
    o.status = x.status;
    o.done = a.state == ANSWER_DONE;
    o.closes = a.closes;
    o.body_bytes = x.body.bytes;
    cr_assert_lt(x.body.bytes, sizeof o.body);
    memcpy(o.body, buf_text(&x.body), x.body.bytes + (x.body.data != NULL));
    http_answer_finish(&a);
    exchange_finish(&x);
    return o;
}

static struct outcome parse_text(const char *text, size_t step)
{
    return parse(text, strlen(text), step, "GET", true);
}

Test(http_answer, takes_every_form_of_body_in_every_split)
{
    static const struct {
        const char *text, *body;
        int         status;
        bool        closes;
    } good[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, false},
        {"HTTP/1.1 200 OK\r\ncontent-length:   0\r\n\r\n", "", 200, false},
        {"HTTP/1.1 404 \r\nContent-Length: 2\r\nConnection: Close\r\n\r\n{}", "{}", 404, true},
        {"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", "x", 200, false},
        {"HTTP/1.1 204 None\r\nA: b\r\n\r\n", "", 204, false},
        {"HTTP/1.1 204 None\r\nContent-Length: 0\r\n\r\n", "", 204, false},
        {"HTTP/1.1 204 None\r\nContent-Length: 5\r\n\r\n", "", 204, true},
        {"HTTP/1.1 204 None\r\nTransfer-Encoding: chunked\r\n\r\n", "", 204, true},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\ny", "y", 201, false},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;e=f\r\n, and more\r\n0\r\nTrailer: t\r\n\r\n",
         "hello, and more", 200, false},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", 200, false},
        {"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nuntil the end", "until the end", 200, true},
        {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", 200, true},
    };

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        for (size_t step = 1; step <= strlen(good[i].text); step++) {
            struct outcome o = parse_text(good[i].text, step);
            cr_assert_eq(o.st, GPUREST_OK, "%zu in steps of %zu", i, step);
            cr_assert(o.done);
            cr_assert_eq(o.status, good[i].status);
            cr_assert_eq(o.closes, good[i].closes);
            cr_assert_str_eq(o.body, good[i].body);
        }
}

Test(http_answer, refuses_what_is_no_http)
{
    static const char *const bad[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 999 No\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "<html>hello</html>",
        "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloworld\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (size_t step = 1; step <= strlen(bad[i]); step++)
            cr_assert_eq(parse_text(bad[i], step).st, GPUREST_E_PROTO, "%zu in steps of %zu", i, step);
}

Test(http_answer, an_end_in_the_middle_is_a_broken_connection)
{
    static const char *const whole[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        for (size_t cut = 0; cut < strlen(whole[i]); cut++)
            cr_assert_eq(parse(whole[i], cut, 3, "GET", true).st, GPUREST_E_CONNECT, "%zu cut at %zu", i, cut);
}

Test(http_answer, a_head_has_a_bound)
{
    size_t bytes = 2 * ANSWER_HEAD_BYTES_MAX;
    char  *text = malloc(bytes);

    memset(text, 'a', bytes);
    memcpy(text, "HTTP/1.1 200 OK\r\nA: ", 20);
    cr_assert_eq(parse(text, bytes, 4096, "GET", true).st, GPUREST_E_PROTO);
    free(text);
}

Test(http_answer, an_answer_to_head_has_no_body)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    struct outcome    o = parse(text, strlen(text), 7, "HEAD", false);

    cr_assert_eq(o.st, GPUREST_OK);
    cr_assert(o.done);
}

Test(http_answer, a_body_into_memory_has_its_length_exactly)
{
    static const char   text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    static const size_t sizes[] = {4, 5, 6};
    char                memory[6];
    struct exchange     x;
    struct http_answer  a;

    for (size_t i = 0; i < 3; i++) {
        size_t room = 0;
        exchange_init(&x, "GET", "/x");
        x.into = memory;
        x.into_bytes = sizes[i];
        http_answer_init(&a, &x);
        cr_assert_eq(http_answer_feed(&a, text, strlen(text)), GPUREST_OK);
        cr_assert_not_null(http_answer_place(&a, &room));
        cr_assert_eq(room, sizes[i] < 5 ? sizes[i] : 5);
        gpurest_status st = http_answer_feed(&a, "hello", 5);
        if (!st)
            st = exchange_end(&x);
        cr_assert_eq(st, sizes[i] == 5 ? GPUREST_OK : GPUREST_E_PROTO);
        http_answer_finish(&a);
        exchange_finish(&x);
    }
    cr_assert_arr_eq(memory, "hello", 4);
}
