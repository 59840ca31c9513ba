/* What takes longer than the idle time-out: a client waits on for a service that answers others, and for no other one. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/client.h"
#include "support/mock.h"

enum { IDLE_MS = 1000, UPLOAD_BYTES = 32 * 1024 * 1024, ASKED_TWICE = 2, MINUTE_MS = 60000 };
enum where { BEFORE_BODY, BEFORE_ANSWER, WITHIN_ANSWER, PLACES };
enum question { ANSWERED, CUT, UNANSWERED };

/* A service that takes its time for what is on `slow`, until it was asked something else. */
static struct service {
    struct mock          *mock;
    _Atomic(const char *) slow;
    enum where            where;
    enum question         question;
    atomic_int            patience; /* questions before it goes on */
    atomic_int            questions;
    pthread_mutex_t       lock; /* of the member below */
    char                  asked[512];
} v;

static void take_time(void *arg)
{
    (void)arg;
    for (int ms = 0; atomic_load(&v.questions) < atomic_load(&v.patience) && ms < MINUTE_MS; ms++)
        usleep(1000);
}

static bool is_slow(const struct mock_request *q)
{
    return strstr(q->path, atomic_load(&v.slow)) != NULL;
}

static void on_head(void *arg, const struct mock_request *q)
{
    if (v.where == BEFORE_BODY && is_slow(q))
        take_time(arg);
}

static void answer_slowly(struct mock_answer *a)
{
    static const char data[64];

    if (v.where == BEFORE_ANSWER)
        take_time(NULL);
    if (v.where == BEFORE_BODY)
        mock_reply(a, 204, "", NULL, NULL, 0);
    else
        mock_reply(a, 206, "", "application/octet-stream", data, sizeof data);
    if (v.where == WITHIN_ANSWER) {
        a->pause = take_time;
        a->pause_at = a->count - sizeof data / 2;
    }
}

static void answer_question(const struct mock_request *q, struct mock_answer *a)
{
    pthread_mutex_lock(&v.lock);
    snprintf(v.asked, sizeof v.asked, "%s", q->path);
    pthread_mutex_unlock(&v.lock);
    mock_problem(a, 404, "", "session_not_found", false); /* any answer is a sign of life */
    a->cut = v.question == CUT ? 0 : a->cut;
    a->hangs = v.question == UNANSWERED;
    atomic_fetch_add(&v.questions, 1);
}

static void answer(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    (void)arg;
    if (is_slow(q))
        answer_slowly(a);
    else if (strcmp(q->method, "GET") == 0 && !strstr(q->path, "/buffers/") && strcmp(q->path, "/version") != 0)
        answer_question(q, a);
    else if (strcmp(q->path, "/version") == 0)
        mock_json(a, 200, MOCK_VERSION);
    else
        mock_json(a, 200, "{\"id\":\"s\",\"size\":33554432}");
}

static gpurest_client  *client;
static gpurest_session *session;
static gpurest_buffer   buffer;

static void start(const char *slow, enum where where, enum question question, int use_libcurl)
{
    gpurest_options o = GPUREST_OPTIONS_INIT;

    v = (struct service){.slow = slow, .where = where, .question = question, .patience = ASKED_TWICE, .lock = PTHREAD_MUTEX_INITIALIZER};
    v.mock = mock_start(answer, NULL);
    mock_on_head(v.mock, on_head);
    o.url = mock_url(v.mock);
    o.use_libcurl = use_libcurl;
    cr_assert_eq(gpurest_open_with(&client, &o), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_session_open(&session, client, NULL), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_buffer_open(session, &buffer, "b"), GPUREST_OK, "%s", gpurest_last_error()->message);
    client->idle_ms = IDLE_MS; /* what comes before may take its time on a busy machine */
}

static void release(void)
{
    atomic_store(&v.patience, 0);
}

static void end(void)
{
    release();
    gpurest_session_close(session);
    gpurest_close(client);
    mock_stop(v.mock);
}

static gpurest_status transfer(void)
{
    char          *data = calloc(1, UPLOAD_BYTES);
    gpurest_status st =
        v.where == BEFORE_BODY ? gpurest_write(session, buffer, 0, data, UPLOAD_BYTES) : gpurest_read(session, buffer, 0, data, 64);

    free(data);
    return st;
}

static void goes_on(enum where where)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        start("/data", where, ANSWERED, use_libcurl);
        cr_assert_eq(transfer(), GPUREST_OK, "%s", gpurest_last_error()->message);
        cr_assert_geq(atomic_load(&v.questions), ASKED_TWICE);
        cr_assert_str_eq(v.asked, "/v1/sessions/s"); /* the same session: those of others may be at other nodes */
        end();
    }
}

Test(waits, a_wait_for_an_answer_goes_on)
{
    goes_on(BEFORE_ANSWER);
}

Test(waits, a_wait_within_an_answer_goes_on)
{
    goes_on(WITHIN_ANSWER);
}

