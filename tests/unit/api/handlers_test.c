/* The handlers on real sessions on the fake device: answers, refusals, uploads and downloads in pieces, waiting, leaving clients. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "api/batch/frame.h"
#include "api/bounds.h"
#include "api/endpoints.h"
#include "exchange.h"
#include "support/fake_pool.h"

/* Each test has its own service. */
TestSuite(handlers, .init = app_start, .fini = app_stop, .timeout = 180);

static char text[4096];

static void expect(const char *method, const char *target, const char *json, unsigned http, const char *has)
{
    unsigned got = ask(method, target, json, text);

    cr_assert_eq(got, http, "%s %s: %u %s", method, target, got, text);
    cr_assert(strstr(text, has), "%s %s: no %s in %s", method, target, has, text);
}

static void put_octets(struct exchange *x, const char *target, struct span body)
{
    *x = (struct exchange){.method = "PUT", .target = target, .type = "application/octet-stream", .body = body};
}

static void session_with_data(struct span data)
{
    struct exchange x;

    expect("PUT", "/v1/sessions/s", NULL, 201, "\"ready\"");
    put_octets(&x, "/v1/sessions/s/buffers/a", data);
    exchange_do(&x);
    cr_assert_eq(x.http, 201, "%s", x.problem.detail);
    cr_assert(exchange_answered(&x, "ETag") && exchange_answered(&x, "Location"));
    exchange_close(&x);
}

Test(handlers, every_row_has_a_handler_and_a_place)
{
    size_t                 count;
    const struct endpoint *table = endpoints_table(&count);

    cr_assert_gt(count, 30);
    for (size_t i = 0; i < count; i++) {
        cr_assert(table[i].handle && table[i].path[0] == '/', "%s", table[i].operation);
        cr_assert(table[i].body == BODY_NONE || table[i].scope > SCOPE_ANY, "%s changes something without a scope", table[i].operation);
    }
}

Test(handlers, infrastructure)
{
    expect("GET", "/livez", NULL, 200, "ok");
    expect("GET", "/readyz", NULL, 200, "ok");
    expect("GET", "/readyz?verbose=1", NULL, 200, "\"ready\":true");
    expect("GET", "/readyz?verbose=2", NULL, 400, "invalid_field");
    expect("GET", "/readyz?x=1", NULL, 400, "unknown_field");
    expect("GET", "/version", NULL, 200, "\"api\"");
    expect("GET", "/", NULL, 200, "/v1/sessions");
    expect("GET", "/problems/kernel_fault", NULL, 200, "422");
    expect("GET", "/problems/none", NULL, 404, "not_found");
    expect("GET", "/v1/limits", NULL, 200, "\"sessions\":{\"max\":8,\"used\":0}");
    expect("GET", "/v1/devices", NULL, 200, "\"next_cursor\":null");
    expect("GET", "/v1/devices/none:7", NULL, 404, "device_not_found");
    atomic_store(&the_app()->draining, true);
    expect("GET", "/readyz", NULL, 503, "draining");
    expect("GET", "/lbz", NULL, 404, "not_found");
}

Test(handlers, sessions)
{
    expect("PUT", "/v1/sessions/s", "{\"labels\":{\"a\":\"b\"},\"memory_limit\":1000}", 201, "\"memory_limit\":1000");
    expect("PUT", "/v1/sessions/s", "{\"labels\":{\"a\":\"b\"},\"memory_limit\":1000}", 200, "\"labels\":{\"a\":\"b\"}");
    expect("PUT", "/v1/sessions/s", "{}", 409, "spec_conflict");
    expect("GET", "/v1/sessions/s", NULL, 200, "\"usage\":{\"device_time_us\":0");
    expect("PATCH", "/v1/sessions/s", "{\"idle_timeout_s\":9}", 200, "\"idle_timeout_s\":9");
    expect("PATCH", "/v1/sessions/s", "{\"device\":\"x\"}", 400, "unknown_field");
    expect("POST", "/v1/sessions", "[]", 400, "invalid_field");
    expect("POST", "/v1/sessions", "{", 400, "invalid_json");
    expect("POST", "/v1/sessions", "{\"idle_timeout_s\":0}", 400, "invalid_field");
    expect("POST", "/v1/sessions", "{\"labels\":{\"a\":1}}", 400, "invalid_field");
    expect("GET", "/v1/sessions?limit=1", NULL, 200, "\"items\":[{\"id\":\"s\"");
    expect("POST", "/v1/sessions/s/reset", NULL, 200, "\"generation\":");
    expect("POST", "/v1/sessions/s/reset", "{\"x\":1}", 400, "unknown_field");
    expect("POST", "/v1/sessions/s/sync", NULL, 200, "{}");
    expect("PATCH", "/v1/sessions/s", "{\"lease_s\":60}", 200, "\"lease_s\":60");
    expect("PATCH", "/v1/sessions/s", "{\"lease_s\":0}", 200, "\"lease_s\":null");
    expect("POST", "/v1/sessions/s/heartbeat", NULL, 204, "");
    expect("POST", "/v1/sessions/s/heartbeat", "{\"x\":1}", 400, "unknown_field");
    expect("DELETE", "/v1/sessions/s", NULL, 204, "");
    expect("GET", "/v1/sessions/s", NULL, 404, "session_not_found");
    expect("POST", "/v1/sessions/s/heartbeat", NULL, 404, "session_not_found");
}

