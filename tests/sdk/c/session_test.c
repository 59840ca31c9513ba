/* Clients, sessions, devices and plain requests at the real service. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fixture.h"

TestSuite(session, .fini = world_end);

Test(session, is_opened_and_closed_every_way_there_is)
{
    world_serve(NULL, NULL);
    for (int i = 0; i < 4; i++) {
        gpurest_client  *c = client_of(i & 1 ? w.service.unix_url : w.service.url, i >> 1);
        gpurest_session *s = session_of(c);
        char            *text = NULL;
        cr_assert_not_null(strstr(gpurest_server_version(c), "gpurestd"));
        cr_assert_not(bad(gpurest_request(c, "GET", "/v1/sessions", NULL, &text)));
        cr_assert_not_null(strstr(text, gpurest_session_id(s)));
        gpurest_mem_free(text);
        gpurest_session_close(s);
        cr_assert_not(bad(gpurest_request(c, "GET", "/v1/sessions", NULL, &text)));
        cr_assert_not_null(strstr(text, "\"items\":[]"));
        gpurest_mem_free(text);
        gpurest_close(c);
    }
}

Test(session, has_its_options_and_can_be_joined)
{
    gpurest_session_options o = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *first, *second;
    gpurest_buffer          b, too_large;
    char                   *text;

    world_serve(NULL, NULL);
    w.client = client_of(w.service.url, 0);
    o.name = "mine";
    o.device = "cpu:0";
    o.memory_limit = 1 << 20;
    o.pool_bytes_max = 4096;
    o.idle_timeout_s = 77;
    o.keep = 1;
    o.fault_domain = "train";
    o.fault_domain_optional = 1;
    cr_assert_not(bad(gpurest_session_open(&first, w.client, &o)));
    cr_assert_not(bad(gpurest_session_open(&second, w.client, &o)));
    cr_assert_str_eq(gpurest_session_id(first), gpurest_session_id(second));
    cr_assert_not(bad(gpurest_request(w.client, "GET", "/v1/sessions/mine", NULL, &text)));
    cr_assert_not_null(strstr(text, "\"idle_timeout_s\":77"));
    cr_assert_not_null(strstr(text, "\"pool_bytes_max\":4096"));
    cr_assert_not_null(strstr(text, "\"fault_domain\":{\"name\":\"train\""));
    gpurest_mem_free(text);
    cr_assert_neq(gpurest_alloc(first, &too_large, 4 << 20), GPUREST_OK);
    cr_assert_not(bad(gpurest_alloc(first, &b, 100)));
    cr_assert_eq(gpurest_buffer_bytes(second, b), 0); /* a handle is valid only for the session object that made it */
    gpurest_session_close(first);
    cr_assert_not(bad(gpurest_sync(second)));
    o.idle_timeout_s = 78;
    cr_assert_eq(gpurest_session_open(&first, w.client, &o), GPUREST_E_INVAL);
    cr_assert_str_eq(gpurest_last_error()->code, "spec_conflict");
    gpurest_session_close(second);
    o.name = "Not Valid";
    cr_assert_eq(gpurest_session_open(&first, w.client, &o), GPUREST_E_INVAL);
    o = (gpurest_session_options)GPUREST_SESSION_OPTIONS_INIT;
    o.device = "cuda:7";
    cr_assert_eq(gpurest_session_open(&first, w.client, &o), GPUREST_E_NOTFOUND);
}

/* The text of GET /v1/sessions has `name` in it. */
static bool is_listed(const char *name)
{
    char *text = NULL;
    bool  found;

    cr_assert_not(bad(gpurest_request(w.client, "GET", "/v1/sessions", NULL, &text)));
    found = strstr(text, name) != NULL;
    gpurest_mem_free(text);
    return found;
}

static gpurest_session *leased(const char *name, uint32_t lease_s)
{
    gpurest_session_options o = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *s = NULL;

    o.name = name;
    o.lease_s = lease_s;
    cr_assert_not(bad(gpurest_session_open(&s, w.client, &o)));
    return s;
}

Test(session, with_a_lease_lives_as_long_as_its_process, .timeout = 180)
{
    gpurest_session *mine, *others;
    pid_t            child;
    int              status;

    world_serve(NULL, NULL);
    w.client = client_of(w.service.url, 0);
    child = fork();
    if (child == 0) {
        w.client = client_of(w.service.url, 0);
        leased("killed", 5);
        leased("killed-too", 5);
        raise(SIGKILL);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status));
    mine = leased("kept", 5);
    others = leased("other", 5);
    while (is_listed("killed")) /* its sessions end later than those of this process would without heartbeats */
        usleep(100 * 1000);
    cr_assert(is_listed("kept") && is_listed("other"));
    gpurest_session_close(mine);
    cr_assert_not(is_listed("kept"));
    cr_assert_not(bad(gpurest_sync(others)));
    gpurest_session_close(others);
    cr_assert_eq(
        gpurest_session_open(&mine, w.client, &(gpurest_session_options){.struct_size = sizeof(gpurest_session_options), .lease_s = 86401}),
        GPUREST_E_INVAL);
}

