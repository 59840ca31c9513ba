/* status, version, info, wait, metrics, connect, disconnect, reset, login. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/platform.h"
#include "commands/commands.h"

enum { WAIT_S_DEFAULT = 60, POLL_MS = 200, TOKEN_BYTES_MAX = 4096 };

enum { REASON_BYTES = 256, PERCENTAGE_BYTES = 64 };

/* The problem's detail, or "". */
static void take_reason(const gpurest_http_response *response, char reason[REASON_BYTES])
{
    size_t       bytes = 0;
    const char  *text = gpurest_http_body(response, &bytes);
    cJSON       *problem = text ? cJSON_ParseWithLength(text, bytes) : NULL;
    const cJSON *detail = cJSON_GetObjectItemCaseSensitive(problem, "detail");

    snprintf(reason, REASON_BYTES, "%s", cJSON_IsString(detail) ? detail->valuestring : "");
    cJSON_Delete(problem);
}

/* 1: ready; 0: not ready, with the reason; -1: no answer, see the last error. */
static int readiness(struct cli *c, char reason[REASON_BYTES])
{
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response;
    gpurest_status         st;
    int                    status;

    request.method = "GET";
    request.path = "/readyz";
    st = gpurest_http(c->client, &request, &response);
    if (st)
        return -1;
    status = gpurest_http_status(response);
    reason[0] = '\0';
    if (status != 200)
        take_reason(response, reason);
    gpurest_http_response_free(response);
    return status == 200;
}

static enum exit_code run_section(struct cli *c, enum exit_code (*run)(struct cli *), const char *title)
{
    if (c->output == OUTPUT_TABLE && !c->no_header)
        fprintf(c->out, "\n%s\n", title);
    c->argc = 0;
    return run(c);
}

/* As one JSON document. */
static enum exit_code status_document(struct cli *c, bool ready, const char *reason)
{
    cJSON         *all = cJSON_CreateObject();
    cJSON         *devices = cJSON_AddArrayToObject(all, "devices"), *sessions = cJSON_AddArrayToObject(all, "sessions");
    enum exit_code code = cli_get_all(c, "/v1/devices", devices);

    cJSON_AddBoolToObject(all, "ready", ready);
    cJSON_AddItemToObject(all, "reason", ready ? cJSON_CreateNull() : cJSON_CreateString(reason));
    link_measure(c, all);
    if (!code)
        code = cli_get_all(c, "/v1/sessions", sessions);
    if (!code)
        code = output_object(c, "gpurest.status/1", all);
    cJSON_Delete(all);
    return code;
}

static enum exit_code status_tables(struct cli *c, bool ready, const char *reason)
{
    enum exit_code code;

    if (c->output == OUTPUT_TABLE) {
        fprintf(c->out, "%s%s%s%s%s\n", c->color ? (ready ? "\033[32m" : "\033[31m") : "", ready ? "ready" : "not ready",
                c->color ? "\033[0m" : "", reason[0] ? ": " : "", reason);
        link_print(c);
    }
    code = run_section(c, run_devices, "DEVICES");
    return code ? code : run_section(c, run_sessions, "SESSIONS");
}

enum exit_code run_status(struct cli *c)
{
    char           reason[REASON_BYTES];
    enum exit_code code;
    int            ready;

    if (!take_rest(c, 0, 0))
        return CODE_USAGE;
    code = cli_open(c);
    if (code)
        return code;
    ready = readiness(c, reason);
    if (ready < 0)
        return cli_failed(c, gpurest_last_error()->status);
    if (c->output == OUTPUT_JSON || c->output == OUTPUT_JSONL)
        code = status_document(c, ready == 1, reason);
    else
        code = status_tables(c, ready == 1, reason);
    return code ? code : ready ? CODE_OK : CODE_DEGRADED;
}

enum exit_code run_version(struct cli *c)
{
    cJSON         *server = NULL, *all;
    enum exit_code code = cli_get(c, &server, "/version");

    all = cJSON_CreateObject();
    cJSON_AddStringToObject(all, "tool", gpurest_version());
    if (server)
        cJSON_AddItemToObject(all, "service", server);
    output_object(c, "gpurest.version/1", all);
    cJSON_Delete(all);
    return code;
}

enum exit_code run_info(struct cli *c)
{
    cJSON         *all = cJSON_CreateObject(), *part = NULL;
    enum exit_code code = take_rest(c, 0, 0) ? cli_get(c, &part, "/version") : CODE_USAGE;

