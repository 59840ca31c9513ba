/* The connection is cut at every byte of an answer: always a clear failure, never a wrong success, never a hang. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/mock.h"

enum { IDLE_MS = 5000 };

struct cut {
    const char    *path; /* part of the path of the request whose answer is cut */
    const char    *method;
    _Atomic size_t at;    /* SIZE_MAX: not cut */
    _Atomic size_t whole; /* bytes of the whole answer, measured when it was not cut */
    size_t         data_bytes;
};

/* A frame with one segment of 3 bytes and the results of two operations. */
static void reply_frame(struct mock_answer *a)
{
    static const char message[] =
        "{\"status\":\"succeeded\",\"segments\":[{\"id\":\"r0\",\"size\":3}],\"ops\":[],\"timing\":{},\"kept\":{}}";
    char frame[16 + 112 + 64];

    memset(frame, ' ', sizeof frame);
    memcpy(frame, "\x89GPR\r\n\x1a\n\x01\0\0\0", 12);
    frame[12] = 112;
    frame[13] = frame[14] = frame[15] = 0;
    memcpy(frame + 16, message, strlen(message));
    memset(frame + 128, 0, 64);
    memcpy(frame + 128, "abc", 3);
    mock_reply(a, 200, "", "application/vnd.gpurest.batch", frame, sizeof frame);
}

static void answer(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    struct cut *c = arg;

    if (strcmp(q->path, "/version") == 0)
        mock_json(a, 200, MOCK_VERSION);
    else if (strstr(q->path, "/batches"))
        reply_frame(a);
    else if (strstr(q->path, "/modules/"))
        mock_json(a, 201, "{\"id\":\"m\",\"kernels\":[{\"name\":\"k\",\"params\":[{\"offset\":0,\"size\":8}]}],\"log\":\"\"}");
    else if (strstr(q->path, "/data") && strcmp(q->method, "GET") == 0) {
        char *data = calloc(1, c->data_bytes);
        mock_reply(a, 206, "", "application/octet-stream", data, c->data_bytes);
        free(data);
    } else if (strstr(q->path, "/data"))
        mock_reply(a, 204, "", NULL, NULL, 0);
    else
        mock_json(a, 200, "{\"id\":\"s\",\"size\":64}");
    if (strstr(q->path, c->path) && strcmp(q->method, c->method) == 0) {
        c->whole = a->count;
        a->cut = c->at;
    }
}

static gpurest_status open_client(gpurest_client **out, const char *url, int use_libcurl)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;

    o.url = url;
    o.max_retries = 0;
    o.idle_timeout_ms = IDLE_MS;
    o.use_libcurl = use_libcurl;
    return gpurest_open_with(out, &o);
}

typedef gpurest_status action(gpurest_session *s, gpurest_buffer b);

static gpurest_status act_read(gpurest_session *s, gpurest_buffer b)
{
    char data[64];

    return gpurest_read(s, b, 0, data, sizeof data);
}

static gpurest_status act_write(gpurest_session *s, gpurest_buffer b)
{
    return gpurest_write(s, b, 0, "x", 1);
}

static gpurest_status act_compile(gpurest_session *s, gpurest_buffer b)
{
    gpurest_module *m;
    gpurest_status  st = gpurest_compile(s, &m, "source", NULL, 0);

    (void)b;
    if (!st)
        gpurest_module_unload(m);
    return st;
}

static gpurest_status act_batch(gpurest_session *s, gpurest_buffer b)
{
    gpurest_batch *batch;
    char           data[3] = "";
    gpurest_status st = gpurest_batch_begin(s, &batch);

    if (!st)
        st = gpurest_read(s, b, 0, data, sizeof data);
    if (!st)
        st = gpurest_batch_submit(batch, NULL);
    cr_assert(st || memcmp(data, "abc", 3) == 0);
    return st;
}

static gpurest_status perform(const char *url, int use_libcurl, action *act)
{
    gpurest_client  *c = NULL;
    gpurest_session *s = NULL;
    gpurest_buffer   b;
    gpurest_status   st = open_client(&c, url, use_libcurl);

    if (!st)
        st = gpurest_session_open(&s, c, NULL);
    if (!st)
        st = gpurest_buffer_open(s, &b, "b");
    if (!st && act)
        st = act(s, b);
    gpurest_session_close(s);
    gpurest_close(c);
    return st;
}

static void cut_everywhere(const char *method, const char *path, action *act)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct cut   c = {.method = method, .path = path, .at = SIZE_MAX, .data_bytes = 64};
        struct mock *m = mock_start(answer, &c);
        cr_assert_eq(perform(mock_url(m), use_libcurl, act), GPUREST_OK, "%s", gpurest_last_error()->message);
        cr_assert_gt(c.whole, 40);
        for (size_t at = 0; at < c.whole; at++) {
            c.at = at;
            gpurest_status st = perform(mock_url(m), use_libcurl, act);
            cr_assert(st == GPUREST_E_CONNECT || (use_libcurl && st == GPUREST_E_PROTO), "%s %s cut at %zu: %s", method, path, at,
                      gpurest_status_name(st));
        }
        mock_stop(m);
    }
}

Test(cut, of_the_version)
{
    cut_everywhere("GET", "/version", NULL);
}

Test(cut, of_a_new_session)
{
    cut_everywhere("PUT", "/v1/sessions/c-", NULL);
}

Test(cut, of_a_download)
{
    cut_everywhere("GET", "/data", act_read);
}

Test(cut, of_the_answer_to_an_upload)
{
    cut_everywhere("PUT", "/data", act_write);
}

Test(cut, of_a_module)
{
    cut_everywhere("PUT", "/modules/", act_compile);
}

Test(cut, of_a_batch)
{
    cut_everywhere("POST", "/batches", act_batch);
}
