/* Help, manual page and completion, generated from commands.def. */
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"

static const struct {
    const char *option, *meaning;
} globals[] = {
    {"--url URL", "service address: http://HOST:PORT, https://HOST:PORT or unix:///PATH; default $GPUREST_URL, else http://127.0.0.1:8080"},
    {"--token-file FILE", "file whose first line is the token; default $GPUREST_TOKEN, $GPUREST_TOKEN_FILE, or the token stored by login"},
    {"--session NAME", "session to use; default $GPUREST_SESSION, else the one opened by connect"},
    {"--output, -o FORM", "output format: table, wide, json, jsonl, csv or name; --json is short for json"},
    {"--fields A,B", "only these members, by their JSON names"},
    {"--no-header", "omit the header line of tables"},
    {"--timeout-s N", "seconds without data in either direction before giving up; default 60"},
    {"--yes", "do not ask for confirmation"},
    {"--no-color", "no colours, like the variable NO_COLOR"},
    {"-q, --quiet", "print only errors on standard error"},
    {"-v, --verbose", "print details of errors"},
    {"--log-level LEVEL", "log on standard error: off, warn, info or debug, or by category (cli, transport, session): warn,transport=debug; default $GPUREST_LOG"},
};
static const char *const codes[] = {
    "0  success",         "1  failure",     "2  usage", "3  unreachable or timed out", "4  not authorised",   "5  not found",
    "6  kernel or device fault", "7  compile error", "8  busy or out of memory",    "9  degraded (status, diag)", "10 regression (bench --compare)", "130 interrupted",
};

/* Explanations of words in the commands' arguments. */
static const struct {
    const char *word, *meaning;
} words[] = {
    {"DTYPE[SHAPE]", "DTYPE: " ARRAY_TYPES "; SHAPE: lengths such as 32,32"},
    {"TYPE:VALUE", "TYPE: i8, i16, i32, i64, u8, u16, u32, u64, f32 or f64"},
};

static enum exit_code help_one(const struct cli *c, const char *name)
{
    const struct command *k = command_find(name);

    if (!k)
        return cli_usage(c, "unknown command %s", name);
    printf("gpurest %s %s\n\n  %s\n", k->name, k->arguments, k->summary);
    for (size_t i = 0; i < COUNT(words); i++)
        if (strstr(k->arguments, words[i].word))
            printf("  %s\n", words[i].meaning);
    return CODE_OK;
}

static void help_all(void)
{
    printf("gpurest [OPTION]... COMMAND [ARGUMENT]...\n\nCommands:\n");
    for (size_t i = 0; i < commands_count; i++)
        printf("  %-11s %s\n", commands[i].name, commands[i].summary);
    printf("\nAliases:\n ");
    for (size_t i = 0; i < aliases_count; i++)
        printf(" %s = %s%s", aliases[i].alias, aliases[i].name, i + 1 < aliases_count ? "," : "\n");
    printf("\nOptions, anywhere:\n");
    for (size_t i = 0; i < COUNT(globals); i++)
        printf("  %-18s %s\n", globals[i].option, globals[i].meaning);
    printf("\nExit codes:\n");
    for (size_t i = 0; i < COUNT(codes); i++)
        printf("  %s\n", codes[i]);
}

/* An unescaped dash is a hyphen in troff. */
static void print_roff(const char *text)
{
    for (; *text; text++)
        printf(*text == '-' || *text == '\\' ? "\\%c" : "%c", *text);
}

static void print_manual_entry(const char *head, const char *more, const char *text)
{
    printf(".TP\n.B ");
    print_roff(head);
    if (more[0])
        putchar(' ');
    print_roff(more);
    putchar('\n');
    print_roff(text);
    putchar('\n');
}

static void print_manual(void)
{
    printf(".TH GPUREST 1 \"\" \"gpurest %s\"\n.SH NAME\ngpurest \\- GPU compute over HTTP, from the command line\n"
           ".SH SYNOPSIS\n.B gpurest\n[OPTION]... COMMAND [ARGUMENT]...\n.SH COMMANDS\n",
           gpurest_version());
    for (size_t i = 0; i < commands_count; i++)
        print_manual_entry(commands[i].name, commands[i].arguments, commands[i].summary);
    for (size_t i = 0; i < COUNT(words); i++)
        print_manual_entry(words[i].word, "", words[i].meaning);
    printf(".SH ALIASES\n");
    for (size_t i = 0; i < aliases_count; i++)
        print_manual_entry(aliases[i].alias, "", aliases[i].name);
    printf(".SH OPTIONS\n");
    for (size_t i = 0; i < COUNT(globals); i++)
        print_manual_entry(globals[i].option, "", globals[i].meaning);
    printf(".SH EXIT STATUS\n.nf\n");
    for (size_t i = 0; i < COUNT(codes); i++) {
        print_roff(codes[i]);
        putchar('\n');
    }
    printf(".fi\n");
}

enum exit_code run_help(struct cli *c)
{
    if (take_flag(c, "--man")) {
        print_manual();
        return CODE_OK;
    }
    if (c->argc > 0 && c->argv[0][0] != '-')
        return help_one(c, c->argv[0]);
    help_all();
    return CODE_OK;
}

/* ---- completion ---- */

static void print_names(const char *between)
{
    for (size_t i = 0; i < commands_count; i++)
        printf("%s%s", i ? between : "", commands[i].name);
}

static void print_options(const char *between)
{
    for (size_t i = 0; i < COUNT(globals); i++) {
        const char *at = strstr(globals[i].option, "--");
        printf("%s%.*s", i ? between : "", (int)strcspn(at, " "), at);
    }
}

static void complete_bash(void)
{
    printf("_gpurest() {\n    local cur=${COMP_WORDS[COMP_CWORD]}\n    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W '");
    print_names(" ");
    printf("' -- \"$cur\"))\n    elif [ \"${cur#-}\" != \"$cur\" ]; then\n        COMPREPLY=($(compgen -W '");
    print_options(" ");
    printf("' -- \"$cur\"))\n    fi\n}\ncomplete -o default -F _gpurest gpurest\n");
}

static void complete_zsh(void)
{
    printf("#compdef gpurest\n_arguments '1:command:(");
    print_names(" ");
    printf(")' '*:file:_files'\n");
}

static void complete_fish(void)
{
    for (size_t i = 0; i < commands_count; i++)
        printf("complete -c gpurest -n __fish_use_subcommand -a %s -d '%s'\n", commands[i].name, strchr(commands[i].summary, '\'') ? "" : commands[i].summary);
}

enum exit_code run_completion(struct cli *c)
{
    if (!take_rest(c, 1, 1))
        return CODE_USAGE;
    if (strcmp(c->argv[0], "bash") == 0)
        complete_bash();
    else if (strcmp(c->argv[0], "zsh") == 0)
        complete_zsh();
    else if (strcmp(c->argv[0], "fish") == 0)
        complete_fish();
    else
        return cli_usage(c, "expected bash, zsh or fish");
    return CODE_OK;
}
