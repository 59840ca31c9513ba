/* events, monitor, logs: streamed answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands/commands.h"

enum {
    EVENTS_S_DEFAULT = 30,
    EVENTS_S_MAX = 3600,
    HEARTBEAT_MARGIN_MS = 30000,
    LINE_BYTES_MAX = 1 << 20,
    ID_LINE_BYTES = 32,
    PAUSE_NS = 100000000
};

static int print_piece(void *arg, const void *data, size_t bytes)
{
    (void)arg;
    return fwrite(data, 1, bytes, stdout) != bytes || fflush(stdout);
}

static enum exit_code follow_stream(struct cli *c, const char *path, const char *const *headers, unsigned headers_count,
                                    gpurest_body_cb on_body, void *arg)
{
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response;
    enum exit_code         code = cli_open(c);
    gpurest_status         st;
    int                    status;

    if (code)
        return code;
    request.method = "GET";
    request.path = path;
    request.headers = headers;
    request.headers_count = headers_count;
    request.on_body = on_body;
    request.on_body_arg = arg;
    request.idle_timeout_ms = HEARTBEAT_MARGIN_MS;
    st = gpurest_http(c->client, &request, &response);
    if (st && ferror(stdout)) /* the end of main() says why */
        return CODE_OK;
    if (st)
        return cli_failed(c, st);
    status = gpurest_http_status(response);
    gpurest_http_response_free(response);
    if (status < 400)
        return CODE_OK;
    return cli_error(status == 404                    ? CODE_NOT_FOUND
                     : status == 401 || status == 403 ? CODE_AUTH
                                                      : CODE_FAILED,
                     "the service answered %d", status);
}

/* Finds refusals before the stream starts, where they would be printed as data. */
static enum exit_code check_access(struct cli *c, const char *format, const char *name)
{
    char           path[PATH_BYTES];
    enum exit_code code;
    cJSON         *answer = NULL;

    snprintf(path, sizeof path, "%s%s", format, name);
    code = cli_get(c, &answer, "%s", path);
    cJSON_Delete(answer);
    return code;
}

/* ---- events, from one stream to the next ---- */

/* Passes pieces on, and keeps the number of the last whole event, from which another stream goes on. */
struct follower {
    gpurest_body_cb on_body;
    void           *arg;
    char            line[ID_LINE_BYTES]; /* its beginning, as far as it has come */
    size_t          chars;
    char            coming[ID_LINE_BYTES], last[ID_LINE_BYTES]; /* "" before the first */
};

/* An event ends with an empty line. */
static void end_line(struct follower *f)
{
    f->line[f->chars] = '\0';
    if (strncmp(f->line, "id: ", 4) == 0)
        snprintf(f->coming, sizeof f->coming, "%s", f->line + 4);
    else if (!f->chars)
        memcpy(f->last, f->coming, sizeof f->last);
    f->chars = 0;
}

