/* schema: JSON Schemas of --json output, generated from the columns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"

struct schema {
    const char           *name;
    const struct listing *listing; /* NULL: one object */
    const char           *object;  /* its schema */
};

static const struct schema schemas[] = {
#define LISTING(name)        {#name, &name##_listing, NULL},
#define OBJECT(name, schema) {#name, NULL, schema},
#include "commands/schemas.def"
#undef LISTING
#undef OBJECT
};

/* Any member may be null. FORMAT_TEXT also shows lists and booleans, so its type is open. */
static cJSON *type_of(enum format format)
{
    cJSON *type = cJSON_CreateObject(), *names;

    if (format == FORMAT_TEXT)
        return type;
    names = cJSON_AddArrayToObject(type, "type");
    cJSON_AddItemToArray(names, cJSON_CreateString(format == FORMAT_TIME ? "string" : "number"));
    cJSON_AddItemToArray(names, cJSON_CreateString("null"));
    return type;
}

/* "usage.buffers" is nested. */
static void add_member(cJSON *object, const char *path, enum format format)
{
    cJSON *properties = cJSON_GetObjectItemCaseSensitive(object, "properties"), *inner;
    size_t n = strcspn(path, ".");
    char   name[128];

    snprintf(name, sizeof name, "%.*s", (int)n, path);
    if (path[n] == '\0') {
        cJSON_AddItemToObject(properties, name, type_of(format));
        return;
    }
    inner = cJSON_GetObjectItemCaseSensitive(properties, name);
    if (!inner) {
        inner = cJSON_AddObjectToObject(properties, name);
        cJSON_AddObjectToObject(inner, "properties");
    }
    add_member(inner, path + n + 1, format);
}

static cJSON *item_of(const struct listing *listing)
{
    cJSON *item = cJSON_CreateObject();

    cJSON_AddStringToObject(item, "type", "object");
    cJSON_AddObjectToObject(item, "properties");
    for (size_t i = 0; listing && i < listing->count; i++)
        add_member(item, listing->columns[i].path, listing->columns[i].format);
    return item;
}

static cJSON *document_of(const struct schema *s)
{
    const char *name = s->listing ? s->listing->schema : s->object, *content = s->listing ? "items" : "item";
    cJSON      *document = cJSON_CreateObject(), *properties, *list;

    cJSON_AddStringToObject(document, "$schema", "https://json-schema.org/draft/2020-12/schema");
    cJSON_AddStringToObject(document, "title", name);
    cJSON_AddStringToObject(document, "type", "object");
    properties = cJSON_AddObjectToObject(document, "properties");
    cJSON_AddStringToObject(cJSON_AddObjectToObject(properties, "schema"), "const", name);
    cJSON_AddStringToObject(cJSON_AddObjectToObject(properties, "generated_at"), "type", "string");
    if (s->listing) {
        list = cJSON_AddObjectToObject(properties, content);
        cJSON_AddStringToObject(list, "type", "array");
        cJSON_AddItemToObject(list, "items", item_of(s->listing));
    } else {
        cJSON_AddItemToObject(properties, content, item_of(NULL));
    }
    list = cJSON_AddArrayToObject(document, "required");
    for (size_t i = 0; i < 3; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(i == 0 ? "schema" : i == 1 ? "generated_at" : content));
    return document;
}

enum exit_code run_schema(struct cli *c)
{
    const struct schema *s = schemas;

    if (!take_rest(c, 0, 1))
        return CODE_USAGE;
    if (c->argc == 0) {
        for (size_t i = 0; i < COUNT(schemas); i++)
            fprintf(c->out, "%s\n", schemas[i].name);
        return CODE_OK;
    }
    while (s < schemas + COUNT(schemas) && strcmp(s->name, c->argv[0]) != 0)
        s++;
    if (s == schemas + COUNT(schemas))
        return cli_usage(c, "unknown schema %s; gpurest schema lists them", c->argv[0]);
    cJSON *document = document_of(s);
    char  *text = cJSON_Print(document);

    if (text)
        fprintf(c->out, "%s\n", text);
    free(text);
    cJSON_Delete(document);
    return text ? CODE_OK : cli_error(CODE_FAILED, "not enough memory for the output");
}
