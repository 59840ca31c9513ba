/* gpurest_request and gpurest_http. */
#include <stdio.h>
#include <stdlib.h>

#include "client/request.h"

/* Prevents request splitting: these texts are sent verbatim. */
static bool printable(const char *text, bool spaces)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (*p < ' ' || *p == 0x7f || (*p == ' ' && !spaces))
            return false;
    return true;
}

static gpurest_status check_request(gpurest_client *c, const char *method, const char *path)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"};
    gpurest_status           st = client_check(c);

    if (st)
        return st;
    if (!method || !path || path[0] != '/' || !printable(path, false) || strlen(path) > PATH_BYTES_MAX)
        return fail_invalid("the method is NULL, or the path is NULL, too long, contains blanks or does not start with a slash");
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(method, methods[i]) == 0)
            return GPUREST_OK;
    return fail_invalid("unknown method \"%.20s\"", method);
}

gpurest_status gpurest_request(gpurest_client *client, const char *method, const char *path, const char *json, char **out_json)
{
    struct exchange x;
    gpurest_status  st = check_request(client, method, path);

    if (st)
        return st;
    exchange_init(&x, method, path);
    st = client_json(client, &x, json);
    if (!st && out_json) {
        char *text = buf_take(&x.body);
        if (text)
            *out_json = text;
        else
            st = fail_memory();
    }
    exchange_finish(&x);
    return st;
}

/* ---- gpurest_http ---- */

struct body_to {
    gpurest_body_cb call;
    void           *arg;
};

static bool call_on_body(void *arg, const void *data, size_t bytes)
{
    const struct body_to *to = arg;

    if (to->call(to->arg, data, bytes) == 0)
        return true;
    fail(GPUREST_E_CANCELLED, NULL, "on_body cancelled the answer");
    return false;
}

static gpurest_status write_headers(struct buf *b, const gpurest_http_request *q)
{
    for (size_t i = 0; i < q->headers_count; i++) {
        const char *line = q->headers ? q->headers[i] : NULL;
        if (!line || !printable(line, true) || !strchr(line, ':'))
            return fail_invalid("header %zu is not \"Name: value\"", i);
        buf_printf(b, "%s\r\n", line);
    }
    return b->failed ? fail_invalid("the header lines are too long") : GPUREST_OK;
}

gpurest_status request_take(gpurest_client *client, const gpurest_http_request *given, gpurest_http_request *out)
{
    gpurest_status st;

    *out = (gpurest_http_request)GPUREST_HTTP_REQUEST_INIT;
    if (!given || !struct_copy_in(out, sizeof *out, given))
        return fail_invalid("the request is NULL, or its struct_size is not set");
    st = check_request(client, out->method, out->path);
    if (!st && ((out->content_type && !printable(out->content_type, true)) || (out->body_bytes && (!out->body || !out->content_type)) ||
                out->idle_timeout_ms < 0 || out->idle_timeout_ms > TIMEOUT_MS_MAX))
        st = fail_invalid("the body is NULL or has no content_type, or idle_timeout_ms is out of range");
    return st;
}

gpurest_status request_begin(const gpurest_http_request *q, struct exchange *x, struct buf *headers)
{
    gpurest_status st;

    exchange_init(x, q->method, q->path);
    buf_init(headers, REQUEST_HEAD_BYTES_MAX);
    st = write_headers(headers, q);
    x->headers = buf_text(headers);
    x->idle_ms = q->idle_timeout_ms;
    x->bounded = x->bounded || x->idle_ms;
    x->stays = q->stays != 0;
    return st;
}

static gpurest_status try_request(gpurest_client *c, const gpurest_http_request *q, struct exchange *x)
{
    struct piece   body = {q->body, q->body_bytes};
    struct body_to to = {q->on_body, q->on_body_arg};
    struct buf     headers;
    gpurest_status st = request_begin(q, x, &headers);

    if (q->content_type) {
        x->content_type = q->content_type;
        x->upload = &body;
        x->upload_count = 1;
    }
    if (q->on_body) {
        x->sink = call_on_body;
        x->sink_arg = &to;
        x->sink_any = true;
    }
    if (!st)
        st = client_once(c, x);
    buf_finish(&headers);
    return st;
}

gpurest_status gpurest_http(gpurest_client *client, const gpurest_http_request *request, gpurest_http_response **out)
{
    gpurest_http_request   q;
    gpurest_http_response *r;
    gpurest_status         st = out ? request_take(client, request, &q) : fail_invalid("out is NULL");

    if (st)
        return st;
    r = calloc(1, sizeof *r);
    if (!r)
        return fail_memory();
    st = try_request(client, &q, &r->x);
    if (st)
        gpurest_http_response_free(r);
    else
        *out = r;
    return st;
}

int gpurest_http_status(const gpurest_http_response *r)
{
    return r ? r->x.status : 0;
}

const char *gpurest_http_header(const gpurest_http_response *response, const char *name)
{
    gpurest_http_response *r = (gpurest_http_response *)(uintptr_t)response;

    if (!r || !name)
        return NULL;
    if (!r->found)
        r->found = malloc(ANSWER_HEAD_BYTES_MAX);
    return r->found && exchange_header(&r->x, name, r->found, ANSWER_HEAD_BYTES_MAX) ? r->found : NULL;
}

const void *gpurest_http_body(const gpurest_http_response *r, size_t *bytes)
{
    if (bytes)
        *bytes = r ? r->x.body.bytes : 0;
    return r ? buf_text(&r->x.body) : "";
}

void gpurest_http_response_free(gpurest_http_response *r)
{
    if (!r)
        return;
    exchange_finish(&r->x);
    free(r->found);
    free(r);
}
