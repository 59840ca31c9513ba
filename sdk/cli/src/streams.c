/* Answers that go on and on: a session's events, the service's log. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

enum { EVENTS_S_DEFAULT = 30, EVENTS_S_MAX = 3600, HEARTBEAT_MARGIN_MS = 30000 };

static int pass_on(void *arg, const void *data, size_t bytes)
{
    (void)arg;
    return fwrite(data, 1, bytes, stdout) != bytes || fflush(stdout);
}

static enum exit_code follow(struct cli *c, const char *path, const char *accept)
{
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response;
    const char            *headers[] = {accept};
    enum exit_code         code = cli_open(c);
    gpurest_status         st;
    int                    status;

    if (code)
        return code;
    request.method = "GET";
    request.path = path;
    request.headers = headers;
    request.headers_count = 1;
    request.on_body = pass_on;
    request.idle_timeout_ms = HEARTBEAT_MARGIN_MS;
    st = gpurest_http(c->client, &request, &response);
    if (st)
        return cli_failed(c, st);
    status = gpurest_http_status(response);
    gpurest_http_response_free(response);
    if (status < 400)
        return CODE_OK;
    putchar('\n');
    return cli_error(status == 404 ? CODE_NOT_FOUND : status == 401 || status == 403 ? CODE_AUTH : CODE_FAILED, "the service answered %d", status);
}

enum exit_code run_events(struct cli *c)
{
    const char *name = cli_session_name(c);
    uint64_t    seconds = EVENTS_S_DEFAULT;
    char        path[PATH_BYTES];
    bool        ok = true;

    take_number(c, "--seconds", &seconds, &ok);
    if (!ok || !take_rest(c, 0, 0))
        return CODE_USAGE;
    if (!name)
        return cli_usage(c, "which session? give --session, or gpurest connect NAME first");
    if (seconds == 0 || seconds > EVENTS_S_MAX)
        return cli_usage(c, "--seconds is from 1 to %d", EVENTS_S_MAX);
    snprintf(path, sizeof path, "/v1/sessions/%s/events?timeout_seconds=%u", name, (unsigned)seconds);
    return follow(c, path, "Accept: text/event-stream");
}

enum exit_code run_logs(struct cli *c)
{
    bool on = take_flag(c, "-f");

    if (!take_rest(c, 0, 0))
        return CODE_USAGE;
    return follow(c, on ? "/v1/admin/logs?follow=1" : "/v1/admin/logs", "Accept: text/plain");
}
