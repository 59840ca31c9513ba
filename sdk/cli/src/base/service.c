/* Requests to the service, sessions, and errors with their exit codes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli.h"

enum { OTHER_ADDRESS_MS = 1000 }; /* a fleet is shown with those of its nodes that answer */

static void print_message(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void print_message(const char *format, va_list args)
{
    fputs("gpurest: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

enum exit_code cli_usage(const struct cli *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(format, args);
    va_end(args);
    fprintf(stderr, "gpurest: see gpurest help %s\n", c->arguments ? c->command : "");
    return CODE_USAGE;
}

enum exit_code cli_error(enum exit_code code, const char *format, ...)
{
    va_list args;

    cli_await_interrupt();
    va_start(args, format);
    print_message(format, args);
    va_end(args);
    return code;
}

void cli_say(const struct cli *c, const char *format, ...)
{
    va_list args;

    if (c->quiet)
        return;
    va_start(args, format);
    print_message(format, args);
    va_end(args);
}

static enum exit_code code_of(gpurest_status status)
{
    switch (status) {
    case GPUREST_OK:
        return CODE_OK;
    case GPUREST_E_INVAL:
    case GPUREST_E_NOMEM_HOST:
    case GPUREST_E_PROTO:
    case GPUREST_E_ABORTED:
    case GPUREST_E_UNSUPPORTED:
    case GPUREST_E_FORK:
    case GPUREST_E_SERVER:
        return CODE_FAILED;
    case GPUREST_E_CONNECT:
        return CODE_UNREACHABLE;
    case GPUREST_E_TIMEOUT:
        return gpurest_last_error()->fatal_for_session ? CODE_FAULT : CODE_UNREACHABLE;
    case GPUREST_E_AUTH:
        return CODE_AUTH;
    case GPUREST_E_NOTFOUND:
        return CODE_NOT_FOUND;
    case GPUREST_E_BUSY:
    case GPUREST_E_OOM_DEVICE:
    case GPUREST_E_LIMIT:
        return CODE_BUSY;
    case GPUREST_E_COMPILE:
        return CODE_COMPILE;
    case GPUREST_E_CUDA:
        return CODE_FAULT;
    case GPUREST_E_SESSION_LOST:
        return gpurest_last_error()->http_status == 404 ? CODE_NOT_FOUND : CODE_FAULT;
    case GPUREST_E_CANCELLED:
        return CODE_INTERRUPTED;
    }
    return CODE_FAILED;
}

/* Commands with a session of their own, whose loss costs the user nothing. */
static bool in_own_session(const struct cli *c)
{
    static const char *const commands_of_own[] = {"run", "bench", "latency", "diag"};

    for (size_t i = 0; i < COUNT(commands_of_own); i++)
        if (strcmp(c->command, commands_of_own[i]) == 0)
            return true;
    return false;
}

/* Hints for users of the tool: the library's hints name C functions. */
static const char *hint_of(const struct cli *c, const gpurest_error *e)
{
    bool foreign = strstr(e->hint, "gpurest_") != NULL;

    if (e->status == GPUREST_E_AUTH && foreign)
        return "store a token with gpurest login, or give --token-file or GPUREST_TOKEN";
    if (e->status == GPUREST_E_OOM_DEVICE)
        return "gpurest memory shows what the session uses; gpurest buffers rm ID frees a buffer";
    if (e->status == GPUREST_E_LIMIT && e->http_status)
        return "gpurest config lists the limits and their usage";
    if (e->status == GPUREST_E_CONNECT && foreign)
        return "check that gpurestd runs and that --url or GPUREST_URL is the address in its first line of output";
    if (e->status == GPUREST_E_COMPILE)
        return strstr(e->log, "cannot open source file")
                   ? "CUDA headers are available, C library headers are not; printf, assert and the math functions need no header"
                   : "";
    if (strcmp(e->code, "session_not_found") == 0)
        return "gpurest sessions lists those that there are; gpurest connect opens one";
    if (e->status == GPUREST_E_CUDA || e->status == GPUREST_E_SESSION_LOST)
        return e->http_status == 404 || in_own_session(c) ? "" : "the session's contents are lost; gpurest reset gives it a new worker";
    return foreign ? "" : e->hint;
}

/* The compiler names the source before line numbers and in its last line; that of shaders with another ending. */
static const char *find_source(const char *text, const char *begin, size_t *length)
{
    static const char *const names[] = {"kernel.cu", "kernel.comp"};

    for (const char *at = strstr(text, "kernel."); at; at = strstr(at + 1, "kernel."))
        for (size_t i = 0; i < COUNT(names); i++) {
            char next = '\0';

            *length = strlen(names[i]);
            if (strncmp(at, names[i], *length) == 0)
                next = at[*length];
            if ((at == begin || at[-1] == '\n') && next && strchr("(,:", next))
                return at;
            if (next == '"' && at - begin >= 4 && strncmp(at - 4, "of \"", 4) == 0)
                return at;
        }
    return NULL;
}

void cli_print_log(const struct cli *c, const char *text)
{
    const char *rest = text, *at;
    size_t      length;

    while (c->source && (at = find_source(rest, text, &length)) != NULL) {
        fprintf(stderr, "%.*s%s", (int)(at - rest), rest, c->source);
        rest = at + length;
    }
    fputs(rest, stderr);
}

enum exit_code cli_failed(const struct cli *c, gpurest_status status)
{
    const gpurest_error *e = gpurest_last_error();
    const char          *hint = hint_of(c, e);

    cli_await_interrupt();
    if (e->pointer[0] && strncmp(e->message, e->pointer, strlen(e->pointer)) != 0) {
        fprintf(stderr, "gpurest: %s (%s)\n", e->message, e->pointer);
    } else {
        fputs("gpurest: ", stderr);
        cli_print_log(c, e->message);
        fputc('\n', stderr);
    }
    if (e->log[0]) {
        cli_print_log(c, e->log);
        fputs(e->log[strlen(e->log) - 1] == '\n' ? "" : "\n", stderr);
    }
    if (hint[0])
        fprintf(stderr, "gpurest: %s\n", hint);
    if (c->verbose)
        fprintf(stderr, "gpurest: %s, HTTP %d, code \"%s\", request %s\n", gpurest_status_name(e->status), e->http_status, e->code,
                e->request_id);
    return code_of(status);
}

const char *cli_token_file(const struct cli *c, char path[PATH_BYTES])
{
    if (c->token_file)
        return c->token_file;
    if (getenv("GPUREST_TOKEN") || getenv("GPUREST_TOKEN_FILE") || !file_of_user("token", false, path))
        return NULL;
    return access(path, R_OK) == 0 ? path : NULL;
}

static gpurest_options options_of(const struct cli *c, char path[PATH_BYTES])
{
    gpurest_options options = GPUREST_OPTIONS_INIT;

    options.url = c->url;
    options.token_file = cli_token_file(c, path);
    options.log_level = c->log_level;
    options.idle_timeout_ms = c->timeout_ms;
    if (options.connect_timeout_ms > c->timeout_ms)
        options.connect_timeout_ms = c->timeout_ms;
    return options;
}

gpurest_client *cli_open_at(const struct cli *c, const char *address)
{
    char            path[PATH_BYTES];
    gpurest_options options = options_of(c, path);
    gpurest_client *client = NULL;

    options.address = address;
    options.max_retries = 0;
    if (options.connect_timeout_ms > OTHER_ADDRESS_MS)
        options.connect_timeout_ms = OTHER_ADDRESS_MS;
    return gpurest_open_with(&client, &options) ? NULL : client;
}

enum exit_code cli_open(struct cli *c)
{
    gpurest_options options;
    char            path[PATH_BYTES];
    gpurest_status  st;

    if (c->client)
        return CODE_OK;
    options = options_of(c, path);
    st = gpurest_open_with(&c->client, &options);
    if (st)
        return cli_failed(c, st);
    snprintf(path, sizeof path, "%s, as version %s", c->command, gpurest_version());
    gpurest_client_log(c->client, GPUREST_LOG_DEBUG, "cli", path);
    return CODE_OK;
}

enum exit_code cli_ask(struct cli *c, const char *method, const char *path, const char *json, cJSON **out)
{
    char          *text = NULL;
    enum exit_code code = cli_open(c);
    gpurest_status st;

    *out = NULL;
    if (code)
        return code;
    st = gpurest_request(c->client, method, path, json, &text);
    if (st)
        return cli_failed(c, st);
    *out = cJSON_Parse(text);
    gpurest_mem_free(text);
    return *out ? CODE_OK : cli_error(CODE_FAILED, "the answer to %s is not JSON", path);
}

enum exit_code cli_get(struct cli *c, cJSON **out, const char *format, ...)
{
    char    path[PATH_BYTES];
    int     length;
    va_list args;

    *out = NULL;
    va_start(args, format);
    length = vsnprintf(path, sizeof path, format, args);
    va_end(args);
    if (length < 0 || length >= (int)sizeof path)
        return cli_error(CODE_USAGE, "the name is too long");
    return cli_ask(c, "GET", path, NULL, out);
}

enum exit_code cli_get_all(struct cli *c, const char *path, cJSON *items)
{
    char           cursor[256] = "";
    enum exit_code code = CODE_OK;

    do {
        cJSON       *page = NULL, *got;
        const cJSON *next;

        code = cli_get(c, &page, "%s?limit=1000%s%s", path, cursor[0] ? "&cursor=" : "", cursor);
        if (code)
            break;
        got = cJSON_GetObjectItemCaseSensitive(page, "items");
        while (got && got->child)
            cJSON_AddItemToArray(items, cJSON_DetachItemViaPointer(got, got->child));
        next = cJSON_GetObjectItemCaseSensitive(page, "next_cursor");
        cursor[0] = '\0';
        if (cJSON_IsString(next) &&
            (!cli_id_ok(next->valuestring) || snprintf(cursor, sizeof cursor, "%s", next->valuestring) >= (int)sizeof cursor))
            code = cli_error(CODE_FAILED, "the list has more pages, but its next_cursor is invalid"); /* an incomplete list would mislead */
        cJSON_Delete(page);
    } while (cursor[0] && !code);
    return code;
}

enum exit_code cli_request(struct cli *c, const char *method, const char *path, const char *json)
{
    enum exit_code code = cli_open(c);
    gpurest_status st;

    if (code)
        return code;
    st = gpurest_request(c->client, method, path, json, NULL);
    return st ? cli_failed(c, st) : CODE_OK;
}

/* Names go into paths, so they are checked. */
static const char *checked_session_name(const char *name)
{
    if (cli_id_ok(name))
        return name;
    cli_error(CODE_USAGE, "\"%s\" is not a valid session name", name);
    return NULL;
}

const char *cli_session_name(const struct cli *c)
{
    static char kept[128];
    char        path[PATH_BYTES], *text;
    size_t      bytes;

    if (c->session)
        return checked_session_name(c->session);
    if (getenv("GPUREST_SESSION"))
        return checked_session_name(getenv("GPUREST_SESSION"));
    if (!file_of_user("session", false, path) || access(path, R_OK))
        return NULL;
    text = file_read(path, &bytes);
    snprintf(kept, sizeof kept, "%.*s", text ? (int)strcspn(text, "\r\n") : 0, text ? text : "");
    free(text);
    return kept[0] ? checked_session_name(kept) : NULL;
}

enum exit_code cli_session(struct cli *c, gpurest_session **out)
{
    gpurest_session_options options = GPUREST_SESSION_OPTIONS_INIT;
    enum exit_code          code = cli_open(c);
    gpurest_status          st;

    if (code)
        return code;
    options.name = cli_session_name(c);
    if (!options.name && c->session)
        return CODE_USAGE;
    options.keep = options.name != NULL;
    st = options.keep ? gpurest_session_open(out, c->client, &options) : cli_open_noted(c, out, &options);
    return st ? cli_failed(c, st) : CODE_OK;
}

enum exit_code cli_own_session(struct cli *c, gpurest_session **out)
{
    enum exit_code code = cli_open(c);
    gpurest_status st;

    if (code)
        return code;
    st = cli_open_noted(c, out, NULL);
    return st ? cli_failed(c, st) : CODE_OK;
}

bool cli_confirm(const struct cli *c, const char *what)
{
    int answer;

    if (c->yes)
        return true;
    if (!isatty(STDIN_FILENO)) {
        cli_error(CODE_USAGE, "%s: confirm with --yes, because standard input is not a terminal", what);
        return false;
    }
    fprintf(stderr, "%s? [y/N] ", what);
    answer = getchar();
    return answer == 'y' || answer == 'Y';
}