Test(waits, an_upload_that_is_not_taken_goes_on)
{
    goes_on(BEFORE_BODY);
}

Test(waits, without_a_session_the_service_is_asked)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        start("/v1/elsewhere", BEFORE_ANSWER, ANSWERED, use_libcurl);
        cr_assert_eq(gpurest_request(client, "POST", "/v1/elsewhere", "{}", NULL), GPUREST_OK, "%s", gpurest_last_error()->message);
        cr_assert_str_eq(v.asked, "/livez");
        end();
    }
}

static void ends(enum where where, enum question question)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        start("/data", where, question, use_libcurl);
        cr_assert_eq(transfer(), GPUREST_E_TIMEOUT, "%s", gpurest_last_error()->message);
        cr_assert(strstr(gpurest_last_error()->message, "no data for 1000 ms"), "%s", gpurest_last_error()->message);
        cr_assert_eq(atomic_load(&v.questions), 1);
        end();
    }
}

Test(waits, a_service_that_answers_nobody_is_given_up)
{
    ends(BEFORE_ANSWER, UNANSWERED);
}

Test(waits, also_where_nothing_is_taken)
{
    ends(BEFORE_BODY, UNANSWERED);
}

Test(waits, also_within_an_answer)
{
    ends(WITHIN_ANSWER, CUT);
}

/* ---- cancelled ---- */

static gpurest_op *read_until_asked(char data[64])
{
    gpurest_op *op;

    atomic_store(&v.patience, 1000000);
    cr_assert_eq(gpurest_read_async(session, buffer, 0, data, 64, &op), GPUREST_OK);
    while (!atomic_load(&v.questions))
        usleep(1000);
    return op;
}

/* Between questions, and while one is not answered. */
Test(waits, what_waits_on_can_be_cancelled)
{
    char data[64];

    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++)
        for (int unanswered = 0; unanswered <= 1; unanswered++) {
            gpurest_op *op;

            start("/data", BEFORE_ANSWER, unanswered ? UNANSWERED : ANSWERED, use_libcurl);
            op = read_until_asked(data);
            gpurest_op_cancel(op);
            cr_assert_eq(gpurest_op_wait(op, -1), GPUREST_E_CANCELLED, "%s", gpurest_last_error()->message);
            gpurest_op_free(op);
            end();
        }
}

Test(waits, closing_the_client_ends_what_waits_on)
{
    char data[64];

    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        gpurest_op *op;

        start("/data", BEFORE_ANSWER, ANSWERED, use_libcurl);
        op = read_until_asked(data);
        gpurest_close(client);
        cr_assert_eq(gpurest_op_wait(op, -1), GPUREST_E_CANCELLED);
        gpurest_op_free(op);
        release();
        gpurest_session_close(session);
        mock_stop(v.mock);
    }
}

/* ---- what must end soon ---- */

static gpurest_status delete_one(void)
{
    return gpurest_request(client, "DELETE", "/v1/sessions/s/slow", NULL, NULL);
}

static gpurest_status ask_with_bound(void)
{
    gpurest_http_request   q = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *r;

    q.method = "GET";
    q.path = "/v1/sessions/s/slow";
    q.idle_timeout_ms = IDLE_MS / 2;
    return gpurest_http(client, &q, &r);
}

static void ends_unasked(gpurest_status (*act)(void))
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        start("/slow", BEFORE_ANSWER, ANSWERED, use_libcurl);
        cr_assert_eq(act(), GPUREST_E_TIMEOUT, "%s", gpurest_last_error()->message);
        cr_assert_eq(atomic_load(&v.questions), 0);
        end();
    }
}

Test(waits, a_delete_keeps_its_bound)
{
    ends_unasked(delete_one);
}

Test(waits, a_request_with_a_bound_of_its_own_keeps_it)
{
    ends_unasked(ask_with_bound);
}

Test(waits, a_closing_session_keeps_its_bound)
{
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        start("/nothing", BEFORE_ANSWER, ANSWERED, use_libcurl);
        atomic_store(&v.slow, "/v1/sessions/s");
        gpurest_session_close(session);
        cr_assert_eq(atomic_load(&v.questions), 0);
        release();
        gpurest_close(client);
        mock_stop(v.mock);
    }
}

/* Its thread has other sessions to keep. */
Test(waits, a_heartbeat_keeps_its_bound)
{
    gpurest_session_options leased = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *other;
    int                     before;

    start("/heartbeat", BEFORE_ANSWER, ANSWERED, 0);
    leased.lease_s = 1;
    cr_assert_eq(gpurest_session_open(&other, client, &leased), GPUREST_OK);
    before = mock_connections(v.mock);
    while (mock_connections(v.mock) < before + 2) /* a second one is sent, so the first one was given up */
        usleep(1000);
    cr_assert_eq(atomic_load(&v.questions), 0);
    release();
    gpurest_session_close(other);
    end();
}
