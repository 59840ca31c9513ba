/* The table of commands. */
#include "commands/commands.h"

#include <string.h>

const struct command commands[] = {
#define COMMAND(name, function, arguments, summary) {name, function, arguments, summary},
#include "commands/commands.def"
#undef COMMAND
};
const size_t commands_count = COUNT(commands);

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < commands_count; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}
