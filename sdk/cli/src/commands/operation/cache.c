/* cache: the service's compiled code: shown, removed, compiled ahead. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"

enum { KERNELS_MAX = 1024, DTYPES_MAX = 32, POLL_S = 10 };

/* ---- show, clear ---- */

static enum exit_code show_cache(struct cli *c)
{
    cJSON         *item = NULL;
    enum exit_code code = take_rest(c, 0, 0) ? cli_get(c, &item, "/v1/cache") : CODE_USAGE;

    if (!code)
        code = output_object(c, "gpurest.cache/1", item);
    cJSON_Delete(item);
    return code;
}

/* "90", "90s", "15m", "12h", "7d" */
static bool parse_duration(const char *text, uint64_t *seconds)
{
    static const struct {
        char     unit;
        uint64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 24 * 3600}};
    size_t   digits = strspn(text, "0123456789");
    char     number[24];
    uint64_t scale = text[digits] == '\0' ? 1 : 0;

    for (size_t i = 0; i < COUNT(units); i++)
        if (text[digits] == units[i].unit && text[digits + 1] == '\0')
            scale = units[i].seconds;
    if (!scale || digits == 0 || digits >= sizeof number)
        return false;
    memcpy(number, text, digits);
    number[digits] = '\0';
    return parse_number(number, seconds) && !__builtin_mul_overflow(*seconds, scale, seconds);
}

static enum exit_code clear_cache(struct cli *c)
{
    bool           all = take_flag(c, "--all"), ok = true;
    const char    *age = NULL;
    uint64_t       seconds = 0;
    char           path[PATH_BYTES], bytes[32];
    cJSON         *answer = NULL;
    enum exit_code code;

    take_value(c, "--older-than", &age, &ok);
    if (!ok || !take_rest(c, 0, 0))
        return CODE_USAGE;
    if (age && !parse_duration(age, &seconds))
        return cli_usage(c, "--older-than takes seconds, or a number with s, m, h or d, not \"%s\"", age);
    if (!cli_confirm(c, all ? "remove the compiled code of all callers" : "remove your compiled code from the cache"))
        return CODE_USAGE;
    snprintf(path, sizeof path, "/v1/cache?older_than_s=%" PRIu64 "%s", seconds, all ? "&all=1" : "");
    code = cli_ask(c, "DELETE", path, NULL, &answer);
    if (!code && c->output == OUTPUT_JSON)
        code = output_object(c, "gpurest.cache_cleared/1", answer);
    else if (!code)
        fprintf(c->out, "removed %.0f entries, %s\n", cJSON_GetNumberValue(output_member(answer, "removed_entries")),
                text_of_bytes(cJSON_GetNumberValue(output_member(answer, "removed_bytes")), bytes));
    cJSON_Delete(answer);
    return code;
}

/* ---- warm ---- */

static const struct column columns[] = {
    {"KERNEL", "kernel", FORMAT_TEXT, false}, {"DTYPE", "dtype", FORMAT_TEXT, false}, {"MODULE", "module", FORMAT_NUMBER, true},
    {"DEVICE", "device", FORMAT_TEXT, false}, {"STATE", "state", FORMAT_TEXT, false}, {"PROBLEM", "problem.detail", FORMAT_TEXT, false},
};
const struct listing warm_listing = {"gpurest.warm/1", columns, COUNT(columns)};

/* Every "--name VALUE" becomes a text of the request's list. */
static bool take_texts(struct cli *c, const char *name, cJSON *request, const char *member)
{
    cJSON      *list = NULL;
    const char *value;
    bool        ok = true;

    while (take_value(c, name, &value, &ok)) {
        if (!list)
            list = cJSON_AddArrayToObject(request, member);
        cJSON_AddItemToArray(list, cJSON_CreateString(value));
    }
    return ok;
}

/* A name that ends in .cu is a file with a source. */
static enum exit_code add_names(struct cli *c, cJSON *request)
{
    cJSON *kernels = NULL, *modules = NULL;

