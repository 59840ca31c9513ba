/* Sessions that move to another node while they are used: requests follow them, with what they need there. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "support/mock.h"
#include "transport/pool.h"

#define SECRET "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

enum { BYTES = 2 * 1024 * 1024, TO_ITSELF = -1, NODES = 3, IDLE_MS = 1000, MINUTE_MS = 60000 };

/* One node of several, which have the same buffers. The session's id at the n-th is "n<n>.<name>" but for the first, where it is its name. */
struct node {
    int          number;
    struct mock *mock;
    char         url[64];
    atomic_int   next;      /* where the session has gone: the number of that node; 0: it is here */
    atomic_int   pauses;    /* requests that are told that it moves just now */
    atomic_bool  confirmed; /* the first node needs no secret */
    atomic_int   confirmations, asked, gone, beats;
    atomic_int   questions;            /* whether it is there, while `slow` */
    atomic_bool  slow;                 /* buffers are read after two of them */
    int          refuses_confirmation; /* a status; 0: it does not */
};

static struct node  nodes[NODES];
static struct tiny *tiny;

/* On the threads of the mocks, where Criterion's own asserts are not heard. */
static void must(bool holds, const struct mock_request *q)
{
    if (holds)
        return;
    fprintf(stderr, "not as it must be: %s\n%s\n", q->head, q->body ? q->body : "");
    abort();
}

static void tell_moved(const struct node *n, const struct mock_request *q, struct mock_answer *a)
{
    const struct node *to = &nodes[atomic_load(&n->next)];
    const char        *name = strchr(q->path, '.') ? strchr(q->path, '.') + 1 : q->path + 13;
    char               json[512], id[96];

    snprintf(id, sizeof id, "%.*s", (int)strcspn(name, "/?"), name);
    snprintf(json, sizeof json,
             "{\"status\":421,\"detail\":\"it has moved\",\"code\":\"session_moved\",\"retryable\":true,"
             "\"moved\":{\"to\":\"%s\",\"id\":\"n%d.%s\",\"secret\":\"" SECRET "\"}}",
             to->url, to->number, id);
    mock_reply(a, 421, "", "application/problem+json", json, strlen(json));
}

static void confirm(struct node *n, const struct mock_request *q, struct mock_answer *a)
{
    atomic_fetch_add(&n->confirmations, 1);
    must(strstr(q->body, SECRET) != NULL, q);
    if (n->refuses_confirmation) {
        mock_problem(a, n->refuses_confirmation, "", "session_not_found", false);
        return;
    }
    atomic_store(&n->confirmed, true);
    mock_json(a, 200, "{}");
}

/* The session's own name is what the buffers are kept under. */
static void serve(struct node *n, const struct mock_request *q, struct mock_answer *a)
{
    struct mock_request plain = *q;
    char                mark[8], json[600];

    snprintf(mark, sizeof mark, "/n%d.", n->number);
    if (n->number) {
        must(strncmp(q->path + 12, mark, strlen(mark)) == 0, q);
        snprintf(plain.path, sizeof plain.path, "/v1/sessions/%s", strchr(q->path, '.') + 1);
    }
    must(strstr(q->head, "Authorization: Bearer t0ken\r\n") != NULL, q);
    if (strcmp(q->method, "PUT") == 0 && !strchr(q->path + 13, '/')) {
        snprintf(json, sizeof json, "{\"id\":\"%s\"}", q->path + 13);
        mock_json(a, 201, json);
        return;
    }
    tiny_handle(tiny, &plain, a);
}

static void take_time(struct node *n)
{
    for (int ms = 0; atomic_load(&n->questions) < 2 && ms < MINUTE_MS; ms++)
        usleep(1000);
}

static void answer(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    struct node *n = arg;

    if (strncmp(q->path, "/v1/sessions/", 13) != 0) {
        mock_json(a, 200, MOCK_VERSION);
    } else if (strstr(q->path, "/move/confirm")) {
        confirm(n, q, a);
    } else if (atomic_load(&n->next)) {
        atomic_fetch_add(&n->gone, 1);
        tell_moved(n, q, a);
    } else if (n->number && !atomic_load(&n->confirmed)) {
        must(false, q);
    } else if (strstr(q->path, "/heartbeat") && strstr(q->path, "/two/")) {
        atomic_fetch_add(&n->beats, 1);
        mock_reply(a, 204, "", NULL, NULL, 0);
    } else if (atomic_load(&n->pauses) > 0) {
        atomic_fetch_sub(&n->pauses, 1);
        mock_problem(a, 503, "", "session_moving", true);
    } else if (strcmp(q->path, "/v1/sessions/n1.one") == 0 && strcmp(q->method, "GET") == 0) {
        atomic_fetch_add(&n->questions, 1);
        mock_json(a, 200, "{}");
    } else {
        atomic_fetch_add(&n->asked, 1);
        if (atomic_load(&n->slow) && strstr(q->path, "/data"))
            take_time(n);
        serve(n, q, a);
    }
}

static gpurest_client  *client;
static gpurest_session *session;

