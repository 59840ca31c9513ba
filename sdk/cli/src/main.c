/* gpurest: global options, then one command of commands.def. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "commands/commands.h"

enum { TIMEOUT_S_MAX = 86400 };

/* False: an invalid value, which has been reported. */
static bool take_form(struct cli *c, const char *option)
{
    static const char *const names[] = {"table", "wide", "json", "jsonl", "csv", "name"};
    const char              *value;
    bool                     ok = true;

    if (!take_value(c, option, &value, &ok))
        return ok;
    for (size_t i = 0; ok && i < COUNT(names); i++)
        if (strcmp(value, names[i]) == 0) {
            c->output = (enum output)i;
            return true;
        }
    if (ok)
        cli_usage(c, "%s must be table, wide, json, jsonl, csv or name", option);
    return false;
}

static bool take_globals(struct cli *c)
{
    bool     ok = true;
    uint64_t seconds = 0;

    take_value(c, "--url", &c->url, &ok);
    if (ok)
        take_value(c, "--log-level", &c->log_level, &ok);
    if (ok)
        take_value(c, "--session", &c->session, &ok);
    if (ok)
        take_value(c, "--fields", &c->fields, &ok);
    if (ok && take_number(c, "--timeout-s", &seconds, &ok)) {
        ok = seconds > 0 && seconds <= TIMEOUT_S_MAX;
        if (ok)
            c->timeout_ms = (int)seconds * 1000;
        else
            cli_usage(c, "--timeout-s must be from 1 to %d", TIMEOUT_S_MAX);
    }
    if (take_flag(c, "--json"))
        c->output = OUTPUT_JSON;
    c->no_header = take_flag(c, "--no-header");
    c->quiet = take_flag(c, "--quiet") || take_flag(c, "-q");
    c->verbose = take_flag(c, "--verbose") || take_flag(c, "-v");
    c->yes = take_flag(c, "--yes");
    c->color = !take_flag(c, "--no-color") && !getenv("NO_COLOR") && terminal_colors();
    return ok && take_form(c, "--output");
}

/* Commands that handle signals themselves. */
static bool takes_interrupts(const char *command)
{
    return strcmp(command, "top") == 0 || strcmp(command, "stat") == 0 || strcmp(command, "exec") == 0;
}

static enum exit_code unknown_command(const char *name)
{
    const struct command *nearest = command_nearest(name);

    if (nearest)
        return cli_error(CODE_USAGE, "unknown command %s; did you mean %s? gpurest help lists the commands", name, nearest->name);
    return cli_error(CODE_USAGE, "unknown command %s; gpurest help lists the commands", name);
}

/* Output that could not be written, for example to a full disk, is a failure; that nobody wants more of it is none. */
static enum exit_code finish(struct cli *c, enum exit_code code)
{
    char text[32];

    snprintf(text, sizeof text, "exit code %d", (int)code);
    gpurest_client_log(c->client, GPUREST_LOG_DEBUG, "cli", text);
    gpurest_close(c->client);
    if ((fflush(stdout) || ferror(stdout)) && code == CODE_OK && !output_reader_gone())
        return cli_error(CODE_FAILED, "standard output cannot be written");
    return code;
}

int main(int argc, char **argv)
{
    struct cli            c = {.timeout_ms = 60000, .out = stdout};
    const struct command *command;
    enum exit_code        code;

    platform_begin(&argc, &argv);
    c.argc = argc - 1;
    c.argv = argv + 1;
    if (take_flag(&c, "--help") || take_flag(&c, "-h"))
        return (int)finish(&c, run_help(&c));
    if (take_flag(&c, "--version")) /* works without a service */
        return printf("gpurest %s\n", gpurest_version()) < 0 ? CODE_FAILED : (int)finish(&c, CODE_OK);
    if (!take_globals(&c))
        return CODE_USAGE;
    c.command = c.argc > 0 ? c.argv[0] : "status";
    command = command_find(c.command);
    if (!command)
        return (int)unknown_command(c.command);
    c.command = command->name;
    c.arguments = command->arguments;
    if (strcmp(c.command, "compile") != 0 && !take_form(&c, "-o")) /* compile's -o is a file */
        return CODE_USAGE;
    if (c.argc > 0)
        c.argc--, c.argv++;
    if (strcmp(c.command, "login") != 0)
        for (bool ok = true; take_value(&c, "--token-file", &c.token_file, &ok);)
            if (!ok)
                return CODE_USAGE;
    if (!takes_interrupts(command->name))
        cli_watch_interrupts(&c);
    code = command->run(&c);
    cli_await_interrupt();
    return (int)finish(&c, code);
}
