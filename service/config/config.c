/* Settings from the configuration file, the environment and the command line; a later layer overrides an earlier one. */
#include "config/config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/span.h"
#include "base/version.h"
#include "config/table.h"

const struct setting settings[SETTINGS_COUNT] = {
#define SETTING_LIST(name, help)                    {#name, KIND_LIST, offsetof(struct config, name), NULL, NULL, 0, 0, 0, help},
#define SETTING_TEXT(name, preset, help)            {#name, KIND_TEXT, offsetof(struct config, name), preset, NULL, 0, 0, 0, help},
#define SETTING_CHOICE(name, preset, choices, help) {#name, KIND_CHOICE, offsetof(struct config, name), preset, choices, 0, 0, 0, help},
#define SETTING_SWITCH(name, help)                  {#name, KIND_SWITCH, offsetof(struct config, name), NULL, NULL, 0, 0, 0, help},
#define SETTING_NUMBER(name, preset, least, most, help)                                                                                    \
    {#name, KIND_NUMBER, offsetof(struct config, name), NULL, NULL, preset, least, most, help},
#include "config/config.def"
};

void *setting_member(struct config *c, const struct setting *s)
{
    return (char *)c + s->offset;
}

bool config_complain(const struct config_layer *layer, const char *format, ...)
{
    bool    in_file = layer && layer->kind == LAYER_FILE;
    va_list args;

    fputs("gpurestd: ", stderr);
    if (in_file)
        fprintf(stderr, "%s:%u: ", layer->path, layer->line);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(in_file ? "\n" : "; see --help\n", stderr);
    return false;
}

/* ---- names ---- */

const char *setting_flag(const struct setting *s, char out[SETTING_NAME_BYTES])
{
    size_t i = 0;

    for (; s->name[i] && i + 1 < SETTING_NAME_BYTES; i++)
        out[i] = s->name[i] == '_' ? '-' : s->name[i];
    out[i] = '\0';
    return out;
}

const char *setting_variable(const struct setting *s, char out[SETTING_LABEL_BYTES])
{
    static const char prefix[] = "GPUREST_";
    size_t            n = sizeof prefix - 1;

    memcpy(out, prefix, n);
    for (size_t i = 0; s->name[i] && n + 1 < SETTING_LABEL_BYTES; i++)
        out[n++] = (char)toupper((unsigned char)s->name[i]);
    out[n] = '\0';
    return out;
}

/* The name in the layer's notation. */
static const char *setting_label(const struct setting *s, const struct config_layer *layer, char out[SETTING_LABEL_BYTES])
{
    char flag[SETTING_NAME_BYTES];

    if (layer->kind == LAYER_FILE)
        return s->name;
    if (layer->kind == LAYER_ENVIRONMENT)
        return setting_variable(s, out);
    snprintf(out, SETTING_LABEL_BYTES, "--%s", setting_flag(s, flag));
    return out;
}

const struct setting *setting_find(struct span name, bool loose)
{
    char flag[SETTING_NAME_BYTES], given[SETTING_NAME_BYTES];

    if (!span_copy(name, given, sizeof given))
        return NULL;
    for (size_t i = 0; loose && given[i]; i++)
        if (given[i] == '_')
            given[i] = '-';
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        if (strcmp(given, setting_flag(&settings[i], flag)) == 0)
            return &settings[i];
    return NULL;
}

/* ---- one value ---- */

static void list_clear(struct config_list *l)
{
    for (unsigned i = 0; i < l->count; i++)
        free(l->items[i]);
    *l = (struct config_list){0};
}

static bool take_text(char **to, struct span value)
{
    char *copy = strndup(value.bytes ? value.data : "", value.bytes);

    if (!copy)
        return config_complain(NULL, "out of memory");
    free(*to);
    *to = copy;
    return true;
}

static bool take_item(struct config_list *to, struct span value, const char *name, const struct config_layer *layer)
{
    if (value.bytes == 0)
        return config_complain(layer, "%s: the value is empty", name);
    if (to->count == CONFIG_LIST_ITEMS_MAX)
        return config_complain(layer, "%s: too many values", name);
    if (!take_text(&to->items[to->count], value))
        return false;
    to->count++;
    return true;
}

static bool take_number(uint64_t *to, struct span value, const struct setting *s, const char *name, const struct config_layer *layer)
{
    uint64_t n;

    if (!span_u64(value, &n) || n < s->least || n > s->most)
        return config_complain(layer, "%s: must be a number from %" PRIu64 " to %" PRIu64, name, s->least, s->most);
    *to = n;
    return true;
}

static bool take_switch(bool *to, struct span value, const char *name, const struct config_layer *layer)
{
    bool on = span_is(value, "1") || span_is(value, "true");

    if (!on && !span_is(value, "0") && !span_is(value, "false"))
        return config_complain(layer, "%s: must be 1 or 0, got \"%.*s\"", name, SPAN_ARG(value));
    *to = on;
    return true;
}

static bool take_choice(char **to, struct span value, const struct setting *s, const char *name, const struct config_layer *layer)
{
    struct span rest = span_of(s->choices);

    while (rest.bytes)
        if (span_equal(span_cut(&rest, '|'), value))
            return take_text(to, value);
    return config_complain(layer, "%s: must be one of %s, got \"%.*s\"", name, s->choices, SPAN_ARG(value));
}

bool config_take(struct config *c, const struct setting *s, struct span value, struct config_layer *layer)
{
    char        out[SETTING_LABEL_BYTES];
    const char *name = setting_label(s, layer, out);
    void       *to = setting_member(c, s);
    bool        first = !layer->seen[s - settings];

    layer->seen[s - settings] = true;
    if (value.bytes && memchr(value.data, '\n', value.bytes))
        return config_complain(layer, "%s: the value has more than one line", name);
    if (s->kind == KIND_LIST && first)
        list_clear(to);
    switch (s->kind) {
    case KIND_LIST:
        return take_item(to, value, name, layer);
    case KIND_TEXT:
        return take_text(to, value);
    case KIND_SWITCH:
        return take_switch(to, value, name, layer);
    case KIND_NUMBER:
        return take_number(to, value, s, name, layer);
    case KIND_CHOICE:
        return take_choice(to, value, s, name, layer);
    }
    return false;
}

/* ---- layers ---- */

static bool take_presets(struct config *c)
{
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        if (settings[i].preset && !take_text(setting_member(c, &settings[i]), span_of(settings[i].preset)))
            return false;
        if (settings[i].kind == KIND_NUMBER)
            *(uint64_t *)setting_member(c, &settings[i]) = settings[i].number;
    }
    return true;
}

