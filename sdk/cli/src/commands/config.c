/* config: limits and log levels of the service. */
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"

static const struct column columns[] = {
    {"DEVICE", "id", FORMAT_TEXT, false},
    {"CLOCK KHZ", "clock_khz", FORMAT_NUMBER, false},
    {"MEMORY CLOCK KHZ", "memory_clock_khz", FORMAT_NUMBER, false},
    {"POWER W", "power_w", FORMAT_NUMBER, false},
    {"TEMP C", "temperature_c", FORMAT_NUMBER, false},
};
static const struct listing clocks = {"gpurest.clocks/1", columns, COUNT(columns)};

static cJSON *clocks_of(const cJSON *devices)
{
    cJSON       *all = cJSON_CreateArray();
    const cJSON *device;

    cJSON_ArrayForEach(device, devices)
    {
        cJSON *one = cJSON_CreateObject();

        for (size_t i = 0; i < COUNT(columns); i++)
            cJSON_AddItemToObject(one, columns[i].path, cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(device, columns[i].path), true));
        cJSON_AddItemToArray(all, one);
    }
    return all;
}

/* JSON null without scope admin. */
static cJSON *logging_of(struct cli *c)
{
    char  *text = NULL;
    cJSON *document = NULL, *levels = NULL;

    if (gpurest_request(c->client, "GET", "/v1/admin/logging", NULL, &text) == GPUREST_OK)
        document = cJSON_Parse(text);
    levels = cJSON_DetachItemFromObjectCaseSensitive(document, "levels");
    cJSON_Delete(document);
    gpurest_mem_free(text);
    return levels ? levels : cJSON_CreateNull();
}

static enum exit_code print_config(struct cli *c, cJSON *all)
{
    cJSON         *list;
    enum exit_code code;

    if (c->output == OUTPUT_JSON || c->output == OUTPUT_JSONL)
        return output_object(c, "gpurest.config/1", all);
    list = cJSON_DetachItemFromObjectCaseSensitive(all, "clocks");
    code = output_object(c, "gpurest.config/1", all);
    if (!code && c->output == OUTPUT_TABLE) {
        fprintf(c->out, "\nClocks and power are changed by gpurest device set.\n");
        code = output_items(c, &clocks, list);
    }
    cJSON_Delete(list);
    return code;
}

static enum exit_code show_config(struct cli *c)
{
    cJSON         *limits = NULL, *devices = NULL, *all = cJSON_CreateObject();
    enum exit_code code = cli_get(c, &limits, "/v1/limits");

    if (!code)
        code = cli_get(c, &devices, "/v1/devices");
    if (!code) {
        cJSON_AddItemToObject(all, "limits", cJSON_DetachItemFromObjectCaseSensitive(limits, "limits"));
        cJSON_AddItemToObject(all, "logging", logging_of(c));
        cJSON_AddItemToObject(all, "clocks", clocks_of(cJSON_GetObjectItemCaseSensitive(devices, "items")));
        code = print_config(c, all);
    }
    cJSON_Delete(limits);
    cJSON_Delete(devices);
    cJSON_Delete(all);
    return code;
}

/* "log" sets every category except "access", like gpurestd --log-level; "log.http" sets one. The service validates names and levels. */
static enum exit_code set_log(struct cli *c, const char *category, const char *level)
{
    cJSON         *present = NULL, *body = cJSON_CreateObject(), *levels = cJSON_AddObjectToObject(body, "levels");
    char          *text = NULL;
    enum exit_code code = category[0] ? cli_open(c) : cli_get(c, &present, "/v1/admin/logging");
    const cJSON   *one;

    if (category[0])
        cJSON_AddStringToObject(levels, category, level);
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(present, "levels")) if (strcmp(one->string, "access") != 0)
        cJSON_AddStringToObject(levels, one->string, level);
    if (!code && !(text = cJSON_PrintUnformatted(body)))
        code = cli_error(CODE_FAILED, "not enough memory");
    if (!code)
        code = cli_request(c, "PUT", "/v1/admin/logging", text);
    cJSON_free(text);
    cJSON_Delete(body);
    cJSON_Delete(present);
    return code;
}

enum exit_code run_config(struct cli *c)
{
    const char *name;

    if (!take_rest(c, 0, 3))
        return CODE_USAGE;
    if (c->argc == 0 || (c->argc == 1 && strcmp(c->argv[0], "show") == 0))
        return show_config(c);
    if (c->argc != 3 || strcmp(c->argv[0], "set") != 0)
        return cli_usage(c, "expected show, set log LEVEL, or set log.CATEGORY LEVEL");
    name = c->argv[1];
    if (strcmp(name, "log") == 0 || (strncmp(name, "log.", 4) == 0 && name[4]))
        return set_log(c, name[3] ? name + 4 : "", c->argv[2]);
    return cli_usage(c, "%s cannot be changed while the service runs; gpurestd --help lists its start-up settings", name);
}