static void start(void)
{
    gpurest_options         o = GPUREST_OPTIONS_INIT;
    gpurest_session_options named = GPUREST_SESSION_OPTIONS_INIT;

    tiny = tiny_create();
    for (int i = 0; i < NODES; i++) {
        nodes[i] = (struct node){.number = i};
        nodes[i].mock = mock_start(answer, &nodes[i]);
        snprintf(nodes[i].url, sizeof nodes[i].url, "%s", mock_url(nodes[i].mock));
    }
    o.url = nodes[0].url;
    o.token = "t0ken";
    named.name = "one";
    cr_assert_eq(gpurest_open_with(&client, &o), GPUREST_OK);
    cr_assert_eq(gpurest_session_open(&session, client, &named), GPUREST_OK, "%s", gpurest_last_error()->message);
}

static void end(void)
{
    gpurest_session_close(session);
    gpurest_close(client);
    for (int i = 0; i < NODES; i++)
        mock_stop(nodes[i].mock);
    tiny_destroy(tiny);
}

TestSuite(move, .init = start, .fini = end);

static gpurest_buffer filled(char value, size_t bytes)
{
    gpurest_buffer b;
    char          *data = malloc(bytes);

    memset(data, value, bytes);
    cr_assert_eq(gpurest_alloc(session, &b, bytes), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_write(session, b, 0, data, bytes), GPUREST_OK, "%s", gpurest_last_error()->message);
    free(data);
    return b;
}

static void expect_bytes(gpurest_buffer b, char value, size_t bytes)
{
    char *back = calloc(1, bytes);

    cr_assert_eq(gpurest_read(session, b, 0, back, bytes), GPUREST_OK, "%s", gpurest_last_error()->message);
    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(back[i], value);
    free(back);
}

Test(move, a_session_goes_on_at_the_next_node_and_at_the_one_after_it)
{
    gpurest_buffer b = filled(7, BYTES), c;
    int            asked;

    atomic_store(&nodes[0].next, 1);
    expect_bytes(b, 7, BYTES);
    c = filled(8, BYTES);
    cr_assert_eq(atomic_load(&nodes[0].gone), 1);
    cr_assert_eq(atomic_load(&nodes[1].confirmations), 1);
    atomic_store(&nodes[1].next, 2);
    asked = atomic_load(&nodes[1].asked);
    expect_bytes(c, 8, BYTES);
    b = filled(9, BYTES); /* a body of some size, sent where it is */
    expect_bytes(b, 9, BYTES);
    cr_assert_eq(atomic_load(&nodes[0].gone), 1, "the first node is not asked again");
    cr_assert_eq(atomic_load(&nodes[1].asked), asked);
    cr_assert_str_eq(gpurest_session_id(session), "one");
}

Test(move, what_was_sent_to_the_former_node_is_sent_again)
{
    gpurest_op    *op;
    gpurest_buffer b = filled(1, BYTES);
    static char    data[BYTES];

    memset(data, 5, sizeof data);
    atomic_store(&nodes[0].next, 1); /* the first request after it has the body */
    cr_assert_eq(gpurest_write_async(session, b, 0, data, sizeof data, &op), GPUREST_OK);
    cr_assert_eq(gpurest_op_wait(op, -1), GPUREST_OK, "%s", gpurest_last_error()->message);
    gpurest_op_free(op);
    expect_bytes(b, 5, BYTES);
}

/* The node where it is now is asked, by the session's id there. */
Test(move, what_takes_long_at_the_next_node_is_waited_for)
{
    gpurest_buffer b = filled(7, 64);

    atomic_store(&nodes[0].next, 1);
    expect_bytes(b, 7, 64);
    atomic_store(&nodes[1].slow, true);
    client->idle_ms = IDLE_MS;
    expect_bytes(b, 7, 64);
    cr_assert_geq(atomic_load(&nodes[1].questions), 2);
    cr_assert_eq(atomic_load(&nodes[0].gone), 1);
}

