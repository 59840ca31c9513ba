/* Wrong answers, and services that do not answer. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/mock.h"

static gpurest_status open_with(gpurest_client **out, const char *url, int use_libcurl, int retries, int idle_ms)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;

    o.url = url;
    o.token = "secret";
    o.max_retries = retries;
    o.idle_timeout_ms = idle_ms;
    o.use_libcurl = use_libcurl;
    return gpurest_open_with(out, &o);
}

/* ---- one answer to everything ---- */

struct one {
    int         status;
    const char *code, *body, *type, *raw;
};

static void answer_one(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    const struct one *o = arg;

    (void)q;
    if (o->raw)
        mock_raw(a, o->raw);
    else if (o->code)
        mock_problem(a, o->status, "", o->code, false);
    else
        mock_reply(a, o->status, "", o->type, o->body, strlen(o->body));
}

static void check_open(const struct one *o, gpurest_status expected)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct mock    *m = mock_start(answer_one, (void *)(uintptr_t)o);
        gpurest_client *c = NULL;
        gpurest_status  st = open_with(&c, mock_url(m), use_libcurl, 0, 5000);
        cr_assert_eq(st, expected, "%s: %s", gpurest_status_name(st), gpurest_last_error()->message);
        cr_assert_null(c);
        cr_assert_eq(gpurest_last_error()->status, expected);
        cr_assert_neq(gpurest_last_error()->message[0], '\0');
        mock_stop(m);
    }
}

Test(refusal, answers_that_are_no_version)
{
    check_open(&(struct one){200, NULL, "<html>welcome</html>", "text/html", NULL}, GPUREST_E_PROTO);
    check_open(&(struct one){200, NULL, "", "application/json", NULL}, GPUREST_E_PROTO);
    check_open(&(struct one){200, NULL, "[]", "application/json", NULL}, GPUREST_E_PROTO);
    check_open(&(struct one){200, NULL, "{\"server\":\"other\"}", "application/json", NULL}, GPUREST_E_UNSUPPORTED);
    check_open(&(struct one){.raw = "SSH-2.0-OpenSSH_9.2\r\n"}, GPUREST_E_PROTO);
}

Test(refusal, versions_that_do_not_fit)
{
    check_open(&(struct one){200, NULL, "{\"server\":\"gpurestd\",\"api\":{\"least\":\"v2\",\"most\":\"v3\"}}", "application/json", NULL},
               GPUREST_E_UNSUPPORTED);
    check_open(&(struct one){200, NULL, "{\"server\":\"gpurestd\",\"api\":{\"least\":\"v0\",\"most\":\"v0\"}}", "application/json", NULL},
               GPUREST_E_UNSUPPORTED);
}

Test(refusal, statuses_become_ours)
{
    check_open(&(struct one){.status = 401, .code = "unauthenticated"}, GPUREST_E_AUTH);
    check_open(&(struct one){.status = 403, .code = "insufficient_scope"}, GPUREST_E_AUTH);
    check_open(&(struct one){.status = 403, .code = "quota_exceeded"}, GPUREST_E_LIMIT);
    check_open(&(struct one){.status = 404, .code = "not_found"}, GPUREST_E_NOTFOUND);
    check_open(&(struct one){.status = 409, .code = "session_faulted"}, GPUREST_E_SESSION_LOST);
    check_open(&(struct one){.status = 422, .code = "compile_failed"}, GPUREST_E_COMPILE);
    check_open(&(struct one){.status = 422, .code = "kernel_fault"}, GPUREST_E_CUDA);
    check_open(&(struct one){.status = 429, .code = "rate_limited"}, GPUREST_E_BUSY);
    check_open(&(struct one){.status = 500, .code = "internal"}, GPUREST_E_SERVER);
    check_open(&(struct one){.status = 503, .code = "draining"}, GPUREST_E_BUSY);
    check_open(&(struct one){.status = 504, .code = "execution_timeout"}, GPUREST_E_TIMEOUT);
    check_open(&(struct one){.status = 507, .code = "device_memory_exhausted"}, GPUREST_E_OOM_DEVICE);
    check_open(&(struct one){.status = 418, .code = "something_new"}, GPUREST_E_INVAL);
    check_open(&(struct one){.status = 599, .code = "something_new"}, GPUREST_E_SERVER);
    check_open(&(struct one){301, NULL, "", "text/html", NULL}, GPUREST_E_PROTO);
    check_open(&(struct one){502, NULL, "<html>bad gateway</html>", "text/html", NULL}, GPUREST_E_SERVER);
}

