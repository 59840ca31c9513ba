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
/* By its name or an alias. NULL: there is none. */
const struct command *command_find(const char *name);
/* What a mistyped name probably means; NULL: none is near. */
const struct command *command_nearest(const char *name);

struct command_alias {
    const char *alias, *name;
};
extern const struct command_alias aliases[];
extern const size_t               aliases_count;

#define COMMAND(name, function, arguments, summary) enum exit_code function(struct cli *c);
#include "commands/commands.def"
#undef COMMAND

#define LISTING(name) extern const struct listing name##_listing;
#define OBJECT(name, schema)
#include "commands/schemas.def"
#undef LISTING
#undef OBJECT

/* Adds round trips of small requests, and what failed at the service in the last minute, as the member `link`, or prints them (link.c). Failures
 * are counted, not reported. */
void link_measure(struct cli *c, cJSON *to);
void link_print(struct cli *c);
/* Says whether this tool, the service, and the session's device with its driver and compiler fit together (link.c). */
enum exit_code link_check(struct cli *c, const char *session);

/* Prints the devices' figures once per interval (figures.c). */
enum exit_code figures_follow(struct cli *c);

/* One session to another node (snapshot.c), and all that the caller has (move_all.c). Failures are reported. */
enum exit_code session_move(struct cli *c, const char *name, const char *url, const char *device);
enum exit_code session_move_all(struct cli *c, const char *url, const char *device);

/* Prints the nodes of a fleet, their devices and sessions (fleet.c). CODE_DEGRADED: not all of them take sessions. */
enum exit_code fleet_show(struct cli *c);

/* Writes the service's state and diag's results as an archive (bundle.c). */
enum exit_code bundle_write(struct cli *c, const char *path, const cJSON *results);

#endif
