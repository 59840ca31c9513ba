/* Long transfers around a router: taken by the node itself where it answers, and by the router where it does not. */
#include <criterion/criterion.h>
#include <gpurest/gpurest.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/mock.h"

enum { BYTES = 2 * 1024 * 1024 };

/* A router and a node in one: they have the same buffers. */
struct place {
    struct tiny *tiny;
    char         endpoint[128]; /* of new sessions; "": none */
    int          refuses;       /* a status for long transfers; 0: none */
    bool         cuts;
    atomic_int   transfers;
};

static void answer(void *arg, const struct mock_request *q, struct mock_answer *a)
{
    struct place *p = arg;
    bool          is_long = strstr(q->path, "/data") && (q->body_bytes == BYTES || strcmp(q->method, "GET") == 0);
    char          json[256];

    if (strncmp(q->path, "/v1/sessions/", 13) == 0 && !strchr(q->path + 13, '/') && strcmp(q->method, "PUT") == 0 && p->endpoint[0]) {
        snprintf(json, sizeof json, "{\"id\":\"%s\",\"node\":\"n1\",\"endpoint\":\"%s\"}", q->path + 13, p->endpoint);
        mock_json(a, 201, json);
        return;
    }
    if (is_long)
        atomic_fetch_add(&p->transfers, 1);
    if (is_long && p->refuses)
        mock_problem(a, p->refuses, "", "wrong_node", true);
    else
        tiny_handle(p->tiny, q, a);
    if (is_long && p->cuts)
        a->cut = 0;
}

static void write_and_read(const char *url, size_t bytes)
{
    gpurest_options  o = GPUREST_OPTIONS_INIT;
    gpurest_client  *c;
    gpurest_session *s;
    gpurest_buffer   b;
    char            *data = malloc(bytes), *back = malloc(bytes);

    o.url = url;
    memset(data, 7, bytes);
    cr_assert_eq(gpurest_open_with(&c, &o), GPUREST_OK);
    cr_assert_eq(gpurest_session_open(&s, c, NULL), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_alloc(s, &b, bytes), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_write(s, b, 0, data, bytes), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(gpurest_read(s, b, 0, back, bytes), GPUREST_OK, "%s", gpurest_last_error()->message);
    cr_assert_eq(memcmp(data, back, bytes), 0);
    gpurest_session_close(s);
    gpurest_close(c);
    free(data);
    free(back);
}

static struct place router, node;
static struct mock *router_mock, *node_mock;
static struct tiny *tiny;

static void start(void)
{
    tiny = tiny_create();
    router = (struct place){.tiny = tiny};
    node = (struct place){.tiny = tiny};
    router_mock = mock_start(answer, &router);
    node_mock = mock_start(answer, &node);
    snprintf(router.endpoint, sizeof router.endpoint, "%s", mock_url(node_mock));
}

static void end(void)
{
    mock_stop(router_mock);
    mock_stop(node_mock);
    tiny_destroy(tiny);
}

static void expect(int direct, int routed)
{
    cr_assert_eq(atomic_load(&node.transfers), direct, "%d direct", atomic_load(&node.transfers));
    cr_assert_eq(atomic_load(&router.transfers), routed, "%d routed", atomic_load(&router.transfers));
}

TestSuite(detour, .init = start, .fini = end);

Test(detour, long_transfers_go_to_the_node)
{
    write_and_read(mock_url(router_mock), BYTES);
    expect(2, 0);
}

Test(detour, short_ones_go_through_the_router)
{
    write_and_read(mock_url(router_mock), 4096);
    cr_assert_eq(atomic_load(&node.transfers), 0);
}

Test(detour, without_an_endpoint_there_is_none)
{
    router.endpoint[0] = '\0';
    write_and_read(mock_url(router_mock), BYTES);
    expect(0, 2);
}

Test(detour, a_node_that_refuses_is_left_alone)
{
    static const int statuses[] = {401, 403, 421};

    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        atomic_store(&node.transfers, 0);
        atomic_store(&router.transfers, 0);
        node.refuses = statuses[i];
        write_and_read(mock_url(router_mock), BYTES);
        expect(1, 2);
    }
}

Test(detour, a_node_that_cuts_is_left_alone)
{
    node.cuts = true;
    write_and_read(mock_url(router_mock), BYTES);
    expect(1, 2);
}

Test(detour, one_that_cannot_be_reached_is_left_alone)
{
    struct mock *gone = mock_start(answer, &node);

    snprintf(router.endpoint, sizeof router.endpoint, "%s", mock_url(gone));
    mock_stop(gone);
    write_and_read(mock_url(router_mock), BYTES);
    expect(0, 2);
}

Test(detour, what_is_no_address_is_none)
{
    snprintf(router.endpoint, sizeof router.endpoint, "n1.example.org");
    write_and_read(mock_url(router_mock), BYTES);
    expect(0, 2);
}
