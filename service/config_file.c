/* The configuration file: "name = value" a line, comments on lines of their own that begin with '#'. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_table.h"

/* The whole file, NUL-terminated, to be freed; NULL after a complaint. */
static char *read_whole(const char *path, const struct config_layer *layer, size_t *bytes)
{
    FILE *f = fopen(path, "re");
    char *text = malloc(CONFIG_FILE_BYTES_MAX + 1);
    bool  ok = f && text;

    if (!f)
        config_complain(NULL, "configuration file %s: %s", path, strerror(errno));
    else if (!text)
        config_complain(NULL, "out of memory");
    if (ok) {
        *bytes = fread(text, 1, CONFIG_FILE_BYTES_MAX + 1, f);
        if (ferror(f))
            ok = config_complain(NULL, "configuration file %s: %s", path, strerror(errno));
        else if (*bytes > CONFIG_FILE_BYTES_MAX)
            ok = config_complain(layer, "the file is longer than %d bytes", CONFIG_FILE_BYTES_MAX);
        else
            text[*bytes] = '\0';
    }
    if (f)
        fclose(f);
    if (ok)
        return text;
    free(text);
    return NULL;
}

static bool take_value(struct config *c, const struct setting *s, struct span value, struct config_layer *layer)
{
    if (s->kind != KIND_LIST && layer->seen[s - settings])
        return config_complain(layer, "%s is set twice in this file", s->name);
    return config_take(c, s, value, layer);
}

/* A byte that no setting may have: what is printed of a file must not move a terminal's cursor, nor end at a NUL. */
static bool has_control(struct span line)
{
    for (size_t i = 0; i < line.bytes; i++)
        if (iscntrl((unsigned char)line.data[i]) && line.data[i] != '\t')
            return true;
    return false;
}

static bool take_line(struct config *c, struct span line, struct config_layer *layer)
{
    struct span           rest = span_trim(line);
    bool                  has_value = rest.bytes && memchr(rest.data, '=', rest.bytes);
    struct span           name;
    const struct setting *s;

    if (rest.bytes == 0 || rest.data[0] == '#')
        return true;
    if (has_control(rest))
        return config_complain(layer, "there is a control character in this line");
    if (!has_value)
        return config_complain(layer, "must be \"name = value\"");
    name = span_trim(span_cut(&rest, '='));
    s = setting_find(name, true);
    if (!s)
        return config_complain(layer, "there is no setting \"%.*s\"", SPAN_ARG(name));
    if (s == &settings[SETTING_config])
        return config_complain(layer, "a file cannot name another one");
    return take_value(c, s, span_trim(rest), layer);
}

bool config_file_take(struct config *c, const char *path)
{
    struct config_layer layer = {.kind = LAYER_FILE, .path = path, .line = 1};
    struct span         rest = {NULL, 0};
    char               *text = read_whole(path, &layer, &rest.bytes);
    bool                ok = text != NULL;

    for (rest.data = text; ok && rest.bytes; layer.line++)
        ok = take_line(c, span_cut(&rest, '\n'), &layer);
    free(text);
    return ok;
}
