/* The link to the service: how fast it answers, and whether everything on the way fits together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "commands/commands.h"

enum { PINGS = 20, PINGS_MS_MAX = 1000 };

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* What the service counts of all its callers; NULL: it does not tell this one, who has not the scope admin. Not ready is an answer, too. */
static cJSON *service_failures(struct cli *c)
{
    gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
    gpurest_http_response *response;
    size_t                 bytes;
    const char            *text;
    cJSON                 *told, *found;

    request.method = "GET";
    request.path = "/readyz?verbose=1";
    if (gpurest_http(c->client, &request, &response))
        return NULL;
    text = gpurest_http_body(response, &bytes);
    told = cJSON_ParseWithLength(text, bytes);
    found = cJSON_DetachItemFromObjectCaseSensitive(told, "failures_last_minute");
    cJSON_Delete(told);
    gpurest_http_response_free(response);
    return found;
}

/* PINGS requests, or as many as fit into PINGS_MS_MAX on a slow link. A failed one has no time. */
void link_measure(struct cli *c, cJSON *to)
{
    double   us[PINGS], began = now_us();
    unsigned answered = 0, failed = 0;
    cJSON   *link = cJSON_AddObjectToObject(to, "link"), *failures;

    for (unsigned i = 0; i < PINGS && now_us() - began < PINGS_MS_MAX * 1e3; i++) {
        double before = now_us();

        if (gpurest_request(c->client, "GET", "/livez", NULL, NULL))
            failed++;
        else
            us[answered++] = now_us() - before;
    }
    qsort(us, answered, sizeof *us, by_value);
    failures = service_failures(c);
    cJSON_AddNumberToObject(link, "requests", answered + failed);
    cJSON_AddNumberToObject(link, "failed", failed);
    cJSON_AddItemToObject(link, "p50_us", answered ? cJSON_CreateNumber(us[answered / 2]) : cJSON_CreateNull());
    cJSON_AddItemToObject(link, "p99_us", answered ? cJSON_CreateNumber(us[answered * 99 / 100]) : cJSON_CreateNull());
    cJSON_AddItemToObject(link, "failures_last_minute", failures ? failures : cJSON_CreateNull());
}

void link_print(struct cli *c)
{
    cJSON       *all = cJSON_CreateObject();
    const cJSON *failures;
    char         requests[CELL_BYTES], failed[CELL_BYTES], p50[CELL_BYTES], p99[CELL_BYTES], minute[CELL_BYTES];

    link_measure(c, all);
    failures = output_member(all, "link.failures_last_minute");
    fprintf(c->out, "round trip %s us p50, %s us p99; %s of %s requests failed\n", output_cell(output_member(all, "link.p50_us"), p50),
            output_cell(output_member(all, "link.p99_us"), p99), output_cell(output_member(all, "link.failed"), failed),
            output_cell(output_member(all, "link.requests"), requests));
    if (cJSON_IsNumber(failures))
        fprintf(c->out, "failures of the last minute, of all callers: %s\n", output_cell(failures, minute));
    else
        fprintf(c->out, "failures of the last minute: told with the scope admin\n");
    cJSON_Delete(all);
}

/* ---- does it fit? ---- */

static const char *text_at(const cJSON *item, const char *path)
{
    const cJSON *v = output_member(item, path);

    return cJSON_IsString(v) ? v->valuestring : "";
}

/* Of "nvrtc 13.0" and of "13.0"; 0: unknown. */
static long major_of(const char *version)
{
    return strtol(version + strcspn(version, "0123456789"), NULL, 10);
}

/* The driver's version of that backend; "" if it has none. */
static const char *driver_of(const cJSON *version, const char *backend)
{
    const cJSON *one;

    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(version, "backends")) if (strcmp(text_at(one, "name"), backend) ==
                                                                                       0) return text_at(one, "driver");
    return "";
}

/* What does not fit, with what to do; NULL: everything does. */
static const char *misfit_of(const cJSON *version, const cJSON *device)
{
    const char *compiler = text_at(version, "compiler"), *driver = driver_of(version, text_at(device, "backend"));

    if (strcmp(text_at(version, "api.least"), "v1") > 0 || strcmp(text_at(version, "api.most"), "v1") < 0)
        return "the service does not speak API v1, which this tool does: update the older of the two";
    if (!compiler[0])
        return "the service has no compiler of CUDA C++: it takes PTX and cubins only";
    if (driver[0] && major_of(compiler) > major_of(driver))
        return "the compiler is of a newer major version than the driver, which then refuses its code: update the driver, or use an older "
               "NVRTC";
    return NULL;
}

enum exit_code link_check(struct cli *c, const char *session)
{
    cJSON         *version = NULL, *one = NULL, *device = NULL;
    const char    *driver, *misfit;
    enum exit_code code = cli_get(c, &version, "/version");

    if (!code)
        code = cli_get(c, &one, "/v1/sessions/%s", session);
    if (!code)
        code = cli_get(c, &device, "/v1/devices/%s", text_at(one, "device"));
    if (!code) {
        driver = driver_of(version, text_at(device, "backend"));
        misfit = misfit_of(version, device);
        cli_say(c, "tool %s, service %s, %s %s%s%s, %s, code for %s: %s", gpurest_version(), text_at(version, "version"),
                text_at(device, "id"), text_at(device, "name"), driver[0] ? ", driver " : "", driver,
                text_at(version, "compiler")[0] ? text_at(version, "compiler") : "no compiler", text_at(device, "compile_arch"),
                misfit ? "does not fit together" : "fits together");
        if (misfit)
            cli_say(c, "%s", misfit);
    }
    cJSON_Delete(version);
    cJSON_Delete(one);
    cJSON_Delete(device);
    return code;
}
