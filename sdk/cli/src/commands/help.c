/* Help and manual page, generated from commands.def. */
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"

static const struct {
    const char *option, *meaning;
} globals[] = {
#define OPTION(option, meaning) {option, meaning},
#include "commands/options.def"
#undef OPTION
};
static const char *const codes[] = {
    "0  success",
    "1  failure",
    "2  usage",
    "3  unreachable or timed out",
    "4  not authorised",
    "5  not found",
    "6  kernel or device fault",
    "7  compile error",
    "8  busy or out of memory",
    "9  degraded (status, diag)",
    "10 regression (bench --compare)",
    "130 interrupted",
};

/* Explanations of words in the commands' arguments. */
static const struct {
    const char *word, *meaning;
} words[] = {
    {"DTYPE[SHAPE]", "DTYPE: " ARRAY_TYPES "; SHAPE: lengths such as 32,32"},
    {"TYPE:VALUE", "TYPE: i8, i16, i32, i64, u8, u16, u32, u64, f32 or f64"},
    {"--dtype TYPE",
     "TYPE of a built-in kernel's elements: f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 or bool, as far as the "
     "kernel has it (gpurest builtins get NAME)"},
};

static const struct {
    const char *command, *line, *meaning;
} examples[] = {
#define EXAMPLE(command, line, meaning) {command, line, meaning},
#include "commands/examples.def"
#undef EXAMPLE
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
    for (size_t i = 0, shown = 0; i < COUNT(examples); i++)
        if (strcmp(examples[i].command, k->name) == 0)
            printf("%s  gpurest %s %s\n      %s\n", shown++ ? "" : "\nExamples:\n", k->name, examples[i].line, examples[i].meaning);
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
    printf(".SH EXAMPLES\n");
    for (size_t i = 0; i < COUNT(examples); i++) {
        char line[512];

        snprintf(line, sizeof line, "gpurest %s %s", examples[i].command, examples[i].line);
        print_manual_entry(line, "", examples[i].meaning);
    }
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
