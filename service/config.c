/* Reads the settings of config.def from the command line and the environment. */
#include "config.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "base/version.h"

enum kind { KIND_LIST, KIND_TEXT, KIND_SWITCH, KIND_NUMBER };

struct setting {
    const char *name; /* with '_' */
    enum kind   kind;
    size_t      offset;
    const char *preset;              /* TEXT */
    uint64_t    number, least, most; /* NUMBER */
    const char *help;
};

static const struct setting settings[] = {
#define SETTING_LIST(name, help) {#name, KIND_LIST, offsetof(struct config, name), NULL, 0, 0, 0, help},
#define SETTING_TEXT(name, preset, help) {#name, KIND_TEXT, offsetof(struct config, name), preset, 0, 0, 0, help},
#define SETTING_SWITCH(name, help) {#name, KIND_SWITCH, offsetof(struct config, name), NULL, 0, 0, 0, help},
#define SETTING_NUMBER(name, preset, least, most, help)                                                                                    \
    {#name, KIND_NUMBER, offsetof(struct config, name), NULL, preset, least, most, help},
#include "config.def"
#undef SETTING_LIST
#undef SETTING_TEXT
#undef SETTING_SWITCH
#undef SETTING_NUMBER
};

static void *member(struct config *c, const struct setting *s)
{
    return (char *)c + s->offset;
}

static bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool complain(const char *format, ...)
{
    va_list args;

    fputs("gpurestd: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("; see --help\n", stderr);
    return false;
}

/* "drain_timeout" as "drain-timeout", for people. */
static const char *flag_name(const struct setting *s, char *out, size_t room)
{
    size_t i = 0;

    for (; s->name[i] && i + 1 < room; i++)
        out[i] = s->name[i] == '_' ? '-' : s->name[i];
    out[i] = '\0';
    return out;
}

static bool take_text(char **to, const char *value)
{
    char *copy = strdup(value);

    if (!copy)
        return complain("out of memory");
    free(*to);
    *to = copy;
    return true;
}

static bool take_item(struct config_list *to, const char *name, struct span value)
{
    char *copy;

    if (value.bytes == 0)
        return complain("--%s: an empty value", name);
    if (to->count == CONFIG_LIST_ITEMS_MAX)
        return complain("--%s: too many values", name);
    copy = strndup(value.data, value.bytes);
    if (!copy)
        return complain("out of memory");
    to->items[to->count++] = copy;
    return true;
}

static bool take_number(uint64_t *to, const struct setting *s, const char *name, const char *value)
{
    char     range[96];
    uint64_t n;

    snprintf(range, sizeof range, "a number from %" PRIu64 " to %" PRIu64, s->least, s->most);
    if (!span_u64(span_of(value), &n) || n < s->least || n > s->most)
        return complain("--%s: must be %s", name, range);
    *to = n;
    return true;
}

static bool take_switch(bool *to, const char *name, const char *value)
{
    if (strcmp(value, "1") == 0 || strcmp(value, "true") == 0)
        *to = true;
    else if (strcmp(value, "0") == 0 || strcmp(value, "false") == 0)
        *to = false;
    else
        return complain("--%s: must be 1 or 0, got \"%s\"", name, value);
    return true;
}

static bool take(struct config *c, const struct setting *s, const char *value)
{
    char        name[64];
    const char *flag = flag_name(s, name, sizeof name);

    switch (s->kind) {
    case KIND_LIST:
        return take_item(member(c, s), flag, span_of(value));
    case KIND_TEXT:
        return take_text(member(c, s), value);
    case KIND_SWITCH:
        return take_switch(member(c, s), flag, value);
    case KIND_NUMBER:
        return take_number(member(c, s), s, flag, value);
    }
    return false;
}

static bool take_presets(struct config *c)
{
    for (size_t i = 0; i < COUNT(settings); i++) {
        if (settings[i].kind == KIND_TEXT && !take_text(member(c, &settings[i]), settings[i].preset))
            return false;
        if (settings[i].kind == KIND_NUMBER)
            *(uint64_t *)member(c, &settings[i]) = settings[i].number;
    }
    return true;
}

static const char *from_environment(const struct setting *s)
{
    char   name[80] = "GPUREST_";
    size_t n = strlen(name);

    for (size_t i = 0; s->name[i] && n + 1 < sizeof name; i++)
        name[n++] = (char)toupper((unsigned char)s->name[i]);
    name[n] = '\0';
    return getenv(name);
}

/* An empty variable counts as unset: that is how container tools clear one. */
static bool take_environment(struct config *c)
{
    for (size_t i = 0; i < COUNT(settings); i++) {
        const char *value = from_environment(&settings[i]);
        struct span rest = span_of(value);
        char        name[64];

        if (rest.bytes == 0)
            continue;
        if (settings[i].kind != KIND_LIST && !take(c, &settings[i], value))
            return false;
        while (settings[i].kind == KIND_LIST && rest.bytes) {
            struct span item = span_trim(span_cut(&rest, ','));
            if (!take_item(member(c, &settings[i]), flag_name(&settings[i], name, sizeof name), item))
                return false;
        }
    }
    return true;
}

static const struct setting *find(struct span flag)
{
    char name[64];

    for (size_t i = 0; i < COUNT(settings); i++)
        if (span_is(flag, flag_name(&settings[i], name, sizeof name)))
            return &settings[i];
    return NULL;
}

static void list_clear(struct config_list *l)
{
    for (unsigned i = 0; i < l->count; i++)
        free(l->items[i]);
    *l = (struct config_list){0};
}

/* The first flag of a list setting replaces what the environment gave; seen[] remembers that. */
static bool take_flag(struct config *c, int argc, char *const argv[], int *i, bool *seen)
{
    struct span           rest = span_from(span_of(argv[*i]), 2);
    bool                  joined = memchr(rest.data, '=', rest.bytes) != NULL;
    struct span           name = span_cut(&rest, '=');
    const struct setting *s = find(name);
    const char           *value = joined ? rest.data : NULL;

    if (!s)
        return complain("unknown option %s", argv[*i]);
    if (s->kind == KIND_SWITCH && !value)
        value = "1";
    if (!value && *i + 1 >= argc)
        return complain("%s needs a value", argv[*i]);
    if (!value)
        value = argv[++*i];
    if (s->kind == KIND_LIST && !seen[s - settings])
        list_clear(member(c, s));
    seen[s - settings] = true;
    return take(c, s, value);
}

static bool take_flags(struct config *c, int argc, char *const argv[])
{
    bool seen[COUNT(settings)] = {false};

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            return complain("unexpected argument \"%s\"", argv[i]);
        if (!take_flag(c, argc, argv, &i, seen))
            return false;
    }
    return true;
}

static bool check(const struct config *c)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};

    for (size_t i = 0; i < COUNT(levels); i++)
        if (strcmp(c->log_level, levels[i]) == 0)
            return true;
    return complain("--log-level: must be error, warn, info or debug, got \"%s\"", c->log_level);
}

