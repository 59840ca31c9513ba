/* Ctrl-C: deletes the command's own session and exits with 130. Requests in flight are cancelled as their connections close. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cli.h"
#include "base/platform.h"

enum { DELETE_TIMEOUT_S = 15, NAP_MS = 20, CODE_OF_SIGNALS = 128 };

static atomic_bool     interrupted; /* the watcher is ending the process */
static pthread_t       watcher;     /* set before `interrupted` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char            own_session[ID_BYTES_MAX + 1]; /* under lock; "" = none */

/* Holds the lock while opening, so that an interrupt knows which session to delete. */
gpurest_status cli_open_noted(struct cli *c, gpurest_session **out, const gpurest_session_options *options)
{
    gpurest_status st;

    pthread_mutex_lock(&lock);
    st = gpurest_session_open(out, c->client, options);
    if (!st)
        snprintf(own_session, sizeof own_session, "%s", gpurest_session_id(*out));
    pthread_mutex_unlock(&lock);
    return st;
}

/* Tries again and again: macOS has no lock with a deadline. */
static bool lock_with_timeout(void)
{
    const struct timespec nap = {0, NAP_MS * 1000000L};

    for (int ms = 0; ms < DELETE_TIMEOUT_S * 1000; ms += NAP_MS) {
        if (pthread_mutex_trylock(&lock) == 0)
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

/* Uses a client of its own: the command's may be blocked. On failure the session's idle timeout ends it. */
static void end_session(const struct cli *c)
{
    struct cli other = {
        .url = c->url, .token_file = c->token_file, .timeout_ms = DELETE_TIMEOUT_S * 1000, .command = c->command, .quiet = true};
    char path[ID_BYTES_MAX + 32];

    if (!lock_with_timeout())
        return;
    snprintf(path, sizeof path, "/v1/sessions/%s", own_session);
    if (own_session[0] && cli_open(&other) == CODE_OK)
        gpurest_request(other.client, "DELETE", path, NULL, NULL);
    pthread_mutex_unlock(&lock);
}

static void on_interrupt(int number, void *c)
{
    watcher = pthread_self();
    atomic_store(&interrupted, true);
    end_session(c);
    _exit(CODE_OF_SIGNALS + number);
}

void cli_await_interrupt(void)
{
    const struct timespec nap = {1, 0};

    while (atomic_load(&interrupted) && !pthread_equal(pthread_self(), watcher))
        nanosleep(&nap, NULL);
}

void cli_watch_interrupts(struct cli *c)
{
    interrupts_watch(on_interrupt, c);
}
