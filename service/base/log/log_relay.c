/* Reads the standard error of child processes into the log. Each child has the write end of its own pipe; one thread reads all pipes. Each line is
 * logged with the role and process id that the front-end knows, so a worker cannot forge lines of the front-end or of another worker. Lines in
 * the format that log.c uses in workers keep their level and category; other output (of a library, a sanitizer) is a warning. Each child has a
 * rate limit. Above it lines are dropped and counted, and its pipe is read slowly, so that only a child that floods its pipe waits. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/deadline.h"
#include "base/log/crash.h"
#include "base/log/log_lines.h"
#include "base/metrics.h"
#include "base/rate.h"

struct source {
    int                fd; /* owned */
    pid_t              pid;
    char               role[32];
    struct rate_bucket rate;
    uint64_t           dropped;  /* and not reported yet */
    uint64_t           rests_ns; /* no read before this time */
    size_t             bytes;
    char               text[LOG_LINE_BYTES]; /* an incomplete line */
};

static struct {
    pthread_t       thread;
    bool            runs;
    int             bell; /* an eventfd: a member below has changed */
    atomic_bool     stopping;
    pthread_mutex_t lock;                           /* protects the list of sources */
    struct source  *sources[LOG_RELAY_SOURCES_MAX]; /* NULL = none; only the thread uses a source's members */
} relay = {.bell = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- lines ---- */

static void report_dropped(struct source *s)
{
    char text[64];

    if (!s->dropped)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " log lines were dropped", s->dropped);
    s->dropped = 0;
    log_relayed(span_of(s->role), s->pid, LOG_LEVEL_WARN, LOG_CATEGORY_WORKER, span_of(text));
}

static void pass_line(struct source *s, struct span line)
{
    enum log_level    level = LOG_LEVEL_WARN;
    enum log_category category = LOG_CATEGORY_WORKER;
    struct span       message = line;
    uint64_t          wait_ns, now = now_ns();

    if (line.bytes == 0)
        return;
    if (!rate_take(&s->rate, NS_PER_S / LOG_RELAY_LINES_PER_S, LOG_RELAY_LINES_BURST, now, &wait_ns)) {
        s->dropped++;
        s->rests_ns = now + LOG_RELAY_PAUSE_MS * NS_PER_MS;
        counter_add(COUNTER_LOG_DROPPED_WORKER, 1);
        return;
    }
    report_dropped(s);
    if (!log_line_unwire(line, &level, &category, &message)) {
        level = LOG_LEVEL_WARN;
        category = LOG_CATEGORY_WORKER;
        message = line;
    }
    log_relayed(span_of(s->role), s->pid, level, category, span_first(message, LOG_MESSAGE_BYTES - 1));
}

static void end_line(struct source *s)
{
    pass_line(s, (struct span){s->text, s->bytes});
    s->bytes = 0;
}

/* Splits a line that is too long into several. */
static void take_bytes(struct source *s, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool ends = bytes[i] == '\n';

        if (!ends)
            s->text[s->bytes++] = bytes[i];
        if (ends || s->bytes == sizeof s->text)
            end_line(s);
    }
}

/* ---- pipes ---- */

static void source_free(struct source *s)
{
    end_line(s);
    report_dropped(s);
    close(s->fd);
    free(s);
}

