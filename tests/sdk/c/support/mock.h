/* A service within the test: a TCP server whose answers come from a function of the test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mock_request {
    char   method[16], path[512];
    char  *head; /* with the request line; NUL-terminated */
    char  *body;
    size_t body_bytes;
    int    number; /* counts all requests, from 0 */
};

struct mock_answer {
    char  *bytes; /* from malloc; the server frees it */
    size_t count;
    size_t cut;    /* sends only so many bytes, then closes; SIZE_MAX: all */
    bool   closes; /* the connection ends after it */
    bool   hangs;  /* nothing is sent before mock_stop */
    size_t pause_at;
    void (*pause)(void *arg); /* of the handler's arg; is called when pause_at bytes are sent */
};

/* Called on the connection's thread, concurrently; before the body is read if the server was started by mock_start_early. */
typedef void mock_handler(void *arg, const struct mock_request *q, struct mock_answer *a);

struct mock;

struct mock *mock_start(mock_handler *handler, void *arg);
/* As mock_start; answers when the head has arrived, and reads no body. */
struct mock *mock_start_early(mock_handler *handler, void *arg);
/* Before the first request: what is called, with the handler's arg, before a body is read. */
void mock_on_head(struct mock *m, void (*on_head)(void *arg, const struct mock_request *q));
/* Ends every connection and all threads. */
void mock_stop(struct mock *m);
/* http://127.0.0.1:PORT; valid until mock_stop. */
const char *mock_url(const struct mock *m);
int         mock_requests(struct mock *m);
int         mock_connections(struct mock *m);

/* Fills an answer: status line, Content-Length, `headers` (lines with CRLF, or ""), body. */
void mock_reply(struct mock_answer *a, int status, const char *headers, const char *type, const void *body, size_t bytes);
void mock_json(struct mock_answer *a, int status, const char *json);
void mock_problem(struct mock_answer *a, int status, const char *headers, const char *code, bool retryable);
/* Sends the bytes unchanged; the connection ends after them. */
void mock_raw(struct mock_answer *a, const char *text);

/* ---- a small service: sessions, buffers in memory, a module "k(u64, u32)", launches that add 1 to every byte of their first buffer ----
 */

struct tiny;

struct tiny *tiny_create(void);
void         tiny_destroy(struct tiny *t);
mock_handler tiny_handle; /* its arg is a struct tiny */

#define MOCK_VERSION "{\"server\":\"gpurestd\",\"version\":\"1.0.0\",\"api\":{\"least\":\"v1\",\"most\":\"v1\"}}"
