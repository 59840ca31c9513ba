/* The table of commands, their functions and their output schemas. */
#ifndef GPUREST_CLI_COMMANDS_H
#define GPUREST_CLI_COMMANDS_H

#include "base/cli.h"

struct command {
    const char *name;
    enum exit_code (*run)(struct cli *c);
    const char *arguments;
    const char *summary;
};
extern const struct command commands[];
extern const size_t         commands_count;
/* NULL: there is none. */
const struct command *command_find(const char *name);

#define COMMAND(name, function, arguments, summary) enum exit_code function(struct cli *c);
#include "commands/commands.def"
#undef COMMAND

#define LISTING(name) extern const struct listing name##_listing;
#define OBJECT(name, schema)
#include "commands/schemas.def"
#undef LISTING
#undef OBJECT

/* Writes the service's state and diag's results as an archive (bundle.c). */
enum exit_code bundle_write(struct cli *c, const char *path, const cJSON *results);

#endif