/* False: no writer has the pipe open. */
static bool read_some(struct source *s)
{
    static char piece[LOG_RELAY_READ_BYTES]; /* used by the thread only */
    ssize_t     n = read(s->fd, piece, sizeof piece);

    take_bytes(s, piece, n > 0 ? (size_t)n : 0);
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Fills the poll entries and the time limit. The entries after the bell's belong to places[0] and so on. */
static unsigned gather_polls(struct pollfd *polls, unsigned *places, unsigned *known, uint64_t now, uint64_t *until)
{
    unsigned n = 0;

    *known = 0;
    pthread_mutex_lock(&relay.lock);
    for (unsigned i = 0; i < LOG_RELAY_SOURCES_MAX; i++) {
        const struct source *s = relay.sources[i];

        if (!s)
            continue;
        ++*known;
        if (s->rests_ns > now && s->rests_ns < *until)
            *until = s->rests_ns;
        if (s->rests_ns > now)
            continue;
        places[n] = i;
        polls[n++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
    }
    pthread_mutex_unlock(&relay.lock);
    return n;
}

static void drop_source(unsigned place)
{
    struct source *s;

    pthread_mutex_lock(&relay.lock);
    s = relay.sources[place];
    relay.sources[place] = NULL;
    pthread_mutex_unlock(&relay.lock);
    source_free(s);
}

/* False: no source is left. */
static bool relay_turn(uint64_t until)
{
    static struct pollfd polls[1 + LOG_RELAY_SOURCES_MAX]; /* both used by the thread only */
    static unsigned      places[LOG_RELAY_SOURCES_MAX];
    unsigned             known, n = gather_polls(polls + 1, places, &known, now_ns(), &until);
    uint64_t             rings;
    struct timespec      left = timespec_of_ns(deadline_left_ns(until));

    if (!known && atomic_load(&relay.stopping))
        return false;
    polls[0] = (struct pollfd){.fd = relay.bell, .events = POLLIN};
    if (ppoll(polls, n + 1, until == DEADLINE_NEVER ? NULL : &left, NULL) <= 0)
        return true;
    if (polls[0].revents && read(relay.bell, &rings, sizeof rings) < 0 && errno != EAGAIN)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (polls[i + 1].revents && !read_some(relay.sources[places[i]]))
            drop_source(places[i]);
    return true;
}

/* When it stops, the child processes have exited. A pipe that another process still holds open is ignored. */
static void *run_relay(void *unused)
{
    uint64_t until = DEADLINE_NEVER;

    while (deadline_left_ns(until) && relay_turn(until))
        if (until == DEADLINE_NEVER && atomic_load(&relay.stopping))
            until = deadline_after_ms(LOG_FLUSH_MS);
    return unused;
}

/* ---- start and stop ---- */

static void ring_bell(void)
{
    const uint64_t one = 1;

    while (write(relay.bell, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

bool log_relay_start(void)
{
    relay.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (relay.bell < 0)
        return false;
    atomic_store(&relay.stopping, false);
    relay.runs = crash_thread_start(&relay.thread, run_relay, NULL);
    if (relay.runs)
        return true;
    close(relay.bell);
    relay.bell = -1;
    return false;
}

void log_relay_stop(void)
{
    if (!relay.runs)
        return;
    atomic_store(&relay.stopping, true);
    ring_bell();
    pthread_join(relay.thread, NULL);
    for (unsigned i = 0; i < LOG_RELAY_SOURCES_MAX; i++)
        if (relay.sources[i])
            drop_source(i);
    close(relay.bell);
    relay.bell = -1;
    relay.runs = false;
}

bool log_relay_runs(void)
{
    return relay.runs;
}

static bool put_source(struct source *s)
{
    unsigned i = 0;

    pthread_mutex_lock(&relay.lock);
    while (i < LOG_RELAY_SOURCES_MAX && relay.sources[i])
        i++;
    if (i < LOG_RELAY_SOURCES_MAX)
        relay.sources[i] = s;
    pthread_mutex_unlock(&relay.lock);
    return i < LOG_RELAY_SOURCES_MAX;
}

void log_relay_add(int read_end, struct span role, pid_t pid)
{
    struct source *s = calloc(1, sizeof *s);

    if (s) {
        s->fd = read_end;
        s->pid = pid;
        span_copy(span_first(role, sizeof s->role - 1), s->role, sizeof s->role);
    }
    if (s && put_source(s)) {
        ring_bell();
        return;
    }
    free(s);
    close(read_end); /* its writes fail, which does not harm it */
    log_warn("pool", "cannot read the log of process %d: too many processes", (int)pid);
}
