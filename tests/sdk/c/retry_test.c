/* Which requests are repeated, and which never are. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/mock.h"

struct script {
    const char *path;     /* of the requests that fail at first */
    int         failures; /* how many of them fail */
    int         status;   /* their status; 0: the connection is cut instead */
    bool        retryable;
    const char *headers;
    size_t      cut;  /* bytes sent before the cut */
    atomic_int  seen; /* number of those requests */
};

static void answer(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    struct script *s = arg;
    bool           fails = strstr(q->path, s->path) && atomic_fetch_add(&s->seen, 1) < s->failures;

    if (fails && s->status)
        mock_problem(a, s->status, s->headers ? s->headers : "", "no_worker", s->retryable);
    else if (strcmp(q->path, "/version") == 0)
        mock_json(a, 200, MOCK_VERSION);
    else if (strstr(q->path, "/modules/"))
        mock_json(a, 201, "{\"id\":\"m\",\"kernels\":[{\"name\":\"k\",\"params\":[]}],\"log\":\"\"}");
    else if (strstr(q->path, "/launches"))
        mock_json(a, 200, "{\"id\":\"l\",\"state\":\"succeeded\",\"gpu_us\":1,\"stdout\":\"\"}");
    else
        mock_json(a, 200, "{\"id\":\"s\",\"size\":64}");
    if (fails && !s->status)
        a->cut = s->cut;
}

static struct {
    struct mock     *mock;
    gpurest_client  *client;
    gpurest_session *session;
} w;

static void start_with(struct mock *mock, int use_libcurl, int retries)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;

    w.mock = mock;
    o.url = mock_url(mock);
    o.use_libcurl = use_libcurl;
    o.max_retries = retries;
    cr_assert_eq(gpurest_open_with(&w.client, &o), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_session_open(&w.session, w.client, NULL), GPUREST_OK, "%s", gpurest_last_error()->message);
}

static void start(struct script *s, int use_libcurl, int retries)
{
    start_with(mock_start(answer, s), use_libcurl, retries);
}

static gpurest_buffer opened(void)
{
    gpurest_buffer b;

    cr_assert_eq(gpurest_buffer_open(w.session, &b, "b"), GPUREST_OK, "%s", gpurest_last_error()->message);
    return b;
}

static const gpurest_kernel *compiled(gpurest_module **m)
{
    const gpurest_kernel *k;

    cr_assert_eq(gpurest_compile(w.session, m, "source", NULL, 0), GPUREST_OK);
    cr_assert_eq(gpurest_kernel_get(*m, "k", &k), GPUREST_OK);
    return k;
}

static void end(void)
{
    gpurest_session_close(w.session);
    gpurest_close(w.client);
    mock_stop(w.mock);
}

Test(retry, a_get_a_put_and_a_delete_are_sent_again_after_a_cut)
{
    static const char *const paths[] = {"/version", "/v1/sessions/c-", "/buffers/b"};

    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++)
        for (int i = 0; i < 3; i++) {
            struct script s = {.path = paths[i], .failures = 2};
            start(&s, use_libcurl, 2);
            opened();
            cr_assert_geq(atomic_load(&s.seen), 3);
            end();
        }
}

Test(retry, not_more_often_than_said)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct script  s = {.path = "/buffers/b", .failures = 100, .cut = 20};
        gpurest_buffer b;
        start(&s, use_libcurl, 1);
        cr_assert_eq(gpurest_buffer_open(w.session, &b, "b"), GPUREST_E_CONNECT);
        cr_assert_geq(atomic_load(&s.seen), 2);
        cr_assert_leq(atomic_load(&s.seen), 2 + use_libcurl); /* libcurl retries once by itself when a used connection is gone */
        end();
    }
}

/* The connection has carried requests before: libcurl by itself would repeat such a request. */
Test(retry, a_post_is_never_sent_twice_after_a_cut)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++)
        for (size_t cut = 0; cut <= 20; cut += 20) {
            struct script s = {.path = "/fill", .failures = 1, .cut = cut};
            start(&s, use_libcurl, 2);
            cr_assert_eq(gpurest_fill(w.session, opened(), 0, 1, 1, 64, (gpurest_stream){0}), GPUREST_E_CONNECT);
            cr_assert_eq(atomic_load(&s.seen), 1);
            end();
        }
}

Test(retry, a_run_is_never_sent_twice_after_a_cut)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct script s = {.path = "/v1/run", .failures = 1};
        char          x[8] = "";
        gpurest_arg   args[] = {GPUREST_INOUT(x, sizeof x)};
        start(&s, use_libcurl, 2);
        cr_assert_eq(gpurest_run(w.client, "source", "k", GPUREST_1D(1), GPUREST_1D(1), args, 1, NULL), GPUREST_E_CONNECT);
        cr_assert_eq(atomic_load(&s.seen), 1);
        end();
    }
}

/* A router has sent it to the wrong node: nothing was done. */
Test(retry, what_another_node_has_is_asked_for_again)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++)
        for (int retryable = 0; retryable <= 1; retryable++) {
            struct script s = {.path = "/fill", .failures = 1, .status = 421, .retryable = retryable};
            start(&s, use_libcurl, 2);
            cr_assert_eq(gpurest_fill(w.session, opened(), 0, 1, 1, 64, (gpurest_stream){0}) == GPUREST_OK, retryable);
            cr_assert_eq(atomic_load(&s.seen), 1 + retryable);
            end();
        }
}

