/* builtins: the service's built-in kernels. */
#include <string.h>

#include "commands/commands.h"

static const struct column columns[] = {
    {"NAME", "name", FORMAT_TEXT, false},    {"FAMILY", "family", FORMAT_TEXT, false},
    {"WHAT", "summary", FORMAT_TEXT, false}, {"LIBRARY", "library.name", FORMAT_TEXT, false},
    {"TYPES", "dtypes", FORMAT_TEXT, true},  {"SHAPE", "shape", FORMAT_TEXT, true},
};
static const struct column parameter_columns[] = {
    {"PARAMETER", "name", FORMAT_TEXT, false},    {"ACCESS", "access", FORMAT_TEXT, false},   {"TYPE", "type", FORMAT_TEXT, false},
    {"ELEMENTS", "elements", FORMAT_TEXT, false}, {"MEANING", "meaning", FORMAT_TEXT, false},
};

const struct listing        builtins_listing = {"gpurest.builtins/1", columns, COUNT(columns)};
static const struct listing parameters_listing = {"", parameter_columns, COUNT(parameter_columns)};

static enum exit_code list_builtins(struct cli *c)
{
    cJSON         *items = cJSON_CreateArray();
    enum exit_code code = cli_get_all(c, "/v1/kernels", items);

    if (!code)
        code = output_items(c, &builtins_listing, items);
    cJSON_Delete(items);
    return code;
}

/* Parameters as a table, notes as text; sources only with --json. */
static enum exit_code print_builtin(const struct cli *c, cJSON *item)
{
    static const char *const elsewhere[] = {"source", "common", "headers", "notes", "params"};
    cJSON                   *taken[COUNT(elsewhere)];
    enum exit_code           code;

    for (size_t i = 0; i < COUNT(elsewhere); i++)
        taken[i] = cJSON_DetachItemFromObjectCaseSensitive(item, elsewhere[i]);
    code = output_object(c, "", item);
    if (!code && cJSON_IsArray(taken[4])) {
        fputc('\n', c->out);
        code = output_items(c, &parameters_listing, taken[4]);
    }
    if (cJSON_IsString(taken[3]))
        fprintf(c->out, "\n%s\n", taken[3]->valuestring);
    for (size_t i = 0; i < COUNT(elsewhere); i++)
        cJSON_Delete(taken[i]);
    return code;
}

static enum exit_code get_builtin(struct cli *c, const char *name)
{
    bool           people = c->output == OUTPUT_TABLE || c->output == OUTPUT_WIDE;
    cJSON         *item = NULL;
    enum exit_code code = cli_get(c, &item, "/v1/kernels/%s", name);

    if (!code)
        code = people ? print_builtin(c, item) : output_object(c, "gpurest.builtin/1", item);
    cJSON_Delete(item);
    return code;
}

enum exit_code run_builtins(struct cli *c)
{
    const char *verb = c->argc > 0 ? c->argv[0] : "ls";

    if (!take_rest(c, 0, 2))
        return CODE_USAGE;
    if (strcmp(verb, "ls") == 0 && c->argc <= 1)
        return list_builtins(c);
    if (strcmp(verb, "get") == 0 && c->argc == 2 && cli_id_ok(c->argv[1]))
        return get_builtin(c, c->argv[1]);
    return cli_usage(c, "expected ls or get NAME");
}
