/* Linux and macOS. */
#include "base/platform.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { MODE_BYTES = 8 };

/* ---- the process ---- */

void platform_begin(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    signal(SIGPIPE, SIG_IGN);
}

bool output_reader_gone(void)
{
    struct pollfd p = {.fd = STDOUT_FILENO};

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP)) != 0;
}

static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};

enum { INTERRUPTS = sizeof interrupts / sizeof interrupts[0] };

static struct {
    void (*handle)(int number, void *arg);
    void *arg;
} watched;

static void fill_interrupts(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < INTERRUPTS; i++)
        sigaddset(set, interrupts[i]);
}

/* Restores the default handlers first: a second signal ends the process at once. */
static void *watch_signals(void *unused)
{
    sigset_t set;
    int      number = 0;

    (void)unused;
    fill_interrupts(&set);
    if (sigwait(&set, &number))
        return NULL;
    for (size_t i = 0; i < INTERRUPTS; i++)
        signal(interrupts[i], SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    watched.handle(number, watched.arg);
    return NULL;
}

/* A thread waits for the signals, because the command may block anywhere. */
void interrupts_watch(void (*handle)(int number, void *arg), void *arg)
{
    pthread_t thread;
    sigset_t  set;

    watched.handle = handle;
    watched.arg = arg;
    fill_interrupts(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, watch_signals, NULL))
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    else
        pthread_detach(thread);
}

/* ---- files ---- */

FILE *stream_open(const char *path, const char *mode)
{
    char with_flag[MODE_BYTES];

    snprintf(with_flag, sizeof with_flag, "%se", mode);
    return fopen(path, with_flag);
}

bool file_replace(const char *from, const char *to)
{
    return rename(from, to) == 0;
}

char *path_resolved(const char *path)
{
    return realpath(path, NULL);
}

bool folder_make(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* $XDG_CONFIG_HOME, else ~/.config; on macOS too, as other tools for the command line have it. */
bool settings_folder(char *out, size_t room)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool        given = config && config[0] == '/';
    int         length = given ? snprintf(out, room, "%s", config) : snprintf(out, room, "%s/.config", home ? home : "");

    return length >= 0 && (size_t)length < room && (given || (home && home[0] == '/'));
}

const char *settings_variables(void)
{
    return "HOME or XDG_CONFIG_HOME";
}

static mode_t mask_before;

void private_files_begin(void)
{
    mask_before = umask(077);
}

void private_files_end(void)
{
    umask(mask_before);
}

/* ---- addresses ---- */

size_t host_addresses(const char *host, char (*out)[ADDRESS_TEXT_BYTES], size_t most)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    size_t          count = 0;

    if (getaddrinfo(host, NULL, &hints, &list))
        return 0;
    for (const struct addrinfo *a = list; a && count < most; a = a->ai_next)
        count += getnameinfo(a->ai_addr, a->ai_addrlen, out[count], ADDRESS_TEXT_BYTES, NULL, 0, NI_NUMERICHOST) == 0;
    freeaddrinfo(list);
    return count;
}

/* ---- text in memory ---- */

static char  *text;
static size_t text_bytes;

FILE *text_open(void)
{
    text = NULL;
    return open_memstream(&text, &text_bytes);
}

char *text_take(FILE *stream)
{
    if (fclose(stream) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- the terminal ---- */

static const int screen_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};

enum { SCREEN_SIGNALS = sizeof screen_signals / sizeof screen_signals[0] };

static volatile sig_atomic_t ended, resized;

static struct {
    struct termios before;
    bool           keys; /* standard input is a terminal and in our mode */
    sigset_t outside; /* the signal mask elsewhere; on the screen, signals come only in terminal_wait: one that cuts a write loses output */
} screen;

bool terminal_colors(void)
{
    return isatty(STDOUT_FILENO);
}

bool terminal_size(unsigned *rows, unsigned *columns)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
        return false;
    *rows = size.ws_row;
    *columns = size.ws_col;
    return true;
}

static void on_signal(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else
        ended = 1;
}

void terminal_enter(void)
{
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART, so that a signal ends pselect */
    struct termios   ours;
    sigset_t         set;

    sigemptyset(&action.sa_mask);
    sigemptyset(&set);
    for (size_t i = 0; i < SCREEN_SIGNALS; i++) {
        sigaction(screen_signals[i], &action, NULL);
        sigaddset(&set, screen_signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &screen.outside);
    screen.keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen.before) == 0;
    if (!screen.keys)
        return;
    ours = screen.before;
    ours.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    ours.c_cc[VSUSP] = _POSIX_VDISABLE; /* stopping the program would leave its screen */
    tcsetattr(STDIN_FILENO, TCSANOW, &ours);
}

void terminal_leave(void)
{
    if (screen.keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
    sigprocmask(SIG_SETMASK, &screen.outside, NULL);
}

/* pselect, because macOS has no ppoll. */
enum terminal_event terminal_wait(unsigned seconds)
{
    const struct timespec time = {.tv_sec = (time_t)seconds};
    fd_set                keys;
    char                  key = 0;
    bool                  gone = false;

    FD_ZERO(&keys);
    if (screen.keys)
        FD_SET(STDIN_FILENO, &keys);
    resized = 0;
    if (!ended && pselect(screen.keys ? STDIN_FILENO + 1 : 0, &keys, NULL, NULL, &time, &screen.outside) > 0)
        gone = read(STDIN_FILENO, &key, 1) != 1;
    if (gone || ended || key == 'q' || key == 'Q')
        return TERMINAL_LEAVE;
    return resized ? TERMINAL_RESIZED : TERMINAL_TIME_OVER;
}
