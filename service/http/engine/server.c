/* Puts the server together and takes it apart: listeners, executor, event loops. */
#include "http/engine/server.h"
#include "http/bounds.h"

#include <stdlib.h>

#include "http/engine/internal.h"
#include "http/filter/auth_throttle.h"

unsigned server_loops_for(unsigned cpus)
{
    unsigned loops = cpus / LOOP_THREADS_CPUS;

    if (loops < LOOP_THREADS_CHOSEN_MIN)
        return LOOP_THREADS_CHOSEN_MIN;
    return loops < LOOP_THREADS_CHOSEN_MAX ? loops : LOOP_THREADS_CHOSEN_MAX;
}

static enum status check_config(const struct server_config *c, struct problem *why)
{
    if (c->listen_count == 0 || c->listen_count > LISTENERS_MAX)
        return problem_set(why, STATUS_INVALID_REQUEST, "expected 1 to %d listen addresses", LISTENERS_MAX);
    if (c->loop_threads == 0 || c->loop_threads > LOOP_THREADS_MAX)
        return problem_set(why, STATUS_INVALID_REQUEST, "expected 1 to %d event-loop threads", LOOP_THREADS_MAX);
    if (c->io_threads > IO_THREADS_MAX)
        return problem_set(why, STATUS_INVALID_REQUEST, "too many I/O threads, at most %d are possible", IO_THREADS_MAX);
    if (c->hosts_count > HOSTS_MAX || c->origins_count > HOSTS_MAX)
        return problem_set(why, STATUS_INVALID_REQUEST, "too many hosts and origins, at most %d are possible", HOSTS_MAX);
    if (c->connections_max == 0 || c->connections_per_address_max == 0 || !c->auth)
        return problem_set(why, STATUS_INVALID_REQUEST, "the server's limits are incomplete");
    return STATUS_OK;
}

static enum status add_proxies(struct server *s, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < s->config.trusted_proxies_count && !st; i++)
        st = networks_add(&s->proxies, s->config.trusted_proxies[i], why);
    return st;
}

/* Each inherited socket has a queue of its own, which a loop must look after. */
static void take_inherited(struct server *s)
{
    unsigned most;

    s->inherited.count = s->config.inherited_count;
    for (unsigned i = 0; i < s->inherited.count; i++)
        s->inherited.fds[i] = s->config.inherited[i];
    most = inherited_most(&s->inherited);
    if (most > s->config.loop_threads)
        s->config.loop_threads = most;
}

static enum status open_listeners(struct server *s, struct problem *why)
{
    for (unsigned i = 0; i < s->config.listen_count; i++) {
        enum status st = listener_open(&s->listeners[i], s->config.listen[i], s->config.loop_threads, &s->inherited, why);
        if (st)
            return st;
        s->listeners_count++;
    }
    return STATUS_OK;
}

static enum status init_loops(struct server *s, struct problem *why)
{
    for (unsigned i = 0; i < s->config.loop_threads; i++) {
        enum status st = loop_init(&s->loops[i], s, i, why);
        if (st)
            return st;
        s->loops_count++;
    }
    return STATUS_OK;
}

/* All is in place before the first thread runs. */
static enum status start_loops(struct server *s, struct problem *why)
{
    enum status st = STATUS_OK;

    for (unsigned i = 0; i < s->loops_count && !st; i++)
        st = loop_start(&s->loops[i], why);
    return st;
}

static void init_nobody(struct caller *c)
{
    memcpy(c->name, "anonymous", sizeof "anonymous");
    c->memory_max_bytes = MEMORY_LIMIT_NONE;
}

static struct server *allocate(const struct server_config *config)
{
    struct server *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->config = *config;
    s->idempotency = config->idempotency;
    atomic_init(&s->requests_per_s, config->requests_per_s);
    pthread_mutex_init(&s->slots_lock, NULL);
    pthread_mutex_init(&s->held.lock, NULL);
    pthread_mutex_init(&s->freeze_lock, NULL);
    pthread_cond_init(&s->freeze_changed, NULL);
    TAILQ_INIT(&s->newcomers);
    TAILQ_INIT(&s->reserved);
    init_nobody(&s->nobody);
    return s;
}

