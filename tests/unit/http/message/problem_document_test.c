/* Problem documents, and the header fields that go with them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <strings.h>

#include "http/json/json.h"
#include "http/message/problem_document.h"

static struct reply          reply;
static struct json_document *document;

static const struct json *make(const struct problem *why)
{
    struct problem_place place = {SPAN_LITERAL("/v1/sessions/s/launches"), "id-1", "GET, HEAD", "application/json"};
    struct problem       bad = {0};

    reply_init(&reply);
    problem_document_reply(why, &place, &reply);
    cr_assert_not(reply.body.failed);
    cr_assert_eq(json_parse(buf_span(&reply.body), &document, &bad), STATUS_OK, "%s: %s", bad.detail, reply.body.data);
    return json_root(document);
}

static void drop(void)
{
    json_document_destroy(document);
    reply_finish(&reply);
}

static const char *header(const char *name)
{
    for (unsigned i = 0; i < reply.headers_count; i++)
        if (strcasecmp(reply.headers[i].name, name) == 0)
            return reply.headers[i].value;
    return NULL;
}

Test(problem_document, has_every_member)
{
    struct problem why;
    const char    *wanted =
        "{\"type\":\"/problems/argument_mismatch\",\"title\":\"Kernel arguments do not match\",\"status\":422,\"detail\":\"expected 4\","
        "\"instance\":\"/v1/sessions/s/launches\",\"code\":\"argument_mismatch\",\"request_id\":\"id-1\",\"retryable\":false,"
        "\"retry_after_ms\":null,\"errors\":[{\"pointer\":\"/args/3\",\"code\":\"size\",\"detail\":\"expected 4\"}],"
        "\"cuda\":null,\"compile\":null,\"limit\":null}";

    problem_field(&why, STATUS_ARGUMENT_MISMATCH, "/args/3", "size", "expected %d", 4);
    make(&why);
    cr_assert_str_eq(reply.body.data, wanted);
    cr_assert_eq(reply.http_status, 422);
    cr_assert_str_eq(header("Content-Type"), "application/problem+json");
    cr_assert_null(header("Retry-After"));
    cr_assert_null(header("Allow"));
    drop();
}

Test(problem_document, tells_cuda_limit_and_compiler)
{
    const struct diagnostic d = {SPAN_LITERAL("a.cu"), 3, 4, SPAN_LITERAL("error"), SPAN_LITERAL("bad \xff byte")};
    struct problem          why;
    const struct json      *root;
    uint64_t                n;

    problem_cuda(&why, STATUS_KERNEL_FAULT, 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "fault");
    root = make(&why);
    cr_assert(json_u64(json_member(json_member(root, "cuda"), "result"), &n) && n == 700);
    drop();
    problem_limit(&why, STATUS_QUOTA_EXCEEDED, "sessions", 8, 8, UINT64_MAX);
    root = make(&why);
    cr_assert(json_u64(json_member(json_member(root, "limit"), "max"), &n) && n == 8);
    cr_assert_eq(json_type_of(json_member(json_member(root, "limit"), "requested")), JSON_NULL);
    drop();
    problem_set(&why, STATUS_COMPILE_FAILED, "1 error");
    why.compile_log = SPAN_LITERAL("log");
    why.diagnostics = &d;
    why.diagnostics_count = 1;
    root = json_member(make(&why), "compile");
    cr_assert(span_is(json_text(json_member(root, "log")), "log"));
    root = json_first(json_member(root, "diagnostics"));
    cr_assert(span_is(json_text(json_member(root, "message")), "bad \xef\xbf\xbd byte"));
    drop();
}

Test(problem_document, tells_the_access_that_ended_a_kernel)
{
    struct problem why;
    const char    *whole =
        "\"access\":{\"error\":\"out_of_bounds\",\"kind\":\"write\",\"space\":\"global\",\"address\":\"18446744073709551615\",\"bytes\":4,"
        "\"kernel\":\"k\",\"image\":2,\"line\":7,\"source\":{\"file\":\"a.cu\",\"line\":3},\"block\":[1,2,3],\"thread\":[4,5,6],"
        "\"allocation\":{\"address\":4096,\"bytes\":256,\"freed\":true}}}";
    const char *little =
        "\"access\":{\"error\":\"misaligned\",\"kind\":\"atomic\",\"space\":\"shared\",\"address\":2,\"bytes\":null,\"kernel\":\"k\","
        "\"line\":0,\"block\":[1,2,3],\"thread\":null,\"allocation\":null}}";

    problem_cuda(&why, STATUS_KERNEL_FAULT, 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "fault");
    cr_assert_null(json_member(make(&why), "access"));
    drop();
    why.access =
        (struct problem_access){ACCESS_OUT_OF_BOUNDS, ACCESS_WRITE, ACCESS_GLOBAL, NEAREST_FREED, 1,     2, 4, 7, 3, {1, 2, 3}, {4, 5, 6},
                                UINT64_MAX,           4096,         256,           "k",           "a.cu"};
    make(&why);
    cr_assert(strstr(reply.body.data, whole), "%s", reply.body.data);
    drop();
    why.access = (struct problem_access){
        .error = ACCESS_MISALIGNED, .kind = ACCESS_ATOMIC, .space = ACCESS_SHARED, .address = 2, .block = {1, 2, 3}, .kernel = "k"};
    make(&why);
    cr_assert(strstr(reply.body.data, little), "%s", reply.body.data);
    drop();
    why.access.kind = ACCESS_KINDS;
    cr_assert_null(json_member(make(&why), "access"));
    drop();
}

Test(problem_document, says_how_a_session_ended)
{
    struct problem     why;
    const struct json *root;
    uint64_t           n;

    problem_set(&why, STATUS_SESSION_NOT_FOUND, "unknown session");
    cr_assert_null(json_member(make(&why), "ended"));
    drop();
    why.ended_reason = "idle";
    why.ended_wall_ns = 1;
    why.ended_limit_s = 600;
    root = json_member(make(&why), "ended");
    cr_assert(span_is(json_text(json_member(root, "reason")), "idle"));
    cr_assert(span_is(json_text(json_member(root, "at")), "1970-01-01T00:00:00.000Z"));
    cr_assert(json_u64(json_member(root, "limit_s"), &n) && n == 600);
    drop();
    why.ended_limit_s = 0;
    cr_assert_eq(json_type_of(json_member(json_member(make(&why), "ended"), "limit_s")), JSON_NULL);
    drop();
}

Test(problem_document, adds_the_headers_of_its_status)
{
    struct problem why;

    problem_set(&why, STATUS_UNAUTHENTICATED, "x");
    make(&why);
    cr_assert_str_eq(header("WWW-Authenticate"), "Bearer");
    drop();
    problem_set(&why, STATUS_METHOD_NOT_ALLOWED, "x");
    make(&why);
    cr_assert_str_eq(header("Allow"), "GET, HEAD");
    drop();
    problem_set(&why, STATUS_UNSUPPORTED_MEDIA_TYPE, "x");
    make(&why);
    cr_assert_str_eq(header("Accept"), "application/json");
    drop();
    problem_set(&why, STATUS_RANGE_NOT_SATISFIABLE, "x");
    why.has_unsatisfied_range = true;
    why.range_size = UINT64_MAX;
    make(&why);
    cr_assert_str_eq(header("Content-Range"), "bytes */18446744073709551615");
    drop();
}

