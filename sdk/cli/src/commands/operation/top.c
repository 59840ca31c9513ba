/* top: live status on the terminal's alternate screen. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/platform.h"
#include "commands/commands.h"

enum { INTERVAL_S = 2, INTERVAL_S_MAX = 3600, ROWS_UNKNOWN = 24, COLUMNS_UNKNOWN = 80 };

/* ---- one frame ---- */

/* The status as text, freed by the caller. NULL: failed with *code and reported. */
static char *compose(struct cli *c, enum exit_code (*show)(struct cli *), enum exit_code *code)
{
    FILE *to = text_open(), *before = c->out;
    char *text;

    if (!to) {
        *code = cli_error(CODE_FAILED, "not enough memory");
        return NULL;
    }
    c->out = to;
    c->argc = 0;
    *code = show(c);
    c->out = before;
    text = text_take(to);
    if (*code == CODE_OK || *code == CODE_DEGRADED)
        return text;
    free(text);
    return NULL;
}

static void print_head(const char *more)
{
    time_t    now = time(NULL);
    char      text[64];
    struct tm local;

    localtime_r(&now, &local);
    strftime(text, sizeof text, "%H:%M:%S", &local);
    printf("gpurest top - %s%s", text, more);
}

/* Prints at most `columns` characters; colour sequences take no room. Returns the next line. */
static const char *print_clipped(const char *line, unsigned columns)
{
    size_t   length = strcspn(line, "\n");
    unsigned used = 0;

    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\033') {
            size_t sequence = strcspn(line + i, "m") + 1;
            fwrite(line + i, 1, sequence, stdout);
            i += sequence - 1;
            continue;
        }
        if ((line[i] & 0xC0) != 0x80)
            used++;
        if (used <= columns)
            putchar(line[i]);
    }
    return line + length + (line[length] == '\n');
}

static void draw_screen(const char *text)
{
    unsigned rows = ROWS_UNKNOWN, columns = COLUMNS_UNKNOWN;

    terminal_size(&rows, &columns);
    fputs("\033[H", stdout);
    print_head(columns > 50 ? " - q quits" : "");
    for (unsigned row = 1; *text && row < rows; row++) {
        fputs("\033[K\r\n", stdout);
        text = print_clipped(text, columns);
    }
    fputs("\033[K\033[J", stdout);
    fflush(stdout);
}

/* ---- the screen ---- */

static void enter_screen(void)
{
    terminal_enter();
    fputs("\033[?1049h\033[?25l", stdout);
}

static void leave_screen(void)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    terminal_leave();
}

static enum exit_code run_live(struct cli *c, enum exit_code (*show)(struct cli *), unsigned seconds)
{
    enum exit_code      code = CODE_OK;
    enum terminal_event event = TERMINAL_TIME_OVER;

    enter_screen();
    for (char *text = compose(c, show, &code); text && event != TERMINAL_LEAVE;
         text = event == TERMINAL_LEAVE ? NULL : compose(c, show, &code)) {
        do {
            draw_screen(text);
            event = terminal_wait(seconds);
        } while (event == TERMINAL_RESIZED);
        free(text);
    }
    leave_screen();
    return code;
}

enum exit_code run_top(struct cli *c)
{
    bool table = c->output == OUTPUT_TABLE || c->output == OUTPUT_WIDE, ok = true;
    bool once = take_flag(c, "-1") || take_flag(c, "--once") || !table || !isatty(STDOUT_FILENO);
    enum exit_code (*show)(struct cli *) = take_flag(c, "--fleet") ? fleet_show : run_status;
    uint64_t       seconds = INTERVAL_S;
    enum exit_code code;

    take_number(c, "-i", &seconds, &ok);
    if (!ok || !take_rest(c, 0, 0))
        return CODE_USAGE;
    if (seconds == 0 || seconds > INTERVAL_S_MAX)
        return cli_usage(c, "-i must be from 1 to %d seconds", INTERVAL_S_MAX);
    if (!once) {
        code = cli_open(c);
        if (!code)
            code = run_live(c, show, (unsigned)seconds);
        if (code == CODE_OK || code == CODE_DEGRADED)
            return CODE_OK;
    }
    if (once && c->output == OUTPUT_TABLE)
        print_head("\n");
    c->argc = 0;
    return show(c); /* after a failure: repeats it on the normal screen */
}
