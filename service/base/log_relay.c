/* What workers write to standard error, taken into the log file: they hold the write end of a pipe, one thread here reads it. A line of
 * theirs goes on as it is; what else comes (a library's words, a sanitizer's report) becomes the message of a line of ours. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/log_lines.h"

static struct {
    pthread_t       thread;
    int             in, out; /* -1: there is no relay */
    _Atomic bool    stopping;
    char            text[LOG_LINE_BYTES]; /* of a line that has begun; the thread's */
    size_t          bytes;
    struct log_line line; /* the thread's */
} relay = {.in = -1, .out = -1};

/* ---- lines ---- */

static struct span after(struct span line, const char *mark)
{
    const char *at = memmem(line.data, line.bytes, mark, strlen(mark));

    return at ? span_from(line, (size_t)(at - line.data) + strlen(mark)) : (struct span){0};
}

/* In the form of log.c, and of nobody but a worker: no process of ours can be spoken for. */
static bool is_workers_line(struct span line, enum log_level *level)
{
    bool        json = span_starts(line, "{\"time\":\"");
    struct span role = after(line, json ? "\",\"role\":\"" : " role=");
    struct span word = after(line, json ? "\",\"level\":\"" : " level=");

    if (!json && !span_starts(line, "time="))
        return false;
    return (span_starts(role, "worker") || span_starts(role, "count")) && log_level_parse(span_cut(&word, json ? '"' : ' '), level);
}

static void pass_on(struct span line)
{
    enum log_level level;
    char           text[LOG_MESSAGE_BYTES];

    if (line.bytes == 0)
        return;
    if (is_workers_line(line, &level)) {
        log_line_raw(&relay.line, line);
        log_sink_write(level, &relay.line);
    } else {
        line = span_first(line, sizeof text - 1);
        span_copy(line, text, sizeof text);
        log_event(LOG_LEVEL_WARN, LOG_CATEGORY_WORKER, text, NULL, 0);
    }
}

/* A line that is too long is cut: its rest comes as a line of its own. */
static void take(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool ends = bytes[i] == '\n';

        if (!ends)
            relay.text[relay.bytes++] = bytes[i];
        if (ends || relay.bytes == sizeof relay.text) {
            pass_on((struct span){relay.text, relay.bytes});
            relay.bytes = 0;
        }
    }
}

/* Until the stopper's line feed; by then every worker has ended. */
static void *run(void *unused)
{
    char    piece[4096];
    ssize_t n;

    (void)unused;
    do {
        n = read(relay.in, piece, sizeof piece);
        take(piece, n > 0 ? (size_t)n : 0);
    } while (n > 0 ? !atomic_load(&relay.stopping) || n == (ssize_t)sizeof piece : n < 0 && errno == EINTR);
    return NULL;
}

/* ---- its life ---- */

/* No signal is for this thread. */
static bool start_thread(void)
{
    sigset_t all, before;
    bool     started;

    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before))
        return false;
    started = pthread_create(&relay.thread, NULL, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

bool log_relay_start(void)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return false;
    relay.in = ends[0];
    relay.out = ends[1];
    if (start_thread())
        return true;
    close(relay.in);
    close(relay.out);
    relay.in = relay.out = -1;
    return false;
}

void log_relay_stop(void)
{
    if (relay.out < 0)
        return;
    atomic_store(&relay.stopping, true);
    while (write(relay.out, "\n", 1) < 0 && errno == EINTR)
        continue;
    pthread_join(relay.thread, NULL);
    close(relay.in);
    close(relay.out);
    relay.in = relay.out = -1;
}

int log_relay_descriptor(void)
{
    return relay.out;
}