static void print_help(void)
{
    char name[64];

    puts("gpurestd - GPU compute over plain HTTP\n\nUsage: gpurestd [--OPTION VALUE | --OPTION=VALUE | --SWITCH]...\n\n"
         "Every option may also come from the environment: --drain-timeout is GPUREST_DRAIN_TIMEOUT.\n");
    for (size_t i = 0; i < COUNT(settings); i++) {
        const struct setting    *s = &settings[i];
        static const char *const values[] = {" VALUE (repeatable)", " VALUE", "", " N"};

        printf("  --%s%s\n        %s", flag_name(s, name, sizeof name), values[s->kind], s->help);
        if (s->kind == KIND_NUMBER)
            printf(" (default %" PRIu64 ", %" PRIu64 " to %" PRIu64 ")", s->number, s->least, s->most);
        if (s->kind == KIND_TEXT && s->preset[0])
            printf(" (default %s)", s->preset);
        putchar('\n');
    }
    puts("  --help\n  --version");
}

static bool answered(int argc, char *const argv[])
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            print_help();
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
    *out = (struct config){0};
    *exit_code = 0;
    if (answered(argc, argv))
        return false;
    if (take_presets(out) && take_environment(out) && take_flags(out, argc, argv) && check(out))
        return true;
    config_finish(out);
    *exit_code = 2;
    return false;
}

void config_finish(struct config *c)
{
    for (size_t i = 0; i < COUNT(settings); i++) {
        if (settings[i].kind == KIND_LIST)
            list_clear(member(c, &settings[i]));
        if (settings[i].kind == KIND_TEXT)
            free(*(char **)member(c, &settings[i]));
    }
    *c = (struct config){0};
}