Test(session, that_has_ended_says_why_and_is_made_anew_by_a_reset)
{
    gpurest_session *s;
    gpurest_buffer   b;

    world_serve(NULL, NULL);
    w.client = client_of(w.service.url, 0);
    s = leased("mine", 60);
    cr_assert_not(bad(gpurest_alloc(s, &b, 100)));
    cr_assert_not(bad(gpurest_request(w.client, "DELETE", "/v1/sessions/mine", NULL, NULL)));
    for (int i = 0; i < 2; i++) { /* asked, and remembered */
        cr_assert_eq(gpurest_sync(s), GPUREST_E_SESSION_LOST);
        cr_assert_not_null(strstr(gpurest_last_error()->message, "the session has ended: it was deleted"), "%s",
                           gpurest_last_error()->message);
        cr_assert_not_null(strstr(gpurest_last_error()->hint, "gpurest_session_reset"));
    }
    cr_assert_not(bad(gpurest_session_reset(s)));
    cr_assert_not(bad(gpurest_sync(s)));
    cr_assert_eq(gpurest_buffer_bytes(s, b), 0);
    cr_assert(is_listed("\"lease_s\":60"));
    gpurest_session_close(s);
}

Test(session, devices_are_described)
{
    gpurest_device_info_t i = GPUREST_DEVICE_INFO_INIT;
    struct {
        size_t struct_size;
        char   id[32], beyond[8];
    } old = {.struct_size = sizeof(size_t) + 32, .beyond = "beyond"};
    int n = 0;

    world_serve(NULL, NULL);
    w.client = client_of(w.service.url, 0);
    cr_assert_not(bad(gpurest_device_count(w.client, &n)));
    cr_assert_eq(n, 1);
    cr_assert_not(bad(gpurest_device_info(w.client, 0, &i)));
    cr_assert_str_eq(i.id, "cpu:0");
    cr_assert_eq(i.warp_size, 32);
    cr_assert_gt(i.memory_total_bytes, 0);
    cr_assert_eq(gpurest_device_info(w.client, 1, &i), GPUREST_E_NOTFOUND);
    cr_assert_eq(gpurest_device_info(w.client, -1, &i), GPUREST_E_NOTFOUND);
    cr_assert_not(bad(gpurest_device_info(w.client, 0, (gpurest_device_info_t *)(void *)&old)));
    cr_assert_str_eq(old.id, "cpu:0");
    cr_assert_str_eq(old.beyond, "beyond");
}

static int add_piece(void *arg, const void *data, size_t bytes)
{
    size_t *total = arg;

    (void)data;
    *total += bytes;
    return 0;
}

