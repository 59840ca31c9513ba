/* device: resets a device, or changes its settings. */
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"

enum {
    RESET_S_DEFAULT = 30,  /* the service's */
    RESET_S_MAX = 3600,    /* the service's */
    RESET_REST_S = 5 * 60, /* longest time that processes and the vendor's tool take after that */
    SETTINGS_MAX = 16,     /* of one command */
};

static enum exit_code print_device(struct cli *c, const cJSON *device)
{
    const cJSON *settings = cJSON_GetObjectItemCaseSensitive(device, "settings"), *one;
    char         cell[CELL_BYTES];

    if (c->output == OUTPUT_JSON || c->output == OUTPUT_JSONL)
        return output_object(c, devices_listing.schema, device);
    fprintf(c->out, "%s %s\n", c->argv[1], output_cell(cJSON_GetObjectItemCaseSensitive(device, "state"), cell));
    cJSON_ArrayForEach(one, settings) if (!cJSON_IsNull(one)) fprintf(c->out, "%s %s\n", one->string, output_cell(one, cell));
    return CODE_OK;
}

/* ---- reset ---- */

static enum exit_code reset_device(struct cli *c, bool hard, uint64_t timeout_s)
{
    char           path[PATH_BYTES], body[128], question[PATH_BYTES];
    cJSON         *device = NULL;
    enum exit_code code;
    int            patience_ms = (int)(timeout_s + RESET_REST_S) * 1000;

    snprintf(question, sizeof question, "reset device %s%s and fault its sessions", c->argv[1], hard ? " by the vendor's tool" : "");
    if (!cli_confirm(c, question))
        return CODE_USAGE;
    snprintf(path, sizeof path, "/v1/admin/devices/%s/reset", c->argv[1]);
    snprintf(body, sizeof body, "{\"kind\":\"%s\",\"timeout_s\":%u}", hard ? "hard" : "soft", (unsigned)timeout_s);
    c->timeout_ms = c->timeout_ms > patience_ms ? c->timeout_ms : patience_ms;
    code = cli_ask(c, "POST", path, body, &device);
    if (!code)
        code = print_device(c, device);
    cJSON_Delete(device);
    return code;
}

/* ---- settings ---- */

/* "default", "auto" and "null", "on" and "off", "300", "300,1500"; NULL: none of them, or no memory. */
static cJSON *value_of(const char *text)
{
    uint64_t    low, high;
    char        first[32];
    const char *comma = strchr(text, ',');
    cJSON      *pair;

    if (strcmp(text, "default") == 0 || strcmp(text, "auto") == 0 || strcmp(text, "null") == 0)
        return cJSON_CreateNull();
    if (strcmp(text, "on") == 0 || strcmp(text, "off") == 0)
        return cJSON_CreateBool(text[1] == 'n');
    if (!comma)
        return parse_number(text, &low) ? cJSON_CreateNumber((double)low) : NULL;
    if (snprintf(first, sizeof first, "%.*s", (int)(comma - text), text) >= (int)sizeof first || !parse_number(first, &low) ||
        !parse_number(comma + 1, &high))
        return NULL;
    pair = cJSON_CreateArray();
    cJSON_AddItemToArray(pair, cJSON_CreateNumber((double)low));
    cJSON_AddItemToArray(pair, cJSON_CreateNumber((double)high));
    return pair;
}

static enum exit_code fill_settings(const struct cli *c, cJSON *settings)
{
    for (int i = 2; i + 1 < c->argc; i += 2) {
        cJSON *value = value_of(c->argv[i + 1]);

        if (!value)
            return cli_usage(c, "\"%s\" is no value: give a number, LOWEST,HIGHEST, on, off, or default", c->argv[i + 1]);
        if (!cJSON_AddItemToObject(settings, c->argv[i], value)) {
            cJSON_Delete(value);
            return cli_error(CODE_FAILED, "not enough memory");
        }
    }
    return CODE_OK;
}

/* The service knows the names and ranges. */
static enum exit_code set_device(struct cli *c)
{
    cJSON         *body = cJSON_CreateObject(), *device = NULL;
    char           path[PATH_BYTES], *text = NULL;
    enum exit_code code = fill_settings(c, cJSON_AddObjectToObject(body, "settings"));

    snprintf(path, sizeof path, "/v1/admin/devices/%s", c->argv[1]);
    if (!code && !(text = cJSON_PrintUnformatted(body)))
        code = cli_error(CODE_FAILED, "not enough memory");
    if (!code)
        code = cli_ask(c, "PATCH", path, text, &device);
    if (!code)
        code = print_device(c, device);
    cJSON_free(text);
    cJSON_Delete(body);
    cJSON_Delete(device);
    return code;
}

enum exit_code run_device(struct cli *c)
{
    bool        hard = take_flag(c, "--hard"), ok = true, timed;
    uint64_t    timeout_s = RESET_S_DEFAULT;
    const char *verb;

    timed = take_number(c, "--timeout", &timeout_s, &ok);
    if (!ok || !take_rest(c, 2, 2 + 2 * SETTINGS_MAX))
        return CODE_USAGE;
    verb = c->argv[0];
    if (!cli_id_ok(c->argv[1]))
        return cli_usage(c, "\"%s\" is not a valid id", c->argv[1]);
    if (strcmp(verb, "reset") == 0 && c->argc == 2)
        return timeout_s <= RESET_S_MAX ? reset_device(c, hard, timeout_s) : cli_usage(c, "--timeout must be at most %d", RESET_S_MAX);
    if (strcmp(verb, "set") == 0 && c->argc >= 4 && c->argc % 2 == 0 && !hard && !timed)
        return set_device(c);
    return cli_usage(c, "expected reset ID, or set ID NAME VALUE...");
}