Test(refusal, a_problem_is_told_in_full)
{
    struct one           o = {.status = 422, .code = "argument_mismatch"};
    struct mock         *m = mock_start(answer_one, &o);
    gpurest_client      *c;
    const gpurest_error *e;

    cr_assert_eq(open_with(&c, mock_url(m), 0, 0, 5000), GPUREST_E_INVAL);
    e = gpurest_last_error();
    cr_assert_eq(e->http_status, 422);
    cr_assert_str_eq(e->code, "argument_mismatch");
    cr_assert_str_eq(e->message, "the detail of argument_mismatch");
    cr_assert_str_eq(e->pointer, "/args/2");
    cr_assert_str_eq(e->request_id, "req-7");
    cr_assert_eq(e->retryable, 0);
    mock_stop(m);
}

Test(refusal, an_unreachable_service_is_named)
{
    gpurest_client *c;

    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        cr_assert_eq(open_with(&c, "http://127.0.0.1:1", use_libcurl, 0, 5000), GPUREST_E_CONNECT);
        cr_assert_neq(gpurest_last_error()->hint[0], '\0');
        cr_assert_eq(open_with(&c, "unix:///nonexistent/sock", use_libcurl, 0, 5000), GPUREST_E_CONNECT);
    }
    cr_assert_eq(open_with(&c, "ftp://x", 0, 0, 5000), GPUREST_E_INVAL);
}

/* ---- hanging ---- */

struct hanging {
    const char *path;
};

static void answer_hanging(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    const struct hanging *h = arg;

    if (strstr(q->path, h->path))
        a->hangs = true;
    else if (strcmp(q->path, "/version") == 0)
        mock_json(a, 200, MOCK_VERSION);
    else
        mock_json(a, 200, "{\"id\":\"s\",\"size\":67108864}");
}

Test(refusal, a_stalled_service_is_given_up)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct hanging  h = {"/version"};
        struct mock    *m = mock_start(answer_hanging, &h);
        gpurest_client *c;
        cr_assert_eq(open_with(&c, mock_url(m), use_libcurl, 2, 100), GPUREST_E_TIMEOUT);
        while (mock_requests(m) == 0) /* on a loaded machine the mock reads it later than the client gives up */
            usleep(1000);
        cr_assert_eq(mock_requests(m), 1); /* a request that may still run is not repeated */
        mock_stop(m);
    }
}

static gpurest_op *hanging_read(gpurest_session *s, void *into)
{
    gpurest_buffer b;
    gpurest_op    *op;

    cr_assert_eq(gpurest_buffer_open(s, &b, "b"), GPUREST_OK);
    cr_assert_eq(gpurest_read_async(s, b, 0, into, 8, &op), GPUREST_OK);
    return op;
}

Test(refusal, a_hanging_operation_can_be_cancelled)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct hanging   h = {"/data"};
        struct mock     *m = mock_start(answer_hanging, &h);
        gpurest_client  *c;
        gpurest_session *s;
        gpurest_op      *op, *behind;
        char             data[8];
        cr_assert_eq(open_with(&c, mock_url(m), use_libcurl, 0, 60000), GPUREST_OK);
        cr_assert_eq(gpurest_session_open(&s, c, NULL), GPUREST_OK);
        op = hanging_read(s, data);
        while (mock_requests(m) < 4)
            usleep(1000);
        cr_assert_eq(gpurest_op_wait(op, 1), GPUREST_E_TIMEOUT);
        cr_assert_eq(gpurest_op_done(op), 0);
        gpurest_op_cancel(op);
        cr_assert_eq(gpurest_op_wait(op, -1), GPUREST_E_CANCELLED);
        gpurest_op_free(op);
        behind = hanging_read(s, data);
        gpurest_op_cancel(behind);
        cr_assert_eq(gpurest_op_wait(behind, -1), GPUREST_E_CANCELLED);
        gpurest_op_free(behind);
        gpurest_session_close(s);
        gpurest_close(c);
        mock_stop(m);
    }
}