Test(session, any_request_can_be_made)
{
    gpurest_http_request   q = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *r;
    static const char     *headers[] = {"Range: bytes=1-3", "X-Request-Id: my-own-id"};
    size_t                 bytes = 0, total = 0;

    world_serve(NULL, NULL);
    for (int use_libcurl = 0; use_libcurl <= 1; use_libcurl++) {
        gpurest_client  *c = client_of(w.service.url, use_libcurl);
        gpurest_session *s = session_of(c);
        char             path[300];
        snprintf(path, sizeof path, "/v1/sessions/%s/buffers/x", gpurest_session_id(s));
        q = (gpurest_http_request)GPUREST_HTTP_REQUEST_INIT;
        q.method = "PUT";
        q.path = path;
        q.content_type = "application/octet-stream";
        q.body = "hello";
        q.body_bytes = 5;
        cr_assert_not(bad(gpurest_http(c, &q, &r)));
        cr_assert_eq(gpurest_http_status(r), 201);
        cr_assert_not_null(strstr(gpurest_http_body(r, &bytes), "\"size\":5"));
        gpurest_http_response_free(r);
        snprintf(path, sizeof path, "/v1/sessions/%s/buffers/x/data", gpurest_session_id(s));
        q = (gpurest_http_request)GPUREST_HTTP_REQUEST_INIT;
        q.method = "GET";
        q.path = path;
        q.headers = headers;
        q.headers_count = 2;
        cr_assert_not(bad(gpurest_http(c, &q, &r)));
        cr_assert_eq(gpurest_http_status(r), 206);
        cr_assert_str_eq(gpurest_http_header(r, "content-range"), "bytes 1-3/5");
        cr_assert_str_eq(gpurest_http_header(r, "X-REQUEST-ID"), "my-own-id");
        cr_assert_null(gpurest_http_header(r, "Absent"));
        cr_assert_str_eq(gpurest_http_body(r, &bytes), "ell");
        cr_assert_eq(bytes, 3);
        gpurest_http_response_free(r);
        q.method = "HEAD";
        cr_assert_not(bad(gpurest_http(c, &q, &r)));
        cr_assert_eq(gpurest_http_status(r), 200);
        gpurest_http_response_free(r);
        q = (gpurest_http_request)GPUREST_HTTP_REQUEST_INIT;
        q.method = "GET";
        q.path = "/v1/nothing";
        q.on_body = add_piece;
        q.on_body_arg = &total;
        cr_assert_not(bad(gpurest_http(c, &q, &r)));
        cr_assert_eq(gpurest_http_status(r), 404);
        cr_assert_gt(total, 50);
        gpurest_http_response_free(r);
        cr_assert_eq(gpurest_request(c, "GET", "/v1/nothing", NULL, NULL), GPUREST_E_NOTFOUND);
        cr_assert_neq(gpurest_last_error()->request_id[0], '\0');
        cr_assert_eq(gpurest_request(c, "GET", "no-slash", NULL, NULL), GPUREST_E_INVAL);
        cr_assert_eq(gpurest_request(c, "GET", "/a b", NULL, NULL), GPUREST_E_INVAL);
        cr_assert_eq(gpurest_request(c, "GET", "/a\r\nX: y", NULL, NULL), GPUREST_E_INVAL);
        cr_assert_eq(gpurest_request(c, "EAT", "/", NULL, NULL), GPUREST_E_INVAL);
        gpurest_session_close(s);
        gpurest_close(c);
    }
}

Test(session, needs_the_token_that_the_service_wants)
{
    char            file[] = "/tmp/sdk_tokens_XXXXXX", token_file[] = "/tmp/sdk_token_XXXXXX";
    FILE           *tokens = fdopen(mkstemp(file), "w"), *token = fdopen(mkstemp(token_file), "w");
    gpurest_options o = GPUREST_OPTIONS_INIT;
    gpurest_client *c;

    /* sha-256 of "open-sesame" */
    fprintf(tokens, "{\"tokens\":[{\"name\":\"tester\",\"sha256\":\"d7ecdf25eaf3deba0f2628771dbdd22d4138ab6cf38f91ed02a2ca0dec7c8ab7\","
                    "\"scopes\":[\"read\",\"write\",\"compile\",\"launch\"]}]}");
    fprintf(token, "open-sesame\n");
    fclose(tokens);
    fclose(token);
    world_serve("--tokens", file);
    o.url = w.service.url;
    for (o.use_libcurl = 0; o.use_libcurl <= 1; o.use_libcurl++) {
        o.token = "";
        o.token_file = NULL;
        cr_assert_eq(gpurest_open_with(&c, &o), GPUREST_E_AUTH);
        o.token = "wrong";
        cr_assert_eq(gpurest_open_with(&c, &o), GPUREST_E_AUTH);
        cr_assert_str_eq(gpurest_last_error()->code, "unauthenticated");
        o.token = NULL;
        o.token_file = token_file;
        cr_assert_not(bad(gpurest_open_with(&c, &o)));
        gpurest_session_close(session_of(c));
        gpurest_close(c);
    }
    remove(file);
    remove(token_file);
}

Test(session, is_saved_to_a_file_and_loaded_from_it)
{
    gpurest_session_options o = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *copy = NULL;
    gpurest_buffer          b, there;
    char                    file[] = "/tmp/gpurest-snapshot-test-XXXXXX", bytes[4096], back[4096], path[256], *text;

    world_serve(NULL, NULL);
    world_connect(w.service.url);
    close(mkstemp(file));
    memset(bytes, 7, sizeof bytes);
    snprintf(path, sizeof path, "/v1/sessions/%s/buffers/kept", gpurest_session_id(w.session));
    cr_assert_not(bad(gpurest_request(w.client, "PUT", path, "{\"size\":4096}", &text)));
    gpurest_mem_free(text);
    cr_assert_not(bad(gpurest_buffer_open(w.session, &b, "kept")));
    cr_assert_not(bad(gpurest_write(w.session, b, 0, bytes, sizeof bytes)));
    cr_assert_not(bad(gpurest_session_save(w.session, file)));
    o.name = "copy";
    o.device = "cpu:0";
    cr_assert_not(bad(gpurest_session_load(&copy, w.client, file, &o)));
    cr_assert_str_eq(gpurest_session_id(copy), "copy");
    cr_assert_not(bad(gpurest_buffer_open(copy, &there, "kept")));
    cr_assert_not(bad(gpurest_read(copy, there, 0, back, sizeof back)));
    cr_assert_arr_eq(back, bytes, sizeof back);
    cr_assert_eq(gpurest_session_load(&copy, w.client, file, &o), GPUREST_E_INVAL);
    cr_assert_str_eq(gpurest_last_error()->code, "spec_conflict");
    cr_assert_not(truncate(file, 1000));
    o.name = NULL;
    cr_assert_eq(gpurest_session_load(&copy, w.client, file, &o), GPUREST_E_INVAL);
    cr_assert_str_eq(gpurest_last_error()->code, "snapshot_invalid");
    cr_assert_eq(gpurest_session_save(w.session, "/nowhere/file"), GPUREST_E_INVAL);
    gpurest_session_close(copy);
    remove(file);
}

