/* Shapes of built-in kernels, measured by the service. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const struct column tune_columns[] = {
    {"SHAPE", "name", FORMAT_TEXT, false},
    {"US", "us", FORMAT_NUMBER, false},
    {"OUTCOME", "outcome", FORMAT_TEXT, false},
    {"TAKEN", "taken", FORMAT_TEXT, false},
};
const struct listing tune_listing = {"gpurest.tune/1", tune_columns, COUNT(tune_columns)};

/* "n=1024", "alpha=0.5", "exclusive=true": a number or a word of JSON as it is, digits beyond a double's as text. */
static bool add_value(const struct cli *c, cJSON *values, char *text)
{
    char  *equals = strchr(text, '=');
    cJSON *value;
    bool   whole;

    if (!equals || equals == text || !equals[1]) {
        cli_usage(c, "%s is no NAME=VALUE", text);
        return false;
    }
    *equals = '\0';
    whole = equals[1 + strspn(equals + 1, "0123456789")] == '\0';
    value = whole ? NULL : cJSON_Parse(equals + 1);
    if (!cJSON_IsNumber(value) && !cJSON_IsBool(value)) {
        cJSON_Delete(value);
        value = cJSON_CreateString(equals + 1);
    }
    return cJSON_AddItemToObject(values, text, value);
}

static cJSON *request_of(struct cli *c, const char *device, const char *candidate)
{
    cJSON *request = cJSON_CreateObject(), *values = cJSON_AddObjectToObject(request, "values");
    bool   ok = true;

    cJSON_AddStringToObject(request, "dtype", c->argv[1]);
    if (device)
        cJSON_AddStringToObject(request, "device", device);
    if (candidate)
        cJSON_AddStringToObject(request, "candidate", candidate);
    for (int i = 2; i < c->argc && ok; i++)
        ok = add_value(c, values, c->argv[i]);
    if (ok)
        return request;
    cJSON_Delete(request);
    return NULL;
}

static enum exit_code tell(struct cli *c, const char *text)
{
    cJSON         *answer = cJSON_Parse(text), *item;
    const cJSON   *chosen = cJSON_GetObjectItemCaseSensitive(answer, "candidate");
    const cJSON   *items = cJSON_GetObjectItemCaseSensitive(answer, "candidates");
    enum exit_code code;

    if (!cJSON_IsString(chosen) || !cJSON_IsArray(items)) {
        cJSON_Delete(answer);
        return cli_error(CODE_FAILED, "the answer of the service is not what it should be");
    }
    cJSON_ArrayForEach(item, items)
    {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "name");
        cJSON_AddStringToObject(item, "taken", cJSON_IsString(name) && strcmp(name->valuestring, chosen->valuestring) == 0 ? "yes" : "");
    }
    code = output_items(c, &tune_listing, items);
    cJSON_Delete(answer);
    return code;
}

static enum exit_code ask(struct cli *c, const char *kernel, const char *json)
{
    char          *text = NULL, path[PATH_BYTES];
    gpurest_status st;
    enum exit_code code;

    if (snprintf(path, sizeof path, "/v1/kernels/%s/tune", kernel) >= (int)sizeof path)
        return cli_usage(c, "no kernel has so long a name");
    st = gpurest_request(c->client, "POST", path, json, &text);
    if (st)
        return cli_failed(c, st);
    code = tell(c, text);
    gpurest_mem_free(text);
    return code;
}

enum exit_code run_tune(struct cli *c)
{
    const char    *device = NULL, *candidate = NULL;
    bool           ok = true;
    enum exit_code code;
    cJSON         *request;
    char          *json;

    take_value(c, "--device", &device, &ok);
    take_value(c, "--candidate", &candidate, &ok);
    if (!ok || !take_rest(c, 2, 32))
        return CODE_USAGE;
    if (c->argv[0][strspn(c->argv[0], "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return cli_usage(c, "%s is no name of a kernel", c->argv[0]);
    request = request_of(c, device, candidate);
    if (!request)
        return CODE_USAGE;
    json = cJSON_PrintUnformatted(request);
    cJSON_Delete(request);
    code = json ? cli_open(c) : cli_error(CODE_FAILED, "out of memory");
    if (!code)
        code = ask(c, c->argv[0], json);
    free(json);
    return code;
}