    cJSON_AddItemToObject(all, "version", part ? part : cJSON_CreateNull());
    if (!code)
        code = cli_get(c, &part, "/v1/devices");
    if (!code)
        cJSON_AddItemToObject(all, "devices", cJSON_DetachItemFromObjectCaseSensitive(part, "items"));
    if (!code)
        cJSON_Delete(part), code = cli_get(c, &part, "/v1/limits");
    if (!code)
        cJSON_AddItemToObject(all, "limits", cJSON_DetachItemFromObjectCaseSensitive(part, "limits")), cJSON_Delete(part);
    if (!code)
        code = output_object(c, "gpurest.info/1", all);
    cJSON_Delete(all);
    return code;
}

enum exit_code run_wait(struct cli *c)
{
    const struct timespec nap = {0, POLL_MS * 1000000L};
    uint64_t              seconds = WAIT_S_DEFAULT;
    bool                  ok = true;
    char                  reason[REASON_BYTES];
    time_t                until;

    take_number(c, "--timeout", &seconds, &ok);
    if (!ok || !take_rest(c, 0, 0))
        return CODE_USAGE;
    for (until = time(NULL) + (time_t)seconds; time(NULL) <= until; nanosleep(&nap, NULL)) {
        gpurest_options options = GPUREST_OPTIONS_INIT;
        gpurest_status  st;

        options.url = c->url;
        st = c->client ? GPUREST_OK : gpurest_open_with(&c->client, &options);
        if (st == GPUREST_E_INVAL)
            return cli_failed(c, st); /* an invalid URL stays invalid */
        if (!st && readiness(c, reason) == 1)
            return CODE_OK;
    }
    return cli_error(CODE_UNREACHABLE, "the service was not ready within %llu s", (unsigned long long)seconds);
}

enum exit_code run_metrics(struct cli *c)
{
    char          *text = NULL;
    enum exit_code code = take_rest(c, 0, 0) ? cli_open(c) : CODE_USAGE;
    gpurest_status st;

    if (code)
        return code;
    st = gpurest_request(c->client, "GET", "/metrics", NULL, &text);
    if (st)
        return cli_failed(c, st);
    fputs(text, stdout);
    gpurest_mem_free(text);
    return CODE_OK;
}

/* ---- the connected session ---- */

static enum exit_code store_session(const char *name)
{
    char path[PATH_BYTES];

    if (!file_of_user("session", true, path))
        return cli_error(CODE_FAILED, "no settings folder: set %s", settings_variables());
    return file_write(path, name, strlen(name), "\n", 1) ? CODE_OK : CODE_FAILED;
}

/* "0.8" becomes "80%", which the service also takes; what is neither is left to its refusal. */
static const char *percentage(const char *text, char out[PERCENTAGE_BYTES])
{
    char  *end;
    double part = strtod(text, &end);

    if (end == text || *end != '\0')
        return text;
    snprintf(out, PERCENTAGE_BYTES, "%.15g%%", part * 100);
    return out;
}

/* False: reported. *percent is what the options borrow. */
static bool take_session_options(struct cli *c, gpurest_session_options *options, char percent[PERCENTAGE_BYTES])
{
    const char *fraction;
    uint64_t    idle = 0, lease = 0;
    bool        ok = true;

    take_value(c, "--device", &options->device, &ok);
    if (ok)
        take_number(c, "--idle-timeout", &idle, &ok);
    if (ok)
        take_number(c, "--lease", &lease, &ok);
    if (ok)
        take_number(c, "--memory-limit", &options->memory_limit, &ok);
    if (ok && take_value(c, "--memory-fraction", &fraction, &ok))
        options->memory_fraction = percentage(fraction, percent);
    if (ok)
        take_number(c, "--pool-max", &options->pool_bytes_max, &ok);
    if (ok)
        take_value(c, "--fault-domain", &options->fault_domain, &ok);
    options->fault_domain_optional = take_flag(c, "--take-turns");
    if (ok && options->fault_domain_optional && !options->fault_domain)
        ok = cli_usage(c, "--take-turns says how a domain is served: give --fault-domain") == CODE_OK;
    options->idle_timeout_s = (uint32_t)(idle > UINT32_MAX ? UINT32_MAX : idle);
    options->lease_s = (uint32_t)(lease > UINT32_MAX ? UINT32_MAX : lease);
    return ok;
}

