/* top: live status on the terminal's alternate screen. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "commands/commands.h"

enum { INTERVAL_S = 2, INTERVAL_S_MAX = 3600, ROWS_UNKNOWN = 24, COLUMNS_UNKNOWN = 80 };

static const int             signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
static volatile sig_atomic_t ended, resized;

static void on_end(int signal_number)
{
    (void)signal_number;
    ended = 1;
}

static void on_resize(int signal_number)
{
    (void)signal_number;
    resized = 1;
}

/* Without SA_RESTART, so that a signal ends ppoll. */
static void on_signal(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

/* ---- one frame ---- */

/* The status as text, freed by the caller. NULL: failed with *code and reported. */
static char *compose_status(struct cli *c, enum exit_code *code)
{
    char  *text = NULL;
    size_t bytes = 0;
    FILE  *to = open_memstream(&text, &bytes), *before = c->out;

    if (!to) {
        *code = cli_error(CODE_FAILED, "not enough memory");
        return NULL;
    }
    c->out = to;
    c->argc = 0;
    *code = run_status(c);
    c->out = before;
    if (fclose(to) == 0 && (*code == CODE_OK || *code == CODE_DEGRADED))
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
    struct winsize size = {0};
    unsigned       rows = ROWS_UNKNOWN, columns = COLUMNS_UNKNOWN;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
        rows = size.ws_row;
        columns = size.ws_col;
    }
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

struct screen {
    struct termios before;
    bool           keys; /* standard input is a terminal and in our mode */
    sigset_t outside;    /* the signal mask elsewhere; on the screen, signals come only in wait_key: one that cuts a write loses output */
};

static void enter_screen(struct screen *s)
{
    struct termios ours;
    sigset_t       set;

    sigemptyset(&set);
    for (size_t i = 0; i < COUNT(signals); i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, &s->outside);
    s->keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &s->before) == 0;
    if (s->keys) {
        ours = s->before;
        ours.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        ours.c_cc[VSUSP] = _POSIX_VDISABLE; /* stopping top would leave its screen */
        tcsetattr(STDIN_FILENO, TCSANOW, &ours);
    }
    fputs("\033[?1049h\033[?25l", stdout);
}

static void leave_screen(const struct screen *s)
{
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (s->keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
    sigprocmask(SIG_SETMASK, &s->outside, NULL);
}

/* Waits until the interval is over, the window's size changes, or somebody wants to leave (true). */
static bool wait_key(const struct screen *s, unsigned seconds)
{
    const struct timespec interval = {(time_t)seconds, 0};
    struct pollfd         p = {.fd = s->keys ? STDIN_FILENO : -1, .events = POLLIN};
    char                  key = 0;
    bool                  gone = false;

    if (!ended && ppoll(&p, 1, &interval, &s->outside) > 0)
        gone = read(STDIN_FILENO, &key, 1) != 1; /* the terminal is gone */
    return gone || key == 'q' || key == 'Q' || ended;
}

static enum exit_code run_live(struct cli *c, unsigned seconds)
{
    struct screen  s;
    enum exit_code code = CODE_OK;
    bool           leaving = false;

    for (size_t i = 0; i < COUNT(signals); i++)
        on_signal(signals[i], signals[i] == SIGWINCH ? on_resize : on_end);
    enter_screen(&s);
    for (char *text = compose_status(c, &code); text && !leaving; text = leaving ? NULL : compose_status(c, &code)) {
        do {
            resized = 0;
            draw_screen(text);
            leaving = wait_key(&s, seconds);
        } while (resized && !leaving);
        free(text);
    }
    leave_screen(&s);
    return code;
}

enum exit_code run_top(struct cli *c)
{
    bool           table = c->output == OUTPUT_TABLE || c->output == OUTPUT_WIDE, ok = true;
    bool           once = take_flag(c, "-1") || take_flag(c, "--once") || !table || !isatty(STDOUT_FILENO);
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
            code = run_live(c, (unsigned)seconds);
        if (code == CODE_OK || code == CODE_DEGRADED)
            return CODE_OK;
    }
    if (once && c->output == OUTPUT_TABLE)
        print_head("\n");
    c->argc = 0;
    return run_status(c); /* after a failure: repeats it on the normal screen */
}
