/* Ctrl-C: deletes the command's own session and exits with 130. Requests in flight are cancelled as their connections close. A thread waits for
 * the signals, because the command may block anywhere. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cli.h"

enum { DELETE_TIMEOUT_S = 15, CODE_OF_SIGNALS = 128 };

static const int       signals[] = {SIGINT, SIGTERM, SIGHUP};
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

static bool lock_with_timeout(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += DELETE_TIMEOUT_S;
    return pthread_mutex_timedlock(&lock, &until) == 0;
}

static void fill_signals(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < COUNT(signals); i++)
        sigaddset(set, signals[i]);
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

/* Restores the default handlers first: a second signal ends the process at once. */
static void *watch_signals(void *argument)
{
    sigset_t set;
    int      number = 0;

    fill_signals(&set);
    if (sigwait(&set, &number))
        return NULL;
    for (size_t i = 0; i < COUNT(signals); i++)
        signal(signals[i], SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    watcher = pthread_self();
    atomic_store(&interrupted, true);
    end_session(argument);
    _exit(CODE_OF_SIGNALS + number);
}

void cli_await_interrupt(void)
{
    while (atomic_load(&interrupted) && !pthread_equal(pthread_self(), watcher))
        pause();
}

void cli_watch_interrupts(struct cli *c)
{
    pthread_t thread;
    sigset_t  set;

    fill_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, watch_signals, c))
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    else
        pthread_detach(thread);
}