Test(handlers, buffers)
{
    expect("PUT", "/v1/sessions/s", NULL, 201, "ready");
    expect("PUT", "/v1/sessions/s/buffers/a", "{\"size\":16}", 201, "\"size\":16");
    expect("PUT", "/v1/sessions/s/buffers/a", "{\"size\":16}", 200, "\"id\":\"a\"");
    expect("PUT", "/v1/sessions/s/buffers/a", "{\"size\":17}", 409, "spec_conflict");
    expect("POST", "/v1/sessions/s/buffers", "{\"size\":0}", 400, "invalid_field");
    expect("POST", "/v1/sessions/s/buffers/a/fill", "{\"pattern\":{\"u32\":1}}", 204, "");
    expect("POST", "/v1/sessions/s/buffers/a/fill", "{\"pattern\":{\"u32\":1},\"offset\":16,\"size\":4}", 416, "range_not_satisfiable");
    expect("POST", "/v1/sessions/s/buffers/a/fill", "{\"pattern\":1}", 400, "invalid_field");
    expect("PUT", "/v1/sessions/s/buffers/b", "{\"size\":4}", 201, "");
    expect("POST", "/v1/sessions/s/buffers/b/copy", "{\"from\":\"a\"}", 204, "");
    expect("POST", "/v1/sessions/s/buffers/b/copy", "{\"from\":\"none\"}", 404, "buffer_not_found");
    expect("GET", "/v1/sessions/s/buffers/b/data", NULL, 200, "\1");
    expect("GET", "/v1/sessions/s/buffers?limit=1", NULL, 200, "\"next_cursor\":\"");
    expect("DELETE", "/v1/sessions/s/buffers/a", NULL, 204, "");
    expect("GET", "/v1/sessions/s/buffers/a", NULL, 404, "buffer_not_found");
}

static char big[3 * 1024 * 1024 + 5];

Test(handlers, bytes_up_and_down)
{
    struct exchange x = {.method = "GET", .target = "/v1/sessions/s/buffers/a/data"};

    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * 31 + i / 257);
    session_with_data((struct span){big, sizeof big});
    exchange_do(&x);
    cr_assert_eq(x.http, 200);
    cr_assert(x.text.bytes == sizeof big && memcmp(x.text.data, big, sizeof big) == 0);
    exchange_close(&x);
}

static unsigned get_data(const char *name, const char *value, size_t *bytes, char content_range[64])
{
    struct exchange x = {.method = "GET", .target = "/v1/sessions/s/buffers/a/data", .headers = {{name, value}}};
    unsigned        http;

    exchange_do(&x);
    http = x.http;
    *bytes = x.text.bytes;
    snprintf(content_range, 64, "%s", exchange_answered(&x, "Content-Range") ? exchange_answered(&x, "Content-Range") : "");
    exchange_close(&x);
    return http;
}

