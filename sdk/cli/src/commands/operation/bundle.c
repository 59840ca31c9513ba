/* diag --bundle: an archive for a bug report, without tokens, buffer contents and sources. */
#include <stdlib.h>
#include <string.h>

#include "base/archive.h"
#include "commands/commands.h"

static const struct {
    const char *name, *path;
} requests[] = {
    {"version.json", "/version"},          {"ready.json", "/readyz?verbose=1"},       {"devices.json", "/v1/devices"},
    {"limits.json", "/v1/limits"},         {"sessions.json", "/v1/sessions"},         {"metrics.txt", "/metrics"},
    {"logging.json", "/v1/admin/logging"}, {"logs.txt", "/v1/admin/logs?lines=1024"},
};

/* Refusals are added too: they are information. */
static void add_answer(struct cli *c, struct archive *a, const char *name, const char *path)
{
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response = NULL;
    size_t                 bytes = 0;
    const void            *body;

    request.method = "GET";
    request.path = path;
    if (gpurest_http(c->client, &request, &response)) {
        archive_add(a, name, gpurest_last_error()->message, strlen(gpurest_last_error()->message));
        return;
    }
    body = gpurest_http_body(response, &bytes);
    archive_add(a, name, body, bytes);
    gpurest_http_response_free(response);
}

static void add_results(struct archive *a, const cJSON *results)
{
    char *text = cJSON_Print(results);

    archive_add(a, "diag.json", text ? text : "", text ? strlen(text) : 0);
    free(text);
}

enum exit_code bundle_write(struct cli *c, const char *path, const cJSON *results)
{
    struct archive a = {0};
    bool           ok;

    archive_add(&a, "tool.txt", gpurest_version(), strlen(gpurest_version()));
    add_results(&a, results);
    for (size_t i = 0; i < COUNT(requests); i++)
        add_answer(c, &a, requests[i].name, requests[i].path);
    ok = archive_write(&a, path);
    archive_finish(&a);
    return ok ? CODE_OK : CODE_FAILED;
}
