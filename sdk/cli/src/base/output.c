/* Prints lists and objects as tables, JSON, CSV or names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cli.h"

const char *text_of_bytes(double bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned                 unit = 0;

    while (bytes >= 1024 && unit + 1 < COUNT(units)) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
    return out;
}

const cJSON *output_member(const cJSON *item, const char *path)
{
    char name[128];

    while (item && *path) {
        size_t n = strcspn(path, ".");

        snprintf(name, sizeof name, "%.*s", (int)n, path);
        item = cJSON_GetObjectItemCaseSensitive(item, name);
        path += n + (path[n] == '.');
    }
    return item;
}

static void number_text(const cJSON *v, char out[CELL_BYTES])
{
    if (v->valuedouble == (double)(int64_t)v->valuedouble)
        snprintf(out, CELL_BYTES, "%" PRId64, (int64_t)v->valuedouble);
    else
        snprintf(out, CELL_BYTES, "%.2f", v->valuedouble);
}

/* Replaces control characters, ASCII and U+0080 to U+009F, which a terminal would obey. */
static void replace_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
        else if ((unsigned char)text[0] == 0xC2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xA0)
            text[0] = text[1] = '?';
}

/* Marks cut text with "...". */
static void copy_marked(char out[CELL_BYTES], const char *text)
{
    if (snprintf(out, CELL_BYTES, "%s", text) >= CELL_BYTES)
        memcpy(out + CELL_BYTES - 4, "...", 4);
}

static void format_cell(const cJSON *v, enum format format, bool human, char out[CELL_BYTES])
{
    char short_text[32], *json;

    if (!v || cJSON_IsNull(v)) {
        snprintf(out, CELL_BYTES, "%s", human ? "-" : "");
    } else if (cJSON_IsNumber(v) && format == FORMAT_BYTES && human) {
        snprintf(out, CELL_BYTES, "%s", text_of_bytes(v->valuedouble, short_text));
    } else if (cJSON_IsNumber(v)) {
        number_text(v, out);
    } else if (cJSON_IsString(v)) {
        copy_marked(out, v->valuestring);
    } else {
        json = cJSON_PrintUnformatted(v);
        copy_marked(out, json ? json : "");
        free(json);
    }
    replace_controls(out);
}

const char *output_cell(const cJSON *v, char out[CELL_BYTES])
{
    format_cell(v, FORMAT_TEXT, true, out);
    return out;
}

/* ---- machines ---- */

static void now_text(char out[32])
{
    time_t    now = time(NULL);
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static enum exit_code print_json(FILE *out, const cJSON *document, bool formatted)
{
    char *text = formatted ? cJSON_Print(document) : cJSON_PrintUnformatted(document);

    if (text)
        fprintf(out, "%s\n", text);
    free(text);
    return text ? CODE_OK : cli_error(CODE_FAILED, "not enough memory for the output");
}

static enum exit_code print_document(FILE *out, const char *schema, const char *name, const cJSON *value)
{
    cJSON         *document = cJSON_CreateObject();
    char           now[32];
    enum exit_code code;

    now_text(now);
    cJSON_AddStringToObject(document, "schema", schema);
    cJSON_AddStringToObject(document, "generated_at", now);
    cJSON_AddItemReferenceToObject(document, name, (cJSON *)(uintptr_t)value);
    code = print_json(out, document, true);
    cJSON_Delete(document);
    return code;
}

static enum exit_code print_lines(FILE *out, const cJSON *items)
{
    enum exit_code code = CODE_OK;

    for (const cJSON *i = items->child; i && !code; i = i->next)
        code = print_json(out, i, false);
    return code;
}

static void print_quoted(FILE *out, const char *text)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    putc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    putc('"', out);
}

static void print_csv_row(FILE *out, const cJSON *item, const struct column *columns, size_t count)
{
    char text[CELL_BYTES];

    for (size_t i = 0; i < count; i++) {
        if (i)
            putc(',', out);
        if (item)
            format_cell(output_member(item, columns[i].path), columns[i].format, false, text);
        print_quoted(out, item ? text : columns[i].path);
    }
    putc('\n', out);
}

/* ---- people ---- */

static size_t width_of(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += (*text & 0xC0) != 0x80; /* characters, not bytes, of UTF-8 */
    return n;
}

static void print_padded(FILE *out, const char *text, size_t width, bool right, bool last)
{
    int pad = (int)(width - width_of(text));

    if (right)
        fprintf(out, "%*s%s", pad, "", text);
    else
        fprintf(out, "%s%*s", text, last ? 0 : pad, "");
    fputs(last ? "\n" : "  ", out);
}