Test(handlers, ranges_and_preconditions)
{
    char   content_range[64], etag[64];
    size_t bytes;

    session_with_data(SPAN_LITERAL("0123456789"));
    cr_assert_eq(get_data("Range", "bytes=2-4", &bytes, content_range), 206);
    cr_assert_eq(bytes, 3);
    cr_assert_str_eq(content_range, "bytes 2-4/10");
    cr_assert_eq(get_data("Range", "bytes=10-", &bytes, content_range), 416);
    cr_assert_eq(get_data("If-Match", "\"x\"", &bytes, content_range), 412);
    cr_assert_eq(get_data("If-None-Match", "*", &bytes, content_range), 304);
    cr_assert_eq(get_data("Accept", "text/html", &bytes, content_range), 406);
    struct exchange head = {.method = "HEAD", .target = "/v1/sessions/s/buffers/a/data"};
    exchange_do(&head);
    cr_assert(head.http == 200 && head.request.reply.source_bytes == 10 && head.text.bytes == 0);
    snprintf(etag, sizeof etag, "%s", exchange_answered(&head, "ETag"));
    exchange_close(&head);
    cr_assert_eq(get_data("If-None-Match", etag, &bytes, content_range), 304);
    expect("POST", "/v1/sessions/s/buffers/a/fill", "{\"pattern\":{\"u8\":1}}", 204, "");
    cr_assert_eq(get_data("If-None-Match", etag, &bytes, content_range), 200);
}

static unsigned put_data(struct span body, const char *content_range, bool chunked)
{
    struct exchange x;
    unsigned        http;

    put_octets(&x, "/v1/sessions/s/buffers/a/data", body);
    x.chunked = chunked;
    if (content_range)
        x.headers[0][0] = "Content-Range", x.headers[0][1] = content_range;
    exchange_do(&x);
    http = x.http;
    exchange_close(&x);
    return http;
}

Test(handlers, writes)
{
    session_with_data(SPAN_LITERAL("0123456789"));
    cr_assert_eq(put_data(SPAN_LITERAL("abcdefghij"), NULL, false), 204);
    cr_assert_eq(put_data(SPAN_LITERAL("XY"), "bytes 3-4/10", false), 204);
    cr_assert_eq(put_data(SPAN_LITERAL("Z"), "bytes 9-9/*", true), 204);
    expect("GET", "/v1/sessions/s/buffers/a/data", NULL, 200, "abcXYfghiZ");
    cr_assert_eq(put_data(SPAN_LITERAL("abc"), NULL, false), 400);
    cr_assert_eq(put_data(SPAN_LITERAL("0123456789a"), NULL, false), 413);
    cr_assert_eq(put_data(SPAN_LITERAL("abc"), NULL, true), 411);
    cr_assert_eq(put_data(SPAN_LITERAL("abc"), "bytes 0-1/10", true), 400);
    cr_assert_eq(put_data(SPAN_LITERAL("a"), "bytes 0-1/10", true), 400);
    cr_assert_eq(put_data(SPAN_LITERAL("ab"), "bytes 9-10/10", false), 416);
    cr_assert_eq(put_data(SPAN_LITERAL("ab"), "bytes 9-", false), 400);
    expect("GET", "/v1/sessions/s/buffers/a/data", NULL, 200, "XYfghiZ");
}

Test(handlers, an_upload_whose_client_leaves_is_undone)
{
    struct exchange x;

    expect("PUT", "/v1/sessions/s", NULL, 201, "ready");
    put_octets(&x, "/v1/sessions/s/buffers/half", (struct span){big, sizeof big});
    x.client_leaves = true;
    exchange_do(&x);
    exchange_close(&x);
    expect("GET", "/v1/sessions/s/buffers/half", NULL, 404, "buffer_not_found");
    for (uint64_t until = deadline_after_ms(60000); fake_live_allocations() && deadline_left_ns(until) > 0;)
        usleep(1000); /* the worker frees it later */
    cr_assert_eq(fake_live_allocations(), 0);
}

Test(handlers, an_upload_that_does_not_fit_is_refused_before_its_body)
{
    struct exchange x;

    expect("PUT", "/v1/sessions/s", "{\"memory_limit\":100}", 201, "ready");
    put_octets(&x, "/v1/sessions/s/buffers/a", (struct span){big, 101});
    exchange_do(&x);
    cr_assert_eq(x.status, STATUS_QUOTA_EXCEEDED);
    cr_assert(x.request.progress == NULL && x.problem.limit_max == 100);
    exchange_close(&x);
}