Test(refusal, closing_the_client_ends_what_is_pending)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct hanging   h = {"/data"};
        struct mock     *m = mock_start(answer_hanging, &h);
        gpurest_client  *c;
        gpurest_session *s;
        gpurest_buffer   b;
        gpurest_op      *ops[5];
        char             data[8];
        cr_assert_eq(open_with(&c, mock_url(m), use_libcurl, 0, 60000), GPUREST_OK);
        cr_assert_eq(gpurest_session_open(&s, c, NULL), GPUREST_OK);
        cr_assert_eq(gpurest_buffer_open(s, &b, "b"), GPUREST_OK);
        for (int i = 0; i < 5; i++)
            cr_assert_eq(gpurest_read_async(s, b, 0, data, 8, &ops[i]), GPUREST_OK);
        gpurest_close(c);
        for (int i = 0; i < 5; i++) {
            cr_assert_eq(gpurest_op_wait(ops[i], 0), GPUREST_E_CANCELLED);
            gpurest_op_free(ops[i]);
        }
        cr_assert_eq(gpurest_read(s, b, 0, data, 8), GPUREST_E_CANCELLED);
        gpurest_session_close(s);
        mock_stop(m);
    }
}

/* ---- progress ---- */

struct seen {
    uint64_t last, total;
    int      calls, stop_at;
};

static int on_progress(void *arg, uint64_t done, uint64_t total)
{
    struct seen *p = arg;

    cr_assert_gt(done, p->last);
    cr_assert_leq(done, total);
    p->last = done;
    p->total = total;
    return ++p->calls == p->stop_at;
}

Test(refusal, progress_is_told_and_can_stop_the_transfer)
{
    enum { BYTES = 16 * 1024 * 1024 };
    char *data = calloc(1, BYTES);

    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct tiny     *t = tiny_create();
        struct mock     *m = mock_start(tiny_handle, t);
        struct seen      p = {0};
        gpurest_client  *c;
        gpurest_session *s;
        gpurest_buffer   b;
        cr_assert_eq(open_with(&c, mock_url(m), use_libcurl, 0, 60000), GPUREST_OK);
        cr_assert_eq(gpurest_session_open(&s, c, NULL), GPUREST_OK);
        cr_assert_eq(gpurest_alloc(s, &b, BYTES), GPUREST_OK);
        gpurest_client_set_progress(c, on_progress, &p);
        cr_assert_eq(gpurest_write(s, b, 0, data, BYTES), GPUREST_OK);
        cr_assert_eq(p.last, BYTES);
        p = (struct seen){.stop_at = 2};
        cr_assert_eq(gpurest_read(s, b, 0, data, BYTES), GPUREST_E_CANCELLED);
        cr_assert_eq(p.calls, 2);
        p = (struct seen){.stop_at = 2};
        cr_assert_eq(gpurest_write(s, b, 0, data, BYTES), GPUREST_E_CANCELLED);
        cr_assert_eq(p.calls, 2);
        gpurest_client_set_progress(c, NULL, NULL);
        cr_assert_eq(gpurest_read(s, b, 0, data, BYTES), GPUREST_OK);
        gpurest_session_close(s);
        gpurest_close(c);
        mock_stop(m);
        tiny_destroy(t);
    }
    free(data);
}

/* ---- a child ---- */

Test(refusal, a_child_must_not_use_what_its_parent_opened)
{
    struct tiny    *t = tiny_create();
    struct mock    *m = mock_start(tiny_handle, t);
    gpurest_client *c;
    int             wait_status = -1, n;

    cr_assert_eq(open_with(&c, mock_url(m), 0, 0, 5000), GPUREST_OK);
    pid_t child = fork();
    if (child == 0) {
        gpurest_status st = gpurest_device_count(c, &n);
        gpurest_close(c);
        _exit(st == GPUREST_E_FORK ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &wait_status, 0), child);
    cr_assert_eq(wait_status, 0);
    gpurest_close(c);
    mock_stop(m);
    tiny_destroy(t);
}
