/* Options may stand anywhere before "--". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli.h"

static void drop_arguments(struct cli *c, int at, int count)
{
    memmove(&c->argv[at], &c->argv[at + count], (size_t)(c->argc - at - count) * sizeof *c->argv);
    c->argc -= count;
}

/* The argument's index, or -1; "--name=…" counts. */
static int find_option(const struct cli *c, const char *name)
{
    size_t n = strlen(name);

    for (int i = 0; i < c->argc && strcmp(c->argv[i], "--") != 0; i++)
        if (strncmp(c->argv[i], name, n) == 0 && (c->argv[i][n] == '\0' || (c->argv[i][n] == '=' && name[1] == '-')))
            return i;
    return -1;
}

bool take_flag(struct cli *c, const char *name)
{
    int at = find_option(c, name);

    if (at < 0 || c->argv[at][strlen(name)] != '\0')
        return false;
    drop_arguments(c, at, 1);
    return true;
}

bool take_value(struct cli *c, const char *name, const char **value, bool *ok)
{
    int at = find_option(c, name);

    if (at < 0)
        return false;
    if (c->argv[at][strlen(name)] == '=') {
        *value = c->argv[at] + strlen(name) + 1;
        drop_arguments(c, at, 1);
        return true;
    }
    if (at + 1 >= c->argc) {
        cli_usage(c, "%s needs a value", name);
        *ok = false;
        return false;
    }
    *value = c->argv[at + 1];
    drop_arguments(c, at, 2);
    return true;
}

bool take_number(struct cli *c, const char *name, uint64_t *value, bool *ok)
{
    const char *text;

    if (!take_value(c, name, &text, ok))
        return false;
    *ok = parse_size(text, value);
    if (!*ok)
        cli_usage(c, "%s takes a number, not \"%s\"", name, text);
    return *ok;
}

bool take_rest(struct cli *c, int least, int most)
{
    for (int i = 0; i < c->argc; i++)
        if (c->argv[i][0] == '-' && c->argv[i][1] != '\0') {
            cli_usage(c, "%s does not take the option %s", c->command, c->argv[i]);
            return false;
        }
    if (c->argc >= least && c->argc <= most)
        return true;
    if (c->argc > most)
        cli_usage(c, "unexpected argument \"%s\"", c->argv[most]);
    else
        cli_usage(c, "%s takes %s", c->command, c->arguments);
    return false;
}

char *next_part(char **rest, char separator)
{
    char *part = *rest, *end = part ? strchr(part, separator) : NULL;

    if (end)
        *end = '\0';
    *rest = end ? end + 1 : NULL;
    return part;
}

bool parse_number(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == '\0' && text[0] != '-' && text[0] != '+' && text[0] != ' ';
}

bool parse_size(const char *text, uint64_t *out)
{
    static const char *const units[] = {"K", "M", "G", "KiB", "MiB", "GiB"};
    size_t                   digits = strspn(text, "0123456789");
    char                     number[24];
    unsigned                 shift = 0;

    if (text[digits] == '\0' || text[digits] == 'x')
        return parse_number(text, out);
    for (size_t i = 0; i < COUNT(units); i++)
        if (strcmp(text + digits, units[i]) == 0)
            shift = 10 * (unsigned)(i % 3 + 1);
    if (shift == 0 || digits == 0 || digits >= sizeof number)
        return false;
    memcpy(number, text, digits);
    number[digits] = '\0';
    if (!parse_number(number, out) || *out > UINT64_MAX >> shift)
        return false;
    *out <<= shift;
    return true;
}

bool cli_id_ok(const char *id)
{
    size_t n = strlen(id);

    return n > 0 && n <= ID_BYTES_MAX && id[0] != '.' &&
           strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-:.") == n;
}