enum status server_create(struct server **out, const struct server_config *config, struct problem *why)
{
    enum status    st = check_config(config, why);
    struct server *s;

    if (st)
        return st;
    s = allocate(config);
    if (!s)
        return problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for the server");
    take_inherited(s);
    st = add_proxies(s, why);
    if (!st)
        st = tls_create(&s->tls, config, why);
    if (!st)
        st = open_listeners(s, why);
    if (!st)
        st = executor_create(&s->executor, why);
    if (!st && !(s->auth_throttle = auth_throttle_create(config->token_failures_per_minute)))
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for addresses");
    s->metrics = server_metrics_create(config->endpoints_count);
    if (!st && !s->metrics)
        st = problem_set(why, STATUS_OUT_OF_MEMORY, "not enough memory for metrics");
    if (!st && config->io_threads)
        st = offload_create(&s->offload_threads, config->io_threads, why);
    if (!st)
        st = init_loops(s, why);
    if (!st)
        inherited_adopt(s);
    if (!st)
        st = start_loops(s, why);
    if (st) {
        server_destroy(s);
        return st;
    }
    *out = s;
    return STATUS_OK;
}

enum status server_reload_tls(struct server *s, struct problem *why)
{
    return s->tls ? tls_reload(s->tls, &s->config, why) : problem_set(why, STATUS_FEATURE_DISABLED, "there is no TLS");
}

void server_set_rate(struct server *s, unsigned requests_per_s)
{
    atomic_store(&s->requests_per_s, requests_per_s);
}

unsigned server_rate(const struct server *s)
{
    return atomic_load(&s->requests_per_s);
}

const char *server_address(const struct server *s, unsigned i)
{
    return i < s->listeners_count ? s->listeners[i].address : "";
}

void server_own_names(struct server *s)
{
    for (unsigned i = 0; i < s->listeners_count; i++)
        s->listeners[i].owns_name = s->listeners[i].is_unix;
}

void wake_loops(struct server *s)
{
    for (unsigned i = 0; i < s->loops_count; i++)
        loop_wake(&s->loops[i]);
}

void server_quiesce(struct server *s)
{
    atomic_store(&s->quiescing, true);
    wake_loops(s);
}

unsigned server_in_flight(const struct server *s)
{
    return atomic_load(&s->in_flight);
}

/* Handlers that run see that their clients are gone and end; only then are the loops told to end, so that no exchange is lost. */
void server_destroy(struct server *s)
{
    if (!s)
        return;
    atomic_store(&s->quiescing, true);
    atomic_store(&s->stopping, true);
    server_thaw(s);
    wake_loops(s);
    executor_stop(s->executor);
    offload_stop(s->offload_threads);
    atomic_store(&s->cutting, true);
    wake_loops(s);
    for (unsigned i = 0; i < s->loops_count; i++)
        loop_join(&s->loops[i]);
    for (unsigned i = 0; i < s->loops_count; i++)
        loop_finish(&s->loops[i]);
    for (unsigned i = 0; i < s->listeners_count; i++)
        listener_close(&s->listeners[i]);
    executor_destroy(s->executor);
    offload_destroy(s->offload_threads);
    tls_destroy(s->tls);
    auth_throttle_destroy(s->auth_throttle);
    server_metrics_destroy(s->metrics);
    pthread_cond_destroy(&s->freeze_changed);
    pthread_mutex_destroy(&s->freeze_lock);
    pthread_mutex_destroy(&s->held.lock);
    pthread_mutex_destroy(&s->slots_lock);
    free(s);
}

uint64_t server_last_turn_ns(const struct server *s)
{
    uint64_t oldest = UINT64_MAX;

    for (unsigned i = 0; i < s->loops_count; i++) {
        uint64_t turned = atomic_load_explicit(&s->loops[i].last_turn_ns, memory_order_relaxed);
        oldest = turned < oldest ? turned : oldest;
    }
    return oldest;
}
