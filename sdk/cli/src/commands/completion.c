/* completion: scripts for shells, generated from commands.def and options.def. Options of a command are the words of its arguments that begin
 * with a dash; its lower-case words are verbs and names of settings. */
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"

static const char *const globals[] = {
#define OPTION(option, meaning) option,
#include "commands/options.def"
#undef OPTION
};

/* The next word of a synopsis from *at on, without brackets and marks: "--level" of "[--level 1..4]". False: none is left. */
static bool next_word(const char **at, const char **word, size_t *length)
{
    static const char between[] = " []{}|,=";

    *word = *at + strspn(*at, between);
    *length = strcspn(*word, between);
    *at = *word + *length;
    return *length > 0;
}

static bool is_option(const char *word, size_t length)
{
    return word[0] == '-' && length > 1 && strncmp(word, "--", length) != 0;
}

static bool is_verb(const char *word, size_t length)
{
    return word[0] >= 'a' && word[0] <= 'z' && strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789") >= length;
}

/* What is offered of a synopsis, each word after a blank. */
static void print_words(const char *synopsis, bool (*offered)(const char *word, size_t length))
{
    const char *word;
    size_t      length;

    while (next_word(&synopsis, &word, &length))
        if (offered(word, length))
            printf(" %.*s", (int)length, word);
}

static void print_globals(void)
{
    for (size_t i = 0; i < COUNT(globals); i++)
        print_words(globals[i], is_option);
}

/* The globals that a value follows, in the pattern of a `case`: "--url|--output|-o". */
static void print_globals_with_value(void)
{
    const char *between = "";

    for (size_t i = 0; i < COUNT(globals); i++) {
        const char *at = globals[i], *word;
        size_t      length;
        bool        value = false;

        while (next_word(&at, &word, &length))
            value = value || !is_option(word, length);
        at = globals[i];
        while (value && next_word(&at, &word, &length))
            if (is_option(word, length)) {
                printf("%s%.*s", between, (int)length, word);
                between = "|";
            }
    }
}

static void print_names(void)
{
    for (size_t i = 0; i < commands_count; i++)
        printf("%s%s", i ? " " : "", commands[i].name);
}

/* A command with its aliases, in the pattern of a `case`: "status|s". */
static void print_pattern(const struct command *k)
{
    printf("%s", k->name);
    for (size_t i = 0; i < aliases_count; i++)
        if (strcmp(aliases[i].name, k->name) == 0)
            printf("|%s", aliases[i].alias);
}

/* Sets `words` and `options` by the command in `command`: bash and zsh alike. */
static void print_cases(const char *open, const char *close)
{
    printf("    case $command in\n");
    for (size_t i = 0; i < commands_count; i++) {
        printf("        ");
        print_pattern(&commands[i]);
        printf(") words=%s", open);
        print_words(commands[i].arguments, is_verb);
        if (strcmp(commands[i].name, "help") == 0)
            putchar(' '), print_names();
        printf("%s options=%s", close, open);
        print_words(commands[i].arguments, is_option);
        printf("%s ;;\n", close);
    }
    printf("    esac\n");
}

/* Files are offered where nothing else fits. */
static void complete_bash(void)
{
    printf("_gpurest() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= skip= words= options= word\n"
           "    case $prev in --output|-o) words='table wide json jsonl csv name' ;; esac\n"
           "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
           "        if [ -n \"$skip\" ]; then skip=; continue; fi\n"
           "        case $word in ");
    print_globals_with_value();
    printf(") skip=1 ;; -*) ;; *) command=$word; break ;; esac\n"
           "    done\n"
           "    if [ -n \"$words\" ] && [ \"$command\" != compile ]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "        return\n"
           "    fi\n"
           "    words='");
    print_names();
    printf("'\n");
    print_cases("'", "'");
    printf("    case $cur in -*) words=\"$options ");
    print_globals();
    printf("\" ;; esac\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "}\n"
           "complete -o default -F _gpurest gpurest\n");
}

static void complete_zsh(void)
{
    printf("#compdef gpurest\n"
           "local command=$words[2]\n"
           "local -a words options\n"
           "if (( CURRENT == 2 )); then\n"
           "    compadd -- ");
    print_names();
    printf("\nelse\n");
    print_cases("(", ")");
    printf("    compadd -- $words\n"
           "    [[ $PREFIX == -* ]] && compadd -- $options ");
    print_globals();
    printf("\n    _files\nfi\n");
}

/* -l for "--name", -s for "-n", -o for what has one dash and more letters. */
static void print_fish_option(const char *condition, const char *word, size_t length)
{
    bool   wide = word[1] == '-';
    size_t dashes = wide ? 2 : 1;

    printf("complete -c gpurest%s -%c %.*s\n", condition, wide ? 'l' : length == 2 ? 's' : 'o', (int)(length - dashes), word + dashes);
}

static void complete_fish(void)
{
    char        condition[64];
    const char *at, *word;
    size_t      length;

    for (size_t i = 0; i < COUNT(globals); i++)
        for (at = globals[i]; next_word(&at, &word, &length);)
            if (is_option(word, length))
                print_fish_option("", word, length);
    for (size_t i = 0; i < commands_count; i++) {
        const struct command *k = &commands[i];

        printf("complete -c gpurest -n __fish_use_subcommand -a %s -d '%s'\n", k->name, strchr(k->summary, '\'') ? "" : k->summary);
        snprintf(condition, sizeof condition, " -n '__fish_seen_subcommand_from %s'", k->name);
        for (at = k->arguments; next_word(&at, &word, &length);) {
            if (is_option(word, length))
                print_fish_option(condition, word, length);
            else if (is_verb(word, length))
                printf("complete -c gpurest%s -a %.*s\n", condition, (int)length, word);
        }
    }
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