Test(problem_document, says_when_to_come_again)
{
    struct problem why;
    uint64_t       ms;
    int            seconds;

    for (int i = 0; i < 20; i++) {
        problem_set(&why, STATUS_NO_WORKER, "x");
        why.retry_after_ms = 4000;
        cr_assert(json_u64(json_member(make(&why), "retry_after_ms"), &ms));
        seconds = atoi(header("Retry-After"));
        cr_assert(ms >= 4000 && ms <= 6000 && seconds >= 4 && seconds <= 6);
        cr_assert_leq(ms, (uint64_t)seconds * 1000);
        drop();
    }
    problem_set(&why, STATUS_OVERLOADED, "x");
    make(&why);
    cr_assert_not_null(header("Retry-After"));
    drop();
    problem_set(&why, STATUS_WORKER_LOST, "x"); /* not retryable */
    make(&why);
    cr_assert_null(header("Retry-After"));
    drop();
}

/* A client that sends it again would have it done twice. */
Test(problem_document, what_was_done_is_not_to_be_sent_again)
{
    struct problem why;

    problem_set(&why, STATUS_OUT_OF_MEMORY, "x");
    cr_assert(json_bool(json_member(make(&why), "retryable")));
    cr_assert_not_null(header("Retry-After"));
    drop();
    why.was_done = true;
    cr_assert_not(json_bool(json_member(make(&why), "retryable")));
    cr_assert_null(header("Retry-After"));
    drop();
}

Test(problem_document, a_failure_without_a_failure_is_internal)
{
    struct problem why = {0};

    make(&why);
    cr_assert_eq(reply.http_status, 500);
    drop();
}