static bool take_variable(struct config *c, const struct setting *s, struct span rest, struct config_layer *layer)
{
    if (s->kind != KIND_LIST)
        return config_take(c, s, rest, layer);
    while (rest.bytes)
        if (!config_take(c, s, span_trim(span_cut(&rest, ',')), layer))
            return false;
    return true;
}

/* An empty variable counts as unset, because container tools clear a variable this way. */
static bool take_environment(struct config *c)
{
    struct config_layer layer = {.kind = LAYER_ENVIRONMENT};
    char                name[SETTING_LABEL_BYTES];

    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        struct span value = span_of(getenv(setting_variable(&settings[i], name)));

        if (value.bytes && !take_variable(c, &settings[i], value, &layer))
            return false;
    }
    return true;
}

static bool take_flag(struct config *c, int argc, char *const argv[], int *i, struct config_layer *layer)
{
    struct span           rest = span_from(span_of(argv[*i]), 2);
    bool                  joined = memchr(rest.data, '=', rest.bytes) != NULL;
    struct span           name = span_cut(&rest, '=');
    const struct setting *s = setting_find(name, false);
    const char           *value = joined ? rest.data : NULL;

    if (!s)
        return config_complain(layer, "unknown option %s", argv[*i]);
    if (s->kind == KIND_SWITCH && !value)
        value = "1";
    if (!value && *i + 1 >= argc)
        return config_complain(layer, "%s needs a value", argv[*i]);
    if (!value)
        value = argv[++*i];
    return config_take(c, s, span_of(value), layer);
}