Test(session, a_fault_loses_it_and_reset_revives_it)
{
    gpurest_module       *m;
    const gpurest_kernel *k;
    gpurest_buffer        b, after;
    gpurest_arg           args[1];

    world_serve(NULL, NULL);
    world_connect(w.service.url);
    k = kernel_of(w.session, &m, "fault");
    cr_assert_not(bad(gpurest_alloc(w.session, &b, 4)));
    args[0] = GPUREST_BUF(b);
    cr_assert_eq(gpurest_launch(w.session, k, GPUREST_1D(1), GPUREST_1D(1), 0, (gpurest_stream){0}, args, 1), GPUREST_E_CUDA);
    cr_assert_str_eq(gpurest_last_error()->code, "kernel_fault");
    cr_assert_eq(gpurest_last_error()->cuda_result, 700);
    cr_assert_eq(gpurest_last_error()->fatal_for_session, 1);
    cr_assert_eq(gpurest_alloc(w.session, &after, 4), GPUREST_E_SESSION_LOST);
    cr_assert_eq(gpurest_sync(w.session), GPUREST_E_SESSION_LOST);
    gpurest_module_unload(m);
    cr_assert_not(bad(gpurest_session_reset(w.session)));
    cr_assert_eq(gpurest_buffer_bytes(w.session, b), 0);
    cr_assert_eq(gpurest_free(w.session, b), GPUREST_E_INVAL);
    cr_assert_not(bad(gpurest_alloc(w.session, &after, 4)));
}

static const char *state_of(gpurest_session *s)
{
    static gpurest_session_info_t i;

    i = (gpurest_session_info_t)GPUREST_SESSION_INFO_INIT;
    cr_assert_not(bad(gpurest_session_info(s, &i)));
    cr_assert_str_eq(i.id, gpurest_session_id(s));
    cr_assert(strncmp(i.device, "cpu:", 4) == 0, "%s", i.device);
    return i.state;
}

Test(session, hibernates_until_it_is_used_or_woken)
{
    gpurest_session_info_t i = GPUREST_SESSION_INFO_INIT;
    enum { BYTES = 4 * 1024 * 1024 };
    static char    data[BYTES], back[BYTES];
    gpurest_buffer b;
    gpurest_op    *op;

    world_serve("--hibernate-mib", "64");
    world_connect(w.service.url);
    memset(data, 7, sizeof data);
    cr_assert_not(bad(gpurest_alloc(w.session, &b, sizeof data)));
    cr_assert_not(bad(gpurest_write_async(w.session, b, 0, data, sizeof data, &op)));
    cr_assert_not(bad(gpurest_session_hibernate(w.session, &i)));
    cr_assert_not(bad(gpurest_op_wait(op, -1)));
    gpurest_op_free(op);
    cr_assert_str_eq(i.state, "hibernated");
    cr_assert_str_eq(state_of(w.session), "hibernated", "asking does not wake it");
    cr_assert_not(bad(gpurest_read(w.session, b, 0, back, sizeof back)));
    cr_assert_arr_eq(back, data, sizeof data);
    cr_assert_str_eq(state_of(w.session), "ready");
    cr_assert_not(bad(gpurest_session_hibernate(w.session, NULL)));
    cr_assert_not(bad(gpurest_session_wake(w.session, &i)));
    cr_assert_str_eq(i.state, "ready");
    cr_assert_eq(gpurest_session_info(w.session, NULL), GPUREST_E_INVAL);
}

Test(session, hibernation_is_the_operators_to_allow)
{
    world_start_bare();
    cr_assert_eq(gpurest_session_hibernate(w.session, NULL), GPUREST_E_UNSUPPORTED);
    cr_assert_str_eq(gpurest_last_error()->code, "feature_disabled");
    cr_assert_str_eq(state_of(w.session), "ready");
}
