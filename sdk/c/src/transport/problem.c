/* Maps problem documents to errors. */
#include "transport/problem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const struct meaning {
    const char    *code;
    gpurest_status status;
    int            fatal;
} meanings[] = {
#define PROBLEM(code, status, fatal) {code, status, fatal},
#include "transport/problems.def"
#undef PROBLEM
};

static gpurest_status status_of_http(int http)
{
    switch (http) {
    case 401:
    case 403:
        return GPUREST_E_AUTH;
    case 404:
        return GPUREST_E_NOTFOUND;
    case 405:
    case 406:
    case 415:
    case 501:
        return GPUREST_E_UNSUPPORTED;
    case 408:
    case 504:
        return GPUREST_E_TIMEOUT;
    case 413:
    case 414:
    case 431:
        return GPUREST_E_LIMIT;
    case 429:
    case 503:
        return GPUREST_E_BUSY;
    case 507:
        return GPUREST_E_OOM_DEVICE;
    default:
        return http / 100 == 4 ? GPUREST_E_INVAL : http / 100 == 5 ? GPUREST_E_SERVER : GPUREST_E_PROTO;
    }
}

static const char *hint_of(gpurest_status status)
{
    switch (status) {
    case GPUREST_E_AUTH:
        return "set GPUREST_TOKEN, GPUREST_TOKEN_FILE or gpurest_options.token to a token with the required scope";
    case GPUREST_E_BUSY:
        return "try again later";
    case GPUREST_E_OOM_DEVICE:
        return "free buffers or call gpurest_memory_trim; gpurest_memory_info gives the usage";
    case GPUREST_E_COMPILE:
        return "see the error's log for the compiler's output";
    case GPUREST_E_CUDA:
    case GPUREST_E_SESSION_LOST:
        return "the session's contents are lost: call gpurest_session_reset or open a new session";
    case GPUREST_E_LIMIT:
        return "GET /v1/limits lists the limits and their usage";
    case GPUREST_OK:
    case GPUREST_E_INVAL:
    case GPUREST_E_NOMEM_HOST:
    case GPUREST_E_CONNECT:
    case GPUREST_E_TIMEOUT:
    case GPUREST_E_PROTO:
    case GPUREST_E_NOTFOUND:
    case GPUREST_E_ABORTED:
    case GPUREST_E_CANCELLED:
    case GPUREST_E_UNSUPPORTED:
    case GPUREST_E_FORK:
    case GPUREST_E_SERVER:
        break;
    }
    return "";
}

static void set_status(struct failure *f)
{
    f->status = status_of_http(f->http_status);
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(f->code, meanings[i].code) == 0) {
            f->status = meanings[i].status;
            f->fatal_for_session = meanings[i].fatal;
        }
    snprintf(f->hint, sizeof f->hint, "%s", hint_of(f->status));
}

static void copy_cut(char *out, size_t room, const char *text)
{
    snprintf(out, room, "%s", text);
}

static void take_batch_place(struct failure *f, const struct json *d)
{
    char message[MESSAGE_BYTES];

    f->op_index = (long)json_number_or(json_member(d, "op_index"), -1);
    f->completed_ops = (long)json_number_or(json_member(d, "completed_ops"), -1);
    if (f->op_index < 0)
        return;
    memcpy(message, f->message, sizeof message);
    snprintf(f->message, sizeof f->message, "operation %ld of the batch: %.*s", f->op_index, MESSAGE_BYTES - 64, message);
}

static void take_place(uint64_t out[3], const struct json *place)
{
    for (size_t i = 0; i < 3; i++)
        out[i] = json_integer_or(json_item(place, i), 0);
}

static void take_access(struct failed_access *a, const struct json *d)
{
    const struct json *source = json_member(d, "source"), *allocation = json_member(d, "allocation");

    a->known = json_is_object(d);
    a->has_thread = json_count(json_member(d, "thread")) == 3;
    a->freed = json_true(json_member(allocation, "freed"));
    copy_cut(a->error, sizeof a->error, json_text_or(json_member(d, "error"), ""));
    copy_cut(a->kind, sizeof a->kind, json_text_or(json_member(d, "kind"), ""));
    copy_cut(a->space, sizeof a->space, json_text_or(json_member(d, "space"), ""));
    copy_cut(a->kernel, sizeof a->kernel, json_text_or(json_member(d, "kernel"), ""));
    copy_cut(a->file, sizeof a->file, json_text_or(json_member(source, "file"), ""));
    a->address = json_integer_or(json_member(d, "address"), 0);
    a->bytes = json_integer_or(json_member(d, "bytes"), 0);
    a->image = json_integer_or(json_member(d, "image"), 0);
    a->line = json_integer_or(json_member(d, "line"), 0);
    a->source_line = json_integer_or(json_member(source, "line"), 0);
    take_place(a->block, json_member(d, "block"));
    take_place(a->thread, json_member(d, "thread"));
    a->allocation = json_integer_or(json_member(allocation, "address"), 0);
    a->allocation_bytes = json_integer_or(json_member(allocation, "bytes"), 0);
}