/* A launch has an id, so it happens once however often it is sent. */
Test(retry, a_launch_is_sent_again_under_its_id)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct script   s = {.path = "/launches", .failures = 1};
        gpurest_module *m;
        start(&s, use_libcurl, 2);
        cr_assert_eq(gpurest_launch(w.session, compiled(&m), GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, NULL, 0), GPUREST_OK);
        cr_assert_eq(atomic_load(&s.seen), 2);
        gpurest_module_unload(m);
        end();
    }
}

/* ---- a launch that the service dropped with its connection ---- */

struct dropped {
    pthread_mutex_t lock; /* the requests come on several connections */
    int             posts;
    char            first_id[64];
    bool            same_id, other_id;
};

static void answer_dropped(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    struct dropped *d = arg;
    char            id[64] = "";
    const char     *at = strstr(q->body, "\"id\":\"");

    if (strcmp(q->path, "/version") == 0)
        mock_json(a, 200, MOCK_VERSION);
    else if (strstr(q->path, "/modules/"))
        mock_json(a, 201, "{\"id\":\"m\",\"kernels\":[{\"name\":\"k\",\"params\":[]}],\"log\":\"\"}");
    else if (strstr(q->path, "/launches") && at && sscanf(at + 6, "%63[^\"]", id) == 1) {
        pthread_mutex_lock(&d->lock);
        int n = d->posts++;
        if (n == 0)
            memcpy(d->first_id, id, sizeof id);
        d->same_id = d->same_id || (n == 1 && strcmp(id, d->first_id) == 0);
        d->other_id = d->other_id || (n == 2 && strcmp(id, d->first_id) != 0);
        pthread_mutex_unlock(&d->lock);
        if (n == 1)
            mock_problem(a, 409, "", "cancelled", false);
        else
            mock_json(a, 200, "{\"id\":\"l\",\"state\":\"succeeded\",\"gpu_us\":1,\"stdout\":\"\"}");
        if (n == 0)
            a->cut = 0;
    } else {
        mock_json(a, 200, "{\"id\":\"s\"}");
    }
}

Test(retry, a_launch_that_was_dropped_unrun_is_launched_anew)
{
    struct dropped  d = {.lock = PTHREAD_MUTEX_INITIALIZER};
    gpurest_module *module;

    start_with(mock_start(answer_dropped, &d), 0, 2);
    cr_assert_eq(gpurest_launch(w.session, compiled(&module), GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, NULL, 0), GPUREST_OK,
                 "%s", gpurest_last_error()->message);
    gpurest_module_unload(module);
    end();
    cr_assert_eq(d.posts, 3);
    cr_assert(d.same_id);
    cr_assert(d.other_id);
}

Test(retry, a_busy_service_is_asked_again_even_with_post)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct script s = {.path = "/fill", .failures = 2, .status = use_libcurl ? 503 : 409, .retryable = true};
        start(&s, use_libcurl, 2);
        cr_assert_eq(gpurest_fill(w.session, opened(), 0, 1, 1, 64, (gpurest_stream){0}), GPUREST_OK);
        cr_assert_eq(atomic_load(&s.seen), 3);
        end();
    }
}

Test(retry, not_when_the_service_says_that_it_is_no_use_or_takes_long)
{
    static const struct script wanted[] = {
        {.path = "/fill", .failures = 100, .status = 503, .retryable = false},
        {.path = "/fill", .failures = 100, .status = 503, .retryable = true, .headers = "Retry-After: 3600\r\n"},
        {.path = "/fill", .failures = 100, .status = 409, .retryable = false},
    };

    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct script s = {.path = wanted[i].path,
                           .failures = 100,
                           .status = wanted[i].status,
                           .retryable = wanted[i].retryable,
                           .headers = wanted[i].headers};
        start(&s, 0, 2);
        cr_assert_neq(gpurest_fill(w.session, opened(), 0, 1, 1, 64, (gpurest_stream){0}), GPUREST_OK);
        cr_assert_eq(atomic_load(&s.seen), 1);
        end();
    }
}

/* ---- answers that come before the body was sent ---- */

static void refuse(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    (void)arg;
    if (strcmp(q->path, "/version") == 0)
        mock_json(a, 200, MOCK_VERSION);
    else if (strstr(q->path, "/buffers/"))
        mock_problem(a, 413, "Connection: close\r\n", "body_too_large", false);
    else
        mock_json(a, 200, "{\"id\":\"s\"}");
}

Test(retry, a_refusal_in_the_middle_of_an_upload_is_heard)
{
    enum { BYTES = 32 * 1024 * 1024 };
    char          *data = calloc(1, BYTES);
    gpurest_buffer b;

    start_with(mock_start_early(refuse, NULL), 0, 2);
    cr_assert_eq(gpurest_alloc_from(w.session, &b, data, BYTES), GPUREST_E_LIMIT, "%s", gpurest_last_error()->message);
    cr_assert_str_eq(gpurest_last_error()->code, "body_too_large");
    end();
    free(data);
}

/* ---- connections are used again ---- */

Test(retry, requests_share_a_connection)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        struct script s = {.path = "/nowhere"};
        start(&s, use_libcurl, 0);
        for (int i = 0; i < 20; i++)
            opened();
        cr_assert_eq(mock_connections(w.mock), 1);
        end();
    }
}
