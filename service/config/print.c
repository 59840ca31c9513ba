/* What gpurestd says of its settings: help, the manual page, and the settings in force; all from config.def. */
#include <inttypes.h>
#include <stdio.h>

#include "base/version.h"
#include "config/table.h"

/* What stands after the flag's name. */
static const char *value_word(const struct setting *s)
{
    switch (s->kind) {
    case KIND_LIST:
        return " VALUE (repeatable)";
    case KIND_TEXT:
        return " VALUE";
    case KIND_SWITCH:
        return "";
    case KIND_NUMBER:
        return " N";
    case KIND_CHOICE:
        return " WORD";
    }
    return "";
}

/* " (default …)", or nothing. */
static const char *default_words(const struct setting *s, char *out, size_t room)
{
    out[0] = '\0';
    if (s->kind == KIND_NUMBER)
        snprintf(out, room, " (default %" PRIu64 ", %" PRIu64 " to %" PRIu64 ")", s->number, s->least, s->most);
    else if (s->kind == KIND_CHOICE)
        snprintf(out, room, " (default %s; %s)", s->preset, s->choices);
    else if (s->kind == KIND_TEXT && s->preset[0])
        snprintf(out, room, " (default %s)", s->preset);
    return out;
}

static const struct {
    const char *flag, *help;
} actions[] = {
    {"--check-config", "Print the settings that the file, the environment and the flags make together, as a configuration file, check the "
                       "addresses, files and folders that they name, and exit"},
    {"--man", "Print this program's manual page and exit"},
    {"--help", "Print a summary and exit"},
    {"--version", "Print the version and exit"},
};

void config_print_help(void)
{
    char name[SETTING_NAME_BYTES], words[128];

    puts("gpurestd - GPU compute over plain HTTP\n\nUsage: gpurestd [--OPTION VALUE | --OPTION=VALUE | --SWITCH]...\n\n"
         "Every option may also come from the environment (--drain-timeout is GPUREST_DRAIN_TIMEOUT) or from a\n"
         "configuration file (drain_timeout = 30). A flag wins over the environment, which wins over the file.\n");
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        const struct setting *s = &settings[i];

        printf("  --%s%s\n        %s%s\n", setting_flag(s, name), value_word(s), s->help, default_words(s, words, sizeof words));
    }
    for (size_t i = 0; i < COUNT(actions); i++)
        printf("  %s\n        %s\n", actions[i].flag, actions[i].help);
}

/* ---- manual page ---- */

/* In troff a dash is a hyphen and a backslash an escape; a line that begins with '.' or a quote would be a request. */
static void print_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void manual_entry(const char *flag, const char *value, const char *text, const char *more)
{
    fputs(".TP\n.B ", stdout);
    print_roff(flag);
    print_roff(value);
    putchar('\n');
    print_roff(text);
    print_roff(more);
    putchar('\n');
}

static void manual_options(void)
{
    char flag[SETTING_NAME_BYTES + 2] = "--", words[128];

    puts(".SH OPTIONS");
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        setting_flag(&settings[i], flag + 2);
        manual_entry(flag, value_word(&settings[i]), settings[i].help, default_words(&settings[i], words, sizeof words));
    }
    for (size_t i = 0; i < COUNT(actions); i++)
        manual_entry(actions[i].flag, "", actions[i].help, "");
}

static void manual_environment(void)
{
    char name[SETTING_LABEL_BYTES];

    puts(".SH ENVIRONMENT\nAn empty variable counts as unset. A list is separated by commas; a switch is 1 or 0.");
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        printf("%s\n.B %s\n", i ? ".br" : ".P", setting_variable(&settings[i], name));
}

void config_print_manual(void)
{
    printf(".TH GPURESTD 8 \"\" \"gpurest %s\"\n", GPUREST_VERSION);
    puts(".SH NAME\ngpurestd \\- GPU compute over plain HTTP\n"
         ".SH SYNOPSIS\n.B gpurestd\n[\\-\\-OPTION VALUE | \\-\\-OPTION=VALUE | \\-\\-SWITCH]...\n"
         ".SH DESCRIPTION\nServes buffers, kernel compilation and launches of this machine's GPUs, or of the cpu device, over HTTP.\n"
         "Every session has a process and a context of its own.");
    manual_options();
    puts(".SH CONFIGURATION FILE\nThe file that\n.B \\-\\-config\nnames has lines of the form\n.IR \"name = value\" .\n"
         "Names are those of the options, with \\- or _; a switch is 1 or 0; an option that may be repeated has a line for each value.\n"
         "Lines that begin with # are comments; elsewhere # is an ordinary character.\n"
         "A flag wins over the environment, the environment over the file; of a list the winner's values are all there are.\n"
         "An unknown name, a bad value or a name set twice is refused with the file's name and the line's number.");
    manual_environment();
    puts(".SH SIGNALS\n.TP\n.B SIGTERM, SIGINT\nStop: no new sessions; those there are may go on for \\-\\-drain\\-timeout seconds. A "
         "second one ends at once.\n"
         ".TP\n.B SIGHUP\nRead the file of tokens again. The configuration file is read at the start only.\n"
         ".SH EXIT STATUS\n.TP\n.B 0\nStopped as asked, or the question was answered.\n.TP\n.B 1\nThe service could not start; the log "
         "says why.\n.TP\n.B 2\nA setting is wrong.\n"
         ".SH SEE ALSO\n.BR gpurest (1)");
}

/* ---- settings in force ---- */

static void print_list(const struct setting *s, const struct config_list *l)
{
    if (l->count == 0)
        printf("# %s is not set\n", s->name);
    for (unsigned i = 0; i < l->count; i++)
        printf("%s = %s\n", s->name, l->items[i]);
}

static void print_setting(struct config *c, const struct setting *s)
{
    const void *at = setting_member(c, s);

    switch (s->kind) {
    case KIND_LIST:
        print_list(s, at);
        break;
    case KIND_TEXT:
    case KIND_CHOICE:
        printf("%s = %s\n", s->name, *(char *const *)at);
        break;
    case KIND_SWITCH:
        printf("%s = %d\n", s->name, *(const bool *)at);
        break;
    case KIND_NUMBER:
        printf("%s = %" PRIu64 "\n", s->name, *(const uint64_t *)at);
        break;
    }
}

void config_print_settings(struct config *c)
{
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        if (i != SETTING_config)
            print_setting(c, &settings[i]);
        else if (c->config[0])
            printf("# from %s, the environment and the flags\n", c->config);
    }
}