static void take_document(struct failure *f, const struct json *d)
{
    const struct json *cuda = json_member(d, "cuda");
    const char        *log = json_text_or(json_member(json_member(d, "compile"), "log"), NULL);
    const char        *title = json_text_or(json_member(d, "title"), "");

    f->http_status = (int)json_number_or(json_member(d, "status"), f->http_status);
    copy_cut(f->code, sizeof f->code, json_text_or(json_member(d, "code"), ""));
    copy_cut(f->message, sizeof f->message, json_text_or(json_member(d, "detail"), title));
    copy_cut(f->pointer, sizeof f->pointer, json_text_or(json_member(json_item(json_member(d, "errors"), 0), "pointer"), ""));
    if (json_text_or(json_member(d, "request_id"), NULL))
        copy_cut(f->request_id, sizeof f->request_id, json_text_or(json_member(d, "request_id"), ""));
    f->retryable = json_true(json_member(d, "retryable"));
    f->cuda_result = (int)json_number_or(json_member(cuda, "result"), 0);
    take_access(&f->access, json_member(d, "access"));
    f->log = log ? strdup(log) : NULL;
    set_status(f);
    take_batch_place(f, d);
}

static bool is_problem(const struct json *d)
{
    return json_text_or(json_member(d, "code"), NULL) != NULL;
}

gpurest_status problem_record_json(const struct json *document, const char *request_id)
{
    struct failure f;
    gpurest_status st;

    failure_init(&f);
    copy_cut(f.request_id, sizeof f.request_id, request_id);
    take_document(&f, document);
    st = failure_raise(&f);
    failure_finish(&f);
    return st;
}

/* The answer is from a proxy or another server. */
static gpurest_status record_foreign(const struct exchange *x)
{
    struct failure f;
    gpurest_status st;

    failure_init(&f);
    f.http_status = x->status;
    set_status(&f);
    f.retryable = x->status == 429 || x->status == 503;
    snprintf(f.message, sizeof f.message, "%s %.200s: status %d without a problem document", x->method, x->path, x->status);
    if (!f.hint[0])
        snprintf(f.hint, sizeof f.hint, "check that the URL is that of a gpurest service, and the proxies in front of it");
    exchange_header(x, "X-Request-Id", f.request_id, sizeof f.request_id);
    st = failure_raise(&f);
    failure_finish(&f);
    return st;
}

gpurest_status problem_record(const struct exchange *x)
{
    struct json   *d = json_parse(x->body.data, x->body.bytes);
    char           id[REQUEST_ID_BYTES] = "";
    gpurest_status st;

    exchange_header(x, "X-Request-Id", id, sizeof id);
    st = is_problem(d) ? problem_record_json(d, id) : record_foreign(x);
    json_destroy(d);
    return st;
}

/* Supports seconds only; a date counts as 0. */
static int retry_after_ms(const struct exchange *x)
{
    char text[32];
    long seconds = 0;

    if (exchange_header(x, "Retry-After", text, sizeof text))
        seconds = strtol(text, NULL, 10);
    return seconds < 0 ? 0 : seconds > TIMEOUT_MS_MAX / 1000 ? TIMEOUT_MS_MAX : (int)(seconds * 1000);
}

bool problem_is(const struct exchange *x, int status, const char *code)
{
    struct json *d = x->status == status ? json_parse(x->body.data, x->body.bytes) : NULL;
    bool         is = strcmp(json_text_or(json_member(d, "code"), ""), code) == 0;

    json_destroy(d);
    return is;
}

bool problem_retry(const struct exchange *x, int *after_ms)
{
    struct json *d;
    bool         retry;

    if (x->status != 409 && x->status != 421 && x->status != 429 && x->status != 503)
        return false;
    d = json_parse(x->body.data, x->body.bytes);
    retry = is_problem(d) ? json_true(json_member(d, "retryable")) : x->status == 429 || x->status == 503;
    *after_ms = retry_after_ms(x);
    json_destroy(d);
    return retry;
}
