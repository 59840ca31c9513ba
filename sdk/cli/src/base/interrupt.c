/* Ctrl-C: the command's own session is ended at the service, what it has sent there is cancelled by the end of its connection, and the exit
 * code says that it was interrupted. A thread waits for the signals, as the command may be waiting anywhere. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cli.h"

enum { FAREWELL_S = 15, CODE_OF_SIGNALS = 128 };

static const int       signals[] = {SIGINT, SIGTERM, SIGHUP};
static atomic_bool     interrupted; /* the watcher ends the process */
static pthread_t       watcher;     /* set before `interrupted` */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char            own_session[ID_BYTES_MAX + 1]; /* under lock; "" = none */

/* The lock is held meanwhile: an interrupt waits until it is known which session there is to end. */
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

static bool lock_in_time(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FAREWELL_S;
    return pthread_mutex_timedlock(&lock, &until) == 0;
}

static void fill(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < COUNT(signals); i++)
        sigaddset(set, signals[i]);
}

/* The client of the command is where it waits: this is another one. What fails here is left to the session's idle time. */
static void end_session(const struct cli *c)
{
    struct cli other = {.url = c->url, .token_file = c->token_file, .timeout_ms = FAREWELL_S * 1000, .command = c->command, .quiet = true};
    char       path[ID_BYTES_MAX + 32];

    if (!lock_in_time())
        return;
    snprintf(path, sizeof path, "/v1/sessions/%s", own_session);
    if (own_session[0] && cli_open(&other) == CODE_OK)
        gpurest_request(other.client, "DELETE", path, NULL, NULL);
    pthread_mutex_unlock(&lock);
}

/* A second signal ends the process at once. */
static void *watch(void *argument)
{
    sigset_t set;
    int      number = 0;

    fill(&set);
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

    fill(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (pthread_create(&thread, NULL, watch, c))
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    else
        pthread_detach(thread);
}
