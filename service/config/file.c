/* The configuration file: one "name = value" per line; a line that begins with '#' is a comment. */
#include <ctype.h>
#include <sys/stat.h>

#include "base/files/input_file.h"
#include "config/table.h"

static bool read_whole(const char *path, struct buf *text)
{
    struct problem why = {0};
    enum status    st = input_file_take(path, text, &why);

    return st == STATUS_OK || config_complain(NULL, "configuration file %s %s", path, why.detail);
}

static bool take_value(struct config *c, const struct setting *s, struct span value, struct config_layer *layer)
{
    if (s->kind != KIND_LIST && layer->seen[s - settings])
        return config_complain(layer, "%s is set twice in this file", s->name);
    return config_take(c, s, value, layer);
}

/* Control characters are rejected: a printed value must not move a terminal's cursor, nor end at a NUL. */
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
        return config_complain(layer, "this line has a control character");
    if (!has_value)
        return config_complain(layer, "must be \"name = value\"");
    name = span_trim(span_cut(&rest, '='));
    s = setting_find(name, true);
    if (!s)
        return config_complain(layer, "unknown setting \"%.*s\"", SPAN_ARG(name));
    if (s == &settings[SETTING_config])
        return config_complain(layer, "a configuration file cannot set config");
    return take_value(c, s, span_trim(rest), layer);
}

bool config_file_take(struct config *c, const char *path)
{
    struct config_layer layer = {.kind = LAYER_FILE, .path = path, .line = 1};
    struct span         rest;
    struct buf          text;
    bool                ok;

    buf_init(&text, CONFIG_FILE_BYTES_MAX);
    ok = read_whole(path, &text);
    for (rest = buf_span(&text); ok && rest.bytes; layer.line++)
        ok = take_line(c, span_cut(&rest, '\n'), &layer);
    buf_finish(&text);
    return ok;
}

bool config_file_stays(const struct config *c)
{
    struct stat st;

    return c->config[0] && stat(c->config, &st) == 0 && S_ISREG(st.st_mode);
}