    for (int i = 0; i < c->argc; i++) {
        size_t n = strlen(c->argv[i]), bytes;
        char  *source;
        cJSON *module;

        if (n <= 3 || strcmp(c->argv[i] + n - 3, ".cu") != 0) {
            kernels = kernels ? kernels : cJSON_AddArrayToObject(request, "kernels");
            cJSON_AddItemToArray(kernels, cJSON_CreateString(c->argv[i]));
            continue;
        }
        source = file_read(c->argv[i], &bytes);
        if (!source)
            return CODE_FAILED;
        modules = modules ? modules : cJSON_AddArrayToObject(request, "modules");
        module = cJSON_CreateObject();
        cJSON_AddStringToObject(module, "source", source);
        cJSON_AddItemToArray(modules, module);
        free(source);
    }
    return CODE_OK;
}

/* Until it has ended; *job is replaced by how it stands then. */
static enum exit_code follow_warm(struct cli *c, cJSON **job)
{
    const char *wait = "Prefer: wait=10";
    char        path[PATH_BYTES];

    snprintf(path, sizeof path, "/v1/cache/warm/%s", cJSON_GetStringValue(output_member(*job, "id")));
    while (strcmp(cJSON_GetStringValue(output_member(*job, "state")), "running") == 0) {
        gpurest_http_request   request = GPUREST_HTTP_REQUEST_INIT;
        gpurest_http_response *response;
        gpurest_status         st;
        const void            *text;
        size_t                 bytes;

        request.method = "GET";
        request.path = path;
        request.headers = &wait;
        request.headers_count = 1;
        st = gpurest_http(c->client, &request, &response);
        if (st)
            return cli_failed(c, st);
        text = gpurest_http_body(response, &bytes);
        cJSON_Delete(*job);
        *job = cJSON_ParseWithLength(text, bytes);
        gpurest_http_response_free(response);
        if (!cJSON_GetStringValue(output_member(*job, "state")))
            return cli_error(CODE_FAILED, "the service does not know %s any more", path);
        cli_say(c, "%.0f of %.0f compiled", cJSON_GetNumberValue(output_member(*job, "succeeded")),
                cJSON_GetNumberValue(output_member(*job, "total")));
    }
    return CODE_OK;
}

static enum exit_code print_warm(struct cli *c, cJSON *job)
{
    enum exit_code code = output_items(c, &warm_listing, output_member(job, "items"));

    if (code || cJSON_GetNumberValue(output_member(job, "failed")) == 0)
        return code;
    return cli_error(CODE_COMPILE, "%.0f of %.0f failed", cJSON_GetNumberValue(output_member(job, "failed")),
                     cJSON_GetNumberValue(output_member(job, "total")));
}

static enum exit_code begin_warm(struct cli *c, const cJSON *request, bool follow)
{
    char          *text = cJSON_PrintUnformatted(request);
    cJSON         *job = NULL;
    enum exit_code code = text ? cli_ask(c, "POST", "/v1/cache/warm", text, &job) : cli_error(CODE_FAILED, "out of memory");

    cJSON_free(text);
    if (!code && !cJSON_GetStringValue(output_member(job, "state")))
        code = cli_error(CODE_FAILED, "the answer to /v1/cache/warm has no state");
    if (!code && follow)
        code = follow_warm(c, &job);
    if (!code)
        code = print_warm(c, job);
    cJSON_Delete(job);
    return code;
}

static enum exit_code warm_cache(struct cli *c)
{
    bool           follow = !take_flag(c, "--no-wait");
    cJSON         *request = cJSON_CreateObject();
    enum exit_code code = CODE_USAGE;

    if (take_texts(c, "--dtype", request, "dtypes") && take_texts(c, "--device", request, "devices") && take_rest(c, 1, KERNELS_MAX))
        code = add_names(c, request);
    if (!code)
        code = begin_warm(c, request, follow);
    cJSON_Delete(request);
    return code;
}

enum exit_code run_cache(struct cli *c)
{
    const char *verb = c->argc > 0 ? c->argv[0] : "show";

    if (c->argc > 0 && verb[0] != '-')
        c->argc--, c->argv++;
    if (strcmp(verb, "clear") == 0)
        return clear_cache(c);
    if (strcmp(verb, "warm") == 0)
        return warm_cache(c);
    if (strcmp(verb, "show") == 0 || verb[0] == '-')
        return show_cache(c);
    return cli_usage(c, "expected show, clear or warm NAME...");
}