Test(handlers, an_upload_that_the_device_refuses_leaves_nothing)
{
    struct exchange x;

    expect("PUT", "/v1/sessions/s", NULL, 201, "ready");
    fake_fail_at(0, STATUS_DEVICE_MEMORY_EXHAUSTED);
    put_octets(&x, "/v1/sessions/s/buffers/a", (struct span){big, 5000});
    exchange_do(&x);
    cr_assert_eq(x.status, STATUS_DEVICE_MEMORY_EXHAUSTED);
    exchange_close(&x);
    expect("GET", "/v1/sessions/s/buffers/a", NULL, 404, "buffer_not_found");
}

static void put_ptx(void)
{
    struct exchange x = {
        .method = "PUT", .target = "/v1/sessions/s/modules/m", .type = "application/vnd.gpurest.ptx", .body = SPAN_LITERAL("good")};

    expect("PUT", "/v1/sessions/s", NULL, 201, "ready");
    exchange_do(&x);
    cr_assert_eq(x.http, 201, "%s", x.problem.detail);
    cr_assert(strstr(x.text.data, "\"name\":\"scaled\",\"mangled\":\"_Z6scaledPfi\""), "%s", x.text.data);
    exchange_close(&x);
}

Test(handlers, modules)
{
    struct exchange x = {.method = "POST", .target = "/v1/sessions/s/modules", .type = "text/plain", .body = SPAN_LITERAL("x")};

    put_ptx();
    expect("GET", "/v1/sessions/s/modules/m", NULL, 200, "\"params\":[{\"offset\":0,\"size\":8");
    expect("GET", "/v1/sessions/s/modules", NULL, 200, "\"items\":[{\"id\":\"m\"");
    expect("GET", "/v1/sessions/s/modules/m/code?format=elf", NULL, 400, "invalid_field");
    expect("POST", "/v1/sessions/s/modules", "{\"source\":1}", 400, "invalid_field");
    expect("POST", "/v1/sessions/s/modules", "{\"source\":\"x\",\"headers\":[]}", 400, "invalid_field");
    exchange_do(&x);
    cr_assert_eq(x.status, STATUS_UNSUPPORTED_MEDIA_TYPE);
    exchange_close(&x);
    x.type = "application/vnd.gpurest.cubin";
    exchange_do(&x);
    cr_assert_eq(x.status, STATUS_FEATURE_DISABLED);
    exchange_close(&x);
    expect("DELETE", "/v1/sessions/s/modules/m", NULL, 204, "");
    expect("GET", "/v1/sessions/s/modules/m/log", NULL, 404, "module_not_found");
}

#define LAUNCH(kernel, more) "{\"module\":\"m\",\"kernel\":\"" kernel "\",\"grid\":[1],\"block\":[1]" more "}"

Test(handlers, launches_that_end)
{
    put_ptx();
    expect("POST", "/v1/sessions/s/launches", LAUNCH("noop", ",\"id\":\"one\""), 200, "\"state\":\"succeeded\"");
    expect("GET", "/v1/sessions/s/launches/one", NULL, 200, "\"grid\":[1,1,1]");
    expect("DELETE", "/v1/sessions/s/launches/one", NULL, 200, "succeeded");
    expect("POST", "/v1/sessions/s/launches", LAUNCH("print", ""), 200, "\"stdout\":\"");
    expect("POST", "/v1/sessions/s/launches", LAUNCH("none", ""), 404, "kernel_not_found");
    expect("POST", "/v1/sessions/s/launches", LAUNCH("noop", ",\"args\":[{\"i32\":1}]"), 422, "argument_mismatch");
    expect("POST", "/v1/sessions/s/launches", LAUNCH("noop", ",\"args\":[{\"i32\":1.5}]"), 400, "invalid_field");
    expect("POST", "/v1/sessions/s/launches", LAUNCH("noop", ",\"timeout_ms\":0"), 400, "invalid_field");
    expect("POST", "/v1/sessions/s/launches", "{\"module\":\"m\",\"kernel\":\"noop\",\"grid\":[0]}", 422, "launch_config_invalid");
    expect("POST", "/v1/sessions/s/launches", "{\"module\":\"m\",\"kernel\":\"noop\",\"grid\":[1,1,1,1]}", 400, "invalid_field");
    expect("POST", "/v1/sessions/s/launches", "{\"module\":\"m\",\"kernel\":\"noop\",\"grid\":{\"threads\":5}}", 200, "succeeded");
    expect("GET", "/v1/sessions/s/launches", NULL, 200, "\"id\":\"one\"");
    expect("POST", "/v1/sessions/s/launches", LAUNCH("fault", ""), 422, "kernel_fault");
    expect("GET", "/v1/sessions/s", NULL, 200, "\"fault\":{\"type\":\"/problems/kernel_fault\"");
    expect("POST", "/v1/sessions/s/launches", LAUNCH("noop", ""), 409, "session_faulted");
}