static void print_table(const struct cli *c, const cJSON *items, const struct column *columns, size_t count)
{
    size_t widths[COLUMNS_MAX];
    char   text[CELL_BYTES];

    for (size_t i = 0; i < count; i++) {
        widths[i] = c->no_header ? 0 : strlen(columns[i].title);
        for (const cJSON *item = items->child; item; item = item->next) {
            format_cell(output_member(item, columns[i].path), columns[i].format, true, text);
            widths[i] = width_of(text) > widths[i] ? width_of(text) : widths[i];
        }
    }
    for (size_t i = 0; i < count && !c->no_header; i++)
        print_padded(c->out, columns[i].title, widths[i], columns[i].format == FORMAT_NUMBER || columns[i].format == FORMAT_BYTES,
                     i + 1 == count);
    for (const cJSON *item = items->child; item; item = item->next)
        for (size_t i = 0; i < count; i++) {
            format_cell(output_member(item, columns[i].path), columns[i].format, true, text);
            print_padded(c->out, text, widths[i], columns[i].format == FORMAT_NUMBER || columns[i].format == FORMAT_BYTES, i + 1 == count);
        }
}

/* ---- both ---- */

/* The columns of --fields, else the command's. */
static size_t choose_columns(const struct cli *c, const struct column *all, size_t count, struct column out[COLUMNS_MAX], char *names)
{
    size_t n = 0;

    if (c->fields) {
        for (char *rest = names, *name; (name = next_part(&rest, ',')) && n < COLUMNS_MAX;) {
            enum format format = FORMAT_TEXT;
            for (size_t i = 0; i < count; i++)
                format = strcmp(all[i].path, name) == 0 ? all[i].format : format;
            out[n++] = (struct column){name, name, format, false};
        }
        return n;
    }
    for (size_t i = 0; i < count && n < COLUMNS_MAX; i++)
        if (!all[i].wide || c->output != OUTPUT_TABLE)
            out[n++] = all[i];
    return n;
}

/* A column of the command may be absent from all items; another member must be in one, unless there are none. */
static bool is_member(const struct listing *listing, const cJSON *items, const char *name)
{
    for (size_t i = 0; i < listing->count; i++)
        if (strcmp(listing->columns[i].path, name) == 0)
            return true;
    for (const cJSON *i = items->child; i; i = i->next)
        if (output_member(i, name))
            return true;
    return !items->child;
}

static enum exit_code no_member(const cJSON *items, const char *name)
{
    char   all[1024] = "";
    size_t n = 0;

    for (const cJSON *m = items->child->child; m && n < sizeof all; m = m->next)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? ", " : "", m->string);
    return cli_error(CODE_USAGE, "--fields: unknown member \"%s\"; available: %s", name, all);
}

enum exit_code output_items(const struct cli *c, const struct listing *listing, const cJSON *items)
{
    struct column chosen[COLUMNS_MAX];
    char          names[1024];
    size_t        count;

    snprintf(names, sizeof names, "%s", c->fields ? c->fields : "");
    count = choose_columns(c, listing->columns, listing->count, chosen, names);
    for (size_t i = 0; i < count; i++)
        if (c->fields && !is_member(listing, items, chosen[i].path))
            return no_member(items, chosen[i].path);
    switch (c->output) {
    case OUTPUT_JSON:
        return print_document(c->out, listing->schema, "items", items);
    case OUTPUT_JSONL:
        return print_lines(c->out, items);
    case OUTPUT_CSV:
        if (!c->no_header)
            print_csv_row(c->out, NULL, chosen, count);
        for (const cJSON *i = items->child; i; i = i->next)
            print_csv_row(c->out, i, chosen, count);
        return CODE_OK;
    case OUTPUT_NAME:
        print_table(&(struct cli){.no_header = true, .out = c->out}, items, listing->columns, 1);
        return CODE_OK;
    case OUTPUT_TABLE:
    case OUTPUT_WIDE:
        print_table(c, items, chosen, count);
        return CODE_OK;
    }
    return CODE_FAILED;
}

static enum format format_of(const char *name)
{
    size_t n = strlen(name);

    return n > 6 && strcmp(name + n - 6, "_bytes") == 0 ? FORMAT_BYTES : FORMAT_TEXT;
}

static void print_members(FILE *out, const cJSON *object, unsigned indent);

/* number < 0: not in a list. */
static void print_nested(FILE *out, const char *name, int number, const cJSON *object, unsigned indent)
{
    if (number < 0)
        fprintf(out, "%*s%s\n", (int)indent, "", name);
    else
        fprintf(out, "%*s%s %d\n", (int)indent, "", name, number);
    print_members(out, object, indent + 2);
}

/* Recursion is bounded: cJSON limits nesting. */
static void print_members(FILE *out, const cJSON *object, unsigned indent)
{
    char text[CELL_BYTES];
    int  number = 0;

    for (const cJSON *m = object->child; m; m = m->next) {
        if (cJSON_IsObject(m) && m->child) {
            print_nested(out, m->string, -1, m, indent);
        } else if (cJSON_IsArray(m) && cJSON_IsObject(m->child)) {
            for (const cJSON *i = m->child; i; i = i->next)
                print_nested(out, m->string, number++, i, indent);
        } else {
            format_cell(m, format_of(m->string), true, text);
            fprintf(out, "%*s%-*s %s\n", (int)indent, "", indent < 27 ? (int)(28 - indent) : 1, m->string, text);
        }
    }
}

enum exit_code output_object(const struct cli *c, const char *schema, const cJSON *object)
{
    if (c->output == OUTPUT_JSON || c->output == OUTPUT_JSONL)
        return print_document(c->out, schema, "item", object);
    print_members(c->out, object, 0);
    return CODE_OK;
}