static bool take_flags(struct config *c, int argc, char *const argv[], bool *only_check)
{
    struct config_layer layer = {.kind = LAYER_FLAGS};

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            return config_complain(&layer, "unexpected argument \"%s\"", argv[i]);
        if (strcmp(argv[i], "--check-config") == 0)
            *only_check = true;
        else if (!take_flag(c, argc, argv, &i, &layer))
            return false;
    }
    return true;
}

/* Environment and flags override the file (NULL = none), and only they can name it. */
static bool take_layers(struct config *c, const char *file, int argc, char *const argv[], bool *only_check)
{
    return take_presets(c) && (!file || config_file_take(c, file)) && take_environment(c) && take_flags(c, argc, argv, only_check);
}

static bool take_all(struct config *c, int argc, char *const argv[], bool *only_check)
{
    char *file;
    bool  ok;

    if (!take_layers(c, NULL, argc, argv, only_check))
        return false;
    if (!c->config[0])
        return true;
    file = c->config;
    c->config = NULL;
    config_finish(c);
    ok = take_layers(c, file, argc, argv, only_check);
    free(file);
    return ok;
}

/* The file that environment and flags name, to be read on SIGHUP. */
static void name_file(struct config *c, int argc, char *const argv[])
{
    struct config named = {0};
    bool          only_check;

    if (take_layers(&named, NULL, argc, argv, &only_check)) {
        free(c->config);
        c->config = named.config;
        named.config = NULL;
    }
    config_finish(&named);
}

/* An upgrade is undone: what there is to read now is for the executable that could not serve. */
static bool take_former(struct config *c, const char *variable, int argc, char *const argv[])
{
    uint64_t fd;
    char     path[40];
    bool     ok = span_u64(span_of(variable), &fd) && fd > STDERR_FILENO && fd <= INT32_MAX;

    if (!ok)
        return config_complain(NULL, CONFIG_FORMER " is for the service alone; unset it");
    snprintf(path, sizeof path, "/proc/self/fd/%d", (int)fd);
    ok = take_presets(c) && config_file_take(c, path);
    close((int)fd);
    unsetenv(CONFIG_FORMER);
    if (ok)
        name_file(c, argc, argv);
    return ok;
}

static bool answered_at_once(int argc, char *const argv[])
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            config_print_help();
            return true;
        }
        if (strcmp(argv[i], "--man") == 0) {
            config_print_manual();
            return true;
        }
        if (strcmp(argv[i], "--version") == 0) {
            puts("gpurestd " GPUREST_VERSION);
            return true;
        }
    }
    return false;
}

bool config_parse(int argc, char *const argv[], struct config *out, int *exit_code)
{
    const char *former = getenv(CONFIG_FORMER);
    bool        only_check = false;

    *out = (struct config){0};
    *exit_code = 0;
    if (answered_at_once(argc, argv))
        return false;
    if (!(former ? take_former(out, former, argc, argv) : take_all(out, argc, argv, &only_check))) {
        *exit_code = 2;
        config_finish(out);
        return false;
    }
    config_environment_check();
    out->only_check = only_check;
    if (only_check)
        config_print_settings(out, stdout);
    return true;
}

bool config_reread(int argc, char *const argv[], struct config *out)
{
    bool only_check;

    *out = (struct config){0};
    if (take_all(out, argc, argv, &only_check))
        return true;
    config_finish(out);
    return false;
}

void config_finish(struct config *c)
{
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        if (settings[i].kind == KIND_LIST)
            list_clear(setting_member(c, &settings[i]));
        if (settings[i].kind == KIND_TEXT || settings[i].kind == KIND_CHOICE)
            free(*(char **)setting_member(c, &settings[i]));
    }
    *c = (struct config){0};
}