static struct exchange waiting(const char *prefer)
{
    return (struct exchange){.method = "POST",
                             .target = "/v1/sessions/s/launches",
                             .type = "application/json",
                             .body = SPAN_LITERAL(LAUNCH("wait", ",\"id\":\"w\"")),
                             .headers = {{"Prefer", prefer}}};
}

Test(handlers, preferences_of_a_launch)
{
    struct exchange x = waiting("wait=0");
    struct exchange poll = {.method = "GET", .target = "/v1/sessions/s/launches/w", .headers = {{"Prefer", "wait=60"}}};

    put_ptx();
    exchange_do(&x);
    cr_assert_eq(x.http, 202);
    cr_assert_str_eq(exchange_answered(&x, "Location"), "/v1/sessions/s/launches/w");
    cr_assert_str_eq(exchange_answered(&x, "Preference-Applied"), "wait=0");
    exchange_close(&x);
    fake_await_running();
    expect("DELETE", "/v1/sessions/s/launches/w", NULL, 409, "launch_running");
    fake_script()->released = true;
    exchange_do(&poll);
    cr_assert(poll.http == 200 && strstr(poll.text.data, "succeeded"));
    exchange_close(&poll);
}

Test(handlers, a_long_poll_that_ends_in_vain)
{
    struct exchange x = waiting("respond-async");
    struct exchange poll = {.method = "GET", .target = "/v1/sessions/s/launches/w"};

    put_ptx();
    exchange_do(&x);
    cr_assert_eq(x.http, 202);
    exchange_close(&x);
    fake_await_running();
    exchange_do(&poll);
    char etag[64];
    snprintf(etag, sizeof etag, "%s", exchange_answered(&poll, "ETag"));
    exchange_close(&poll);
    poll.headers[0][0] = "If-None-Match", poll.headers[0][1] = etag;
    poll.headers[1][0] = "Prefer", poll.headers[1][1] = "wait=1";
    exchange_do(&poll);
    cr_assert_eq(poll.http, 304);
    exchange_close(&poll);
    expect("DELETE", "/v1/sessions/s/launches/w?force=1", NULL, 202, "\"id\":\"w\"");
    expect("GET", "/v1/sessions/s", NULL, 200, "\"state\":\"ready\"");
}

static void await_answer(const char *target, const char *part)
{
    char answer[4096] = "";

    for (uint64_t until = deadline_after_ms(60000); !strstr(answer, part) && deadline_left_ns(until) > 0; usleep(1000))
        cr_assert_eq(ask("GET", target, NULL, answer), 200);
    cr_assert(strstr(answer, part), "%s", answer);
}

Test(handlers, a_queued_launch_whose_client_leaves_is_cancelled)
{
    struct exchange running = waiting("respond-async");
    struct exchange queued = waiting("wait=60");

    put_ptx();
    exchange_do(&running);
    exchange_close(&running);
    fake_await_running();
    queued.body = SPAN_LITERAL(LAUNCH("noop", ",\"id\":\"q\""));
    queued.client_leaves = true;
    exchange_do(&queued);
    cr_assert_eq(queued.status, STATUS_CANCELLED);
    exchange_close(&queued);
    await_answer("/v1/sessions/s/launches/q", "\"state\":\"cancelled\""); /* the worker is asked, but nobody waits for it */
    fake_script()->released = true;
}

enum { LONG_FRAME_BYTES = BATCH_WHOLE_BYTES_MAX + BATCH_ALIGN_BYTES };

/* A frame of only head and JSON, too long to be collected. */
static struct exchange long_frame(const char *json)
{
    static char frame[LONG_FRAME_BYTES];
    const char  head[BATCH_HEAD_BYTES] = {(char)0x89, 'G', 'P', 'R', '\r', '\n', 0x1a, '\n', 1};
    uint32_t    bytes = LONG_FRAME_BYTES - BATCH_HEAD_BYTES;