static int follow_piece(void *arg, const void *data, size_t bytes)
{
    struct follower *f = arg;
    const char      *at = data;

    for (size_t i = 0; i < bytes; i++)
        if (at[i] == '\n')
            end_line(f);
        else if (f->chars < sizeof f->line - 1)
            f->line[f->chars++] = at[i];
    return f->on_body(f->arg, data, bytes);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A stream ends with its process or node; the session may go on, in the next process, or at another node, to which this request follows it. */
static bool goes_on(struct cli *c, const char *name)
{
    const struct timespec  pause = {0, PAUSE_NS};
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response;
    char                   path[PATH_BYTES];
    bool                   there;

    nanosleep(&pause, NULL);
    snprintf(path, sizeof path, "/v1/sessions/%s", name);
    request.method = "GET";
    request.path = path;
    if (gpurest_http(c->client, &request, &response))
        return false;
    there = gpurest_http_status(response) == 200;
    gpurest_http_response_free(response);
    return there;
}

static enum exit_code follow_session(struct cli *c, const char *name, uint64_t seconds, struct follower *f)
{
    double         until = now_s() + (double)seconds;
    char           path[PATH_BYTES], last[sizeof "Last-Event-ID: " + ID_LINE_BYTES];
    const char    *headers[] = {"Accept: text/event-stream", last};
    enum exit_code code;

    do {
        snprintf(path, sizeof path, "/v1/sessions/%s/events?timeout_seconds=%u", name, (unsigned)seconds);
        snprintf(last, sizeof last, "Last-Event-ID: %s", f->last);
        f->chars = 0;
        code = follow_stream(c, path, headers, f->last[0] ? 2 : 1, follow_piece, f);
        seconds = until > now_s() ? (uint64_t)(until - now_s() + 0.999) : 0;
    } while (!code && seconds && !ferror(stdout) && goes_on(c, name));
    return code;
}

/* Follows the session's events for --seconds. */
static enum exit_code follow_events(struct cli *c, uint64_t seconds, gpurest_body_cb on_body, void *arg)
{
    const char     *name = cli_session_name(c);
    struct follower f = {.on_body = on_body, .arg = arg};
    bool            ok = true;
    enum exit_code  code;

    take_number(c, "--seconds", &seconds, &ok);
    if (!ok || !take_rest(c, 0, 0))
        return CODE_USAGE;
    if (!name)
        return cli_usage(c, "session required: give --session NAME, or run gpurest connect NAME first");
    if (seconds == 0 || seconds > EVENTS_S_MAX)
        return cli_usage(c, "--seconds must be from 1 to %d", EVENTS_S_MAX);
    code = check_access(c, "/v1/sessions/", name);
    if (code)
        return code;
    return follow_session(c, name, seconds, &f);
}

enum exit_code run_events(struct cli *c)
{
    return follow_events(c, EVENTS_S_DEFAULT, print_piece, NULL);
}

enum exit_code run_logs(struct cli *c)
{
    static const char *const headers[] = {"Accept: text/plain"};
    bool                     on = take_flag(c, "-f");
    enum exit_code           code = take_rest(c, 0, 0) ? check_access(c, "/v1/admin/logging", "") : CODE_USAGE;

    return code ? code : follow_stream(c, on ? "/v1/admin/logs?follow=1" : "/v1/admin/logs", headers, 1, print_piece, NULL);
}

/* ---- monitor ---- */

struct monitor {
    const struct cli *c;
    char             *line; /* received so far; owned */
    size_t            bytes, room;
    char              event[64];
};

/* Escapes newlines, so that an event stays one line. */
static const char *in_one_line(const cJSON *member, char out[CELL_BYTES])
{
    char  *json = cJSON_IsString(member) && strchr(member->valuestring, '\n') ? cJSON_PrintUnformatted(member) : NULL;
    cJSON *quoted = json ? cJSON_CreateString(json) : NULL;

    output_cell(quoted ? quoted : member, out);
    cJSON_Delete(quoted);
    cJSON_free(json);
    return out;
}

/* "12:00:00.123  launch.finished  launch=l_1 state=succeeded gpu_us=12.5" */
static void print_event(const struct monitor *m, const cJSON *data)
{
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(data, "at"), *member;
    const char  *time = cJSON_IsString(at) ? strchr(at->valuestring, 'T') : NULL;
    char         text[CELL_BYTES];

    printf("%-12.12s  %-16s", time ? time + 1 : "", m->event);
    cJSON_ArrayForEach(member, data) if (member != at && strcmp(member->string, "session") != 0)
        printf(" %s=%s", member->string, in_one_line(member, text));
    putchar('\n');
}

static bool take_data(const struct monitor *m, const char *text)
{
    cJSON *data = cJSON_Parse(text);
    char  *line = NULL;

    if (!data || !cJSON_IsObject(data)) {
        cJSON_Delete(data);
        return false;
    }
    if (m->c->output == OUTPUT_JSON || m->c->output == OUTPUT_JSONL) {
        cJSON_AddStringToObject(data, "event", m->event);
        line = cJSON_PrintUnformatted(data);
        printf("%s\n", line ? line : "");
    } else {
        print_event(m, data);
    }
    cJSON_free(line);
    cJSON_Delete(data);
    return true;
}

/* Skips comments, ids and retry times. */
static bool take_line(struct monitor *m)
{
    if (strncmp(m->line, "event: ", 7) == 0)
        snprintf(m->event, sizeof m->event, "%s", m->line + 7);
    return strncmp(m->line, "data: ", 6) != 0 || take_data(m, m->line + 6);
}

static bool keep_line(struct monitor *m, const char *data, size_t bytes)
{
    if (m->bytes + bytes >= m->room) {
        size_t room = (m->bytes + bytes + 1) * 2;
        char  *line = room <= LINE_BYTES_MAX ? realloc(m->line, room) : NULL;

        if (!line)
            return false;
        m->line = line;
        m->room = room;
    }
    memcpy(m->line + m->bytes, data, bytes);
    m->bytes += bytes;
    m->line[m->bytes] = '\0';
    return true;
}

static int take_piece(void *arg, const void *data, size_t bytes)
{
    struct monitor *m = arg;
    const char     *at = data;

    while (bytes > 0) {
        const char *end = memchr(at, '\n', bytes);
        size_t      n = end ? (size_t)(end - at) : bytes;

        if (!keep_line(m, at, n) || (end && !take_line(m)))
            return -1;
        if (end)
            m->bytes = 0;
        at += n + (end != NULL);
        bytes -= n + (end != NULL);
    }
    return fflush(stdout);
}

enum exit_code run_monitor(struct cli *c)
{
    struct monitor m = {.c = c};
    enum exit_code code;

    if (!take_flag(c, "--events"))
        return figures_follow(c);
    code = follow_events(c, EVENTS_S_MAX, take_piece, &m);
    free(m.line);
    return code;
}