Test(move, opened_by_its_name_it_is_joined_where_it_is)
{
    gpurest_session_options named = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *again;
    gpurest_buffer          b = filled(3, 64), seen;
    char                    back[64];

    atomic_store(&nodes[0].next, 1);
    named.name = "one";
    named.keep = 1;
    cr_assert_eq(gpurest_session_open(&again, client, &named), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_str_eq(gpurest_session_id(again), "one");
    cr_assert_eq(gpurest_alloc(again, &seen, sizeof back), GPUREST_OK, "%s", gpurest_last_error()->message);
    gpurest_session_close(again);
    expect_bytes(b, 3, 64);
}

Test(move, nodes_that_name_each_other_are_an_error_that_says_so)
{
    gpurest_buffer b = filled(1, 64);
    char           back[64];

    atomic_store(&nodes[0].next, 1);
    atomic_store(&nodes[1].next, 2);
    atomic_store(&nodes[2].next, 1);
    cr_assert_eq(gpurest_read(session, b, 0, back, sizeof back), GPUREST_E_BUSY);
    cr_assert(strstr(gpurest_last_error()->message, "nodes in turn said that the session is at another one"), "%s",
              gpurest_last_error()->message);
    atomic_store(&nodes[2].next, 0);
    expect_bytes(b, 1, 64); /* found as soon as one has it */
}

Test(move, a_copy_that_is_not_there_any_more_is_a_lost_session)
{
    gpurest_buffer b = filled(1, 64);
    char           back[64];

    nodes[1].refuses_confirmation = 404;
    atomic_store(&nodes[0].next, 1);
    cr_assert_neq(gpurest_read(session, b, 0, back, sizeof back), GPUREST_OK);
    cr_assert_str_eq(gpurest_last_error()->code, "session_not_found");
}

Test(move, while_it_stands_still_it_is_asked_more_often_than_others)
{
    gpurest_buffer b = filled(2, 64);

    atomic_store(&nodes[0].pauses, 5); /* max_retries is 2 */
    expect_bytes(b, 2, 64);
    cr_assert_eq(atomic_load(&nodes[0].pauses), 0);
}

Test(move, the_leases_of_others_are_kept_while_it_stands_still)
{
    gpurest_session_options o = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *still, *two;

    o.lease_s = 1;
    o.name = "still";
    cr_assert_eq(gpurest_session_open(&still, client, &o), GPUREST_OK);
    o.name = "two";
    cr_assert_eq(gpurest_session_open(&two, client, &o), GPUREST_OK);
    atomic_store(&nodes[0].pauses, 1000000);
    while (atomic_load(&nodes[0].beats) < 3)
        usleep(1000);
    cr_assert_lt(atomic_load(&nodes[0].pauses), 1000000, "its own was refused meanwhile");
    atomic_store(&nodes[0].pauses, 0);
    gpurest_session_close(two);
    gpurest_session_close(still);
}

static int collect(void *arg, const void *data, size_t bytes)
{
    strncat(arg, data, bytes);
    return 0;
}

static int raw_status(const char *path, char *text, bool stays)
{
    gpurest_http_request   q = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *r;
    int                    status;

    q.method = "GET";
    q.path = path;
    q.on_body = collect;
    q.on_body_arg = text;
    q.stays = stays;
    cr_assert_eq(gpurest_http(client, &q, &r), GPUREST_OK, "%s", gpurest_last_error()->message);
    status = gpurest_http_status(r);
    gpurest_http_response_free(r);
    return status;
}

Test(move, raw_requests_follow_unless_they_are_to_stay)
{
    char text[2048] = "";

    filled(2, 64);
    atomic_store(&nodes[0].next, 1);
    cr_assert_eq(raw_status("/v1/sessions/one/memory", text, true), 421);
    cr_assert(strstr(text, "session_moved"), "%s", text);
    text[0] = '\0';
    cr_assert_neq(raw_status("/v1/sessions/one/memory", text, false), 421);
    cr_assert(!strstr(text, "session_moved"), "%s", text);
    cr_assert_geq(atomic_load(&nodes[1].asked), 1);
}

/* ---- threads ---- */

enum { WRITERS = 4 };

static atomic_bool stop;
static atomic_int  rounds[WRITERS];

static void *write_on(void *arg)
{
    int            own = (int)((atomic_int *)arg - rounds);
    gpurest_buffer b = filled((char)own, 4096);

    while (!atomic_load(&stop)) {
        expect_bytes(b, (char)own, 4096);
        atomic_fetch_add(&rounds[own], 1);
    }
    return NULL;
}

static void await_round(void)
{
    for (int i = 0; i < WRITERS; i++)
        for (int before = atomic_load(&rounds[i]); atomic_load(&rounds[i]) < before + 2;)
            usleep(1000);
}

Test(move, threads_go_on_while_it_moves_to_and_fro)
{
    pthread_t threads[WRITERS];

    for (int i = 0; i < WRITERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, write_on, &rounds[i]), 0);
    await_round();
    atomic_store(&nodes[0].next, 1);
    await_round();
    for (int i = 0; i < 4; i++) {
        int here = 1 + i % 2, there = 3 - here;
        atomic_store(&nodes[there].next, 0);
        atomic_store(&nodes[here].next, there);
        await_round();
    }
    atomic_store(&stop, true);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- where credentials go ---- */

static bool follows(const char *from, const char *to)
{
    struct target t = {.ca_file = NULL};
    struct pool   main, beside;
    bool          does;

    cr_assert_eq(endpoint_parse(from, &t.endpoint), GPUREST_OK);
    pool_init(&main, &transport_socket, &t, 1);
    does = pool_init_beside(&beside, &main, to) == GPUREST_OK;
    if (does)
        pool_finish(&beside);
    pool_finish(&main);
    return does;
}

Test(move_rules, a_token_goes_where_python_would_send_it)
{
    cr_assert(follows("http://a", "http://b:8080") && follows("http://a", "https://b") && follows("https://a", "https://b"));
    cr_assert(follows("unix:///run/a", "http://b"));
    cr_assert(!follows("https://a", "http://b"));
    cr_assert(strstr(gpurest_last_error()->message, "without TLS"), "%s", gpurest_last_error()->message);
    cr_assert(!follows("https://a", "unix:///run/b") && !follows("http://a", "b") && !follows("http://a", "http://user@b"));
}
