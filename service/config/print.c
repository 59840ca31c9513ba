/* Prints the help, the manual page and the effective settings, all from config.def. */
#include <inttypes.h>
#include <stdio.h>

#include "base/version.h"
#include "config/table.h"

/* The placeholder after the flag's name. */
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
    {"--check-config", "Print the effective settings as a configuration file, check the addresses, files and folders that they name, and "
                       "exit"},
    {"--man", "Print this program's manual page and exit"},
    {"--help", "Print a summary and exit"},
    {"--version", "Print the version and exit"},
};

void config_print_help(void)
{
    char name[SETTING_NAME_BYTES], words[128];

    puts("gpurestd - GPU compute over plain HTTP\n\nUsage: gpurestd [--OPTION VALUE | --OPTION=VALUE | --SWITCH]...\n\n"
         "The environment (GPUREST_DRAIN_TIMEOUT for --drain-timeout) and a configuration file (drain_timeout = 30)\n"
         "can also set an option. A flag overrides the environment, which overrides the file.\n");
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        const struct setting *s = &settings[i];

        printf("  --%s%s\n        %s%s\n", setting_flag(s, name), value_word(s), s->help, default_words(s, words, sizeof words));
    }
    for (size_t i = 0; i < COUNT(actions); i++)
        printf("  %s\n        %s\n", actions[i].flag, actions[i].help);
}

/* ---- manual page ---- */

/* In troff a dash is a hyphen and a backslash an escape; a line that begins with '.' or a quote is a request. */
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

    puts(".SH ENVIRONMENT\nAn empty variable counts as unset. Commas separate the values of a list. A switch is 1 or 0.");
    for (size_t i = 0; i < SETTINGS_COUNT; i++)
        printf("%s\n.B %s\n", i ? ".br" : ".P", setting_variable(&settings[i], name));
}

void config_print_manual(void)
{
    printf(".TH GPURESTD 8 \"\" \"gpurest %s\"\n", GPUREST_VERSION);
    puts(
        ".SH NAME\ngpurestd \\- GPU compute over plain HTTP\n"
        ".SH SYNOPSIS\n.B gpurestd\n[\\-\\-OPTION VALUE | \\-\\-OPTION=VALUE | \\-\\-SWITCH]...\n"
        ".SH DESCRIPTION\nServes buffers, kernel compilation and kernel launches on this machine's GPUs, or on the cpu device, over HTTP.\n"
        "Each session has its own process and device context.");
    manual_options();
    puts(".SH CONFIGURATION FILE\nThe file of\n.B \\-\\-config\nhas lines of the form\n.IR \"name = value\" .\n"
         "Names are those of the options, with \\- or _. A switch is 1 or 0. A repeatable option has one line per value.\n"
         "A line that begins with # is a comment; elsewhere # is an ordinary character.\n"
         "A flag overrides the environment, which overrides the file. A list replaces the whole list of a lower layer.\n"
         "An unknown name, an invalid value or a name set twice is an error, reported with file and line.");
    manual_environment();
    puts(".SH SIGNALS\n.TP\n.B SIGTERM, SIGINT\nStop. Accept no new sessions; existing sessions may continue for \\-\\-drain\\-timeout "
         "seconds. A "
         "second signal stops at once.\n"
         ".TP\n.B SIGHUP\nReload the token file, read visible_devices of the configuration file again, and count the devices again.\nOther "
         "settings are read at the start only.\n"
         ".TP\n.B SIGUSR2\nWith \\-\\-state, let the executable that is there now take the place of the process, with its sockets and "
         "sessions.\n"
         ".SH EXIT STATUS\n.TP\n.B 0\nStopped by a signal or by request, or the information was printed.\n.TP\n.B 1\nThe service could not "
         "start; the log "
         "says why.\n.TP\n.B 2\nA setting is invalid.\n"
         ".SH SEE ALSO\n.BR gpurest (1)");
}

/* ---- effective settings ---- */

static void print_list(const struct setting *s, const struct config_list *l, FILE *to)
{
    if (l->count == 0)
        fprintf(to, "# %s is not set\n", s->name);
    for (unsigned i = 0; i < l->count; i++)
        fprintf(to, "%s = %s\n", s->name, l->items[i]);
}

static void print_setting(const struct config *c, const struct setting *s, FILE *to)
{
    const void *at = setting_member((struct config *)(uintptr_t)c, s);

    switch (s->kind) {
    case KIND_LIST:
        print_list(s, at, to);
        break;
    case KIND_TEXT:
    case KIND_CHOICE:
        fprintf(to, "%s = %s\n", s->name, *(char *const *)at);
        break;
    case KIND_SWITCH:
        fprintf(to, "%s = %d\n", s->name, *(const bool *)at);
        break;
    case KIND_NUMBER:
        fprintf(to, "%s = %" PRIu64 "\n", s->name, *(const uint64_t *)at);
        break;
    }
}

void config_print_settings(const struct config *c, FILE *to)
{
    for (size_t i = 0; i < SETTINGS_COUNT; i++) {
        if (i != SETTING_config)
            print_setting(c, &settings[i], to);
        else if (c->config[0])
            fprintf(to, "# from %s, the environment and the flags\n", c->config);
    }
}