    memset(frame, ' ', sizeof frame);
    memcpy(frame, head, sizeof head);
    for (unsigned i = 0; i < 4; i++)
        frame[BATCH_HEAD_BYTES - 4 + i] = (char)(bytes >> 8 * i);
    memcpy(frame + BATCH_HEAD_BYTES, json, strlen(json));
    return (struct exchange){.method = "POST", .target = "/v1/sessions/s/batches", .type = BATCH_TYPE, .body = {frame, sizeof frame}};
}

Test(handlers, a_long_batch_without_segments_waits_until_it_is_made)
{
    struct exchange x;

    expect("PUT", "/v1/sessions/s", NULL, 201, "\"ready\"");
    for (unsigned i = 0; i < 20; i++) {
        x = long_frame("{\"ops\":[{\"op\":\"alloc\",\"as\":\"$a\",\"size\":64},{\"op\":\"sync\"}]}");
        exchange_do(&x);
        cr_assert_eq(x.http, 200, "%s", x.problem.detail);
        exchange_close(&x);
    }
    x = long_frame("{\"ops\":[{\"op\":\"none\"}]}");
    exchange_do(&x);
    cr_assert_eq(x.status, STATUS_INVALID_FIELD);
    exchange_close(&x);
}

Test(handlers, a_long_batch_whose_client_leaves_is_let_go_of)
{
    expect("PUT", "/v1/sessions/s", NULL, 201, "\"ready\"");
    for (unsigned i = 0; i < 20; i++) {
        struct exchange x = long_frame("{\"ops\":[{\"op\":\"alloc\",\"as\":\"$a\",\"size\":64},{\"op\":\"sync\"}]}");

        x.client_leaves = i % 2;
        x.body.bytes -= i % 4 ? 0 : BATCH_ALIGN_BYTES; /* sometimes the length does not match the head */
        exchange_do(&x);
        exchange_close(&x);
    }
}

/* ---- resets of devices: no thread waits for them ---- */

static struct exchange reset(const char *json)
{
    return (struct exchange){
        .method = "POST", .target = "/v1/admin/devices/fake:0/reset", .type = "application/json", .body = span_of(json)};
}

static void run_a_kernel(void)
{
    struct exchange x = waiting("respond-async");

    put_ptx();
    exchange_do(&x);
    cr_assert_eq(x.http, 202);
    exchange_close(&x);
    fake_await_running();
}

Test(handlers, a_reset_waits_suspended_until_its_time_is_up)
{
    struct exchange x = reset("{\"kind\":\"soft\",\"timeout_s\":1}");

    run_a_kernel();
    exchange_do(&x);
    cr_assert_eq(x.http, 200, "%s", x.problem.detail);
    cr_assert_gt(x.request.calls, 10, "its handler returned and was called again, every %d ms", RESET_LOOK_MS);
    cr_assert(strstr(x.text.data, "\"state\":\"healthy\""), "%s", x.text.data);
    exchange_close(&x);
    expect("GET", "/v1/sessions/s", NULL, 200, "\"code\":\"device_reset\"");
    expect("POST", "/v1/sessions/s/reset", NULL, 200, "ready");
}

Test(handlers, a_reset_whose_client_leaves_before_it_goes_on_is_given_up)
{
    struct exchange x = reset("{\"kind\":\"soft\",\"timeout_s\":600}");

    run_a_kernel();
    x.client_leaves = true;
    exchange_do(&x);
    cr_assert_eq(x.status, STATUS_CANCELLED);
    cr_assert_eq(x.request.calls, 1);
    expect("POST", "/v1/sessions/s/launches", LAUNCH("noop", ""), 503, "overloaded");
    exchange_close(&x);
    fake_script()->released = true;
    await_answer("/v1/sessions/s/launches/w", "\"state\":\"succeeded\"");
    expect("POST", "/v1/sessions/s/launches", LAUNCH("noop", ""), 200, "succeeded");
}

Test(handlers, a_reset_that_is_refused_changes_nothing)
{
    expect("PUT", "/v1/sessions/s", NULL, 201, "ready");
    expect("POST", "/v1/admin/devices/fake:0/reset", "{\"kind\":\"warm\"}", 400, "invalid_field");
    expect("POST", "/v1/admin/devices/fake:7/reset", "{\"kind\":\"soft\"}", 404, "device_not_found");
    expect("POST", "/v1/admin/devices/fake:0/reset", "{\"kind\":\"hard\"}", 403, "feature_disabled");
    expect("GET", "/v1/sessions/s", NULL, 200, "\"state\":\"ready\"");
}
