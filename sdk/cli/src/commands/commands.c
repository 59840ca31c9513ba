/* The table of commands. */
#include "commands/commands.h"

#include <string.h>

enum { WORD_MAX = 16, SLIPS_MAX = 2 }; /* more slips make another word */

const struct command commands[] = {
#define COMMAND(name, function, arguments, summary) {name, function, arguments, summary},
#include "commands/commands.def"
#undef COMMAND
};
const size_t commands_count = COUNT(commands);

const struct command_alias aliases[] = {
#define ALIAS(alias, name) {alias, name},
#include "commands/aliases.def"
#undef ALIAS
};
const size_t aliases_count = COUNT(aliases);

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < aliases_count; i++)
        if (strcmp(aliases[i].alias, name) == 0)
            name = aliases[i].name;
    for (size_t i = 0; i < commands_count; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* Insertions, deletions, replacements and swaps of neighbours that make b of a (optimal string alignment). Both are short. */
static size_t distance(const char *a, const char *b)
{
    size_t d[WORD_MAX + 1][WORD_MAX + 1], m = strlen(a), n = strlen(b);

    if (m > WORD_MAX || n > WORD_MAX)
        return SIZE_MAX;
    for (size_t i = 0; i <= m; i++)
        for (size_t j = 0; j <= n; j++) {
            size_t least = i && j ? d[i - 1][j - 1] + (a[i - 1] != b[j - 1]) : i + j;

            if (i && d[i - 1][j] + 1 < least)
                least = d[i - 1][j] + 1;
            if (j && d[i][j - 1] + 1 < least)
                least = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < least)
                least = d[i - 2][j - 2] + 1;
            d[i][j] = least;
        }
    return d[m][n];
}

const struct command *command_nearest(const char *name)
{
    const struct command *nearest = NULL;
    size_t                least = SLIPS_MAX + 1;

    for (size_t i = 0; i < commands_count; i++) {
        size_t slips = distance(name, commands[i].name);

        if (slips < least && slips < strlen(commands[i].name)) {
            least = slips;
            nearest = &commands[i];
        }
    }
    return nearest;
}