enum exit_code run_connect(struct cli *c)
{
    gpurest_session_options options = GPUREST_SESSION_OPTIONS_INIT;
    gpurest_session        *session;
    char                    percent[PERCENTAGE_BYTES];
    enum exit_code          code;
    gpurest_status          st;

    if (!take_session_options(c, &options, percent) || !take_rest(c, 1, 1))
        return CODE_USAGE;
    if (!cli_id_ok(c->argv[0])) /* the service checks the rest */
        return cli_usage(c, "\"%s\" is not a valid session name: use a-z, 0-9, '_' and '-'", c->argv[0]);
    code = cli_open(c);
    if (code)
        return code;
    options.name = c->argv[0];
    options.keep = 1;
    st = gpurest_session_open(&session, c->client, &options);
    if (st)
        return cli_failed(c, st);
    gpurest_session_close(session);
    cli_say(c, "session %s is open; later commands use it", c->argv[0]);
    code = store_session(c->argv[0]);
    return code ? code : link_check(c, c->argv[0]);
}

/* Ending the session would cancel its launches. */
static enum exit_code refuse_if_busy(struct cli *c, const char *name)
{
    cJSON         *page = NULL;
    const cJSON   *l;
    bool           busy = false;
    enum exit_code code = cli_get(c, &page, "/v1/sessions/%s/launches?limit=1000", name);

    cJSON_ArrayForEach(l, cJSON_GetObjectItemCaseSensitive(page, "items"))
    {
        const cJSON *state = cJSON_GetObjectItemCaseSensitive(l, "state");
        busy = busy || (cJSON_IsString(state) && (strcmp(state->valuestring, "running") == 0 || strcmp(state->valuestring, "queued") == 0));
    }
    cJSON_Delete(page);
    return code ? code : busy ? cli_error(CODE_BUSY, "session %s has queued or running launches: wait, or use --force", name) : CODE_OK;
}

/* The session argument, else the connected session. */
static enum exit_code take_session(struct cli *c, const char **name, char path[PATH_BYTES], const char *rest)
{
    if (!take_rest(c, 0, 1))
        return CODE_USAGE;
    *name = c->argc ? c->argv[0] : cli_session_name(c);
    if (!*name)
        return cli_usage(c, "session required: give its name");
    if (!cli_id_ok(*name) || snprintf(path, PATH_BYTES, "/v1/sessions/%s%s", *name, rest) >= PATH_BYTES)
        return cli_usage(c, "\"%s\" is not a valid session name", *name);
    return CODE_OK;
}

enum exit_code run_disconnect(struct cli *c)
{
    bool           force = take_flag(c, "--force");
    char           path[PATH_BYTES], kept[PATH_BYTES];
    const char    *name;
    enum exit_code code = take_session(c, &name, path, "");

    if (!code && !force)
        code = refuse_if_busy(c, name);
    if (!code)
        code = cli_request(c, "DELETE", path, NULL);
    if (!code && cli_session_name(c) && strcmp(cli_session_name(c), name) == 0 && file_of_user("session", false, kept))
        unlink(kept);
    return code;
}

enum exit_code run_reset(struct cli *c)
{
    char           path[PATH_BYTES], question[PATH_BYTES + 64];
    const char    *name;
    enum exit_code code = take_session(c, &name, path, "/reset");

    if (code)
        return code;
    snprintf(question, sizeof question, "reset session %s and lose its contents", name);
    return cli_confirm(c, question) ? cli_request(c, "POST", path, "{}") : CODE_USAGE;
}

/* ---- the stored token ---- */

enum exit_code run_login(struct cli *c)
{
    const char *from = "-";
    char        path[PATH_BYTES], *text;
    bool        ok = true, written;
    size_t      bytes;

    take_value(c, "--token-file", &from, &ok);
    if (!ok || !take_rest(c, 0, 0))
        return CODE_USAGE;
    if (!file_of_user("token", true, path))
        return cli_error(CODE_FAILED, "no settings folder: set %s", settings_variables());
    text = file_read(from, &bytes);
    if (!text)
        return CODE_FAILED;
    bytes = strcspn(text, "\r\n");
    if (bytes == 0 || bytes > TOKEN_BYTES_MAX) {
        free(text);
        return cli_usage(c, "the first line must be a token of 1 to %d characters", TOKEN_BYTES_MAX);
    }
    private_files_begin(); /* from the first byte */
    written = file_write(path, text, bytes, "\n", 1);
    private_files_end();
    free(text);
    c->token_file = NULL; /* check the stored token */
    return written ? cli_open(c) : CODE_FAILED;
}
