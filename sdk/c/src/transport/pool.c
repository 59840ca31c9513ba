/* The connection pool. */
#include "transport/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"

void pool_init(struct pool *p, const struct transport *t, const struct target *target, int max)
{
    *p = (struct pool){.transport = t, .target = *target, .max = max};
    pthread_mutex_init(&p->lock, NULL);
    condition_init(&p->changed);
}

/* A token does not go from https to http. */
static gpurest_status check_beside(const struct endpoint *e, const struct endpoint *main, const char *url)
{
    if (main->scheme != SCHEME_HTTPS || e->scheme == SCHEME_HTTPS)
        return GPUREST_OK;
    return fail(GPUREST_E_INVAL, "open a client with that URL",
                "%.200s is asked without TLS, unlike https://%.200s: the session is not followed there", url, main->authority);
}

gpurest_status pool_init_beside(struct pool *p, const struct pool *main, const char *url)
{
    struct endpoint e;
    gpurest_status  st = endpoint_parse(url, &e);

    if (!st)
        st = check_beside(&e, &main->target.endpoint, url);
    if (st)
        return st;
    pool_init(p, e.scheme == SCHEME_HTTPS ? &transport_curl : main->transport, &main->target, main->max);
    p->target.endpoint = e;
    p->target.ca_file = main->target.ca_file ? strdup(main->target.ca_file) : NULL;
    if (!main->target.ca_file || p->target.ca_file)
        return GPUREST_OK;
    pool_finish(p);
    return fail_memory();
}

void pool_finish(struct pool *p)
{
    for (int i = 0; i < p->idle_count; i++)
        p->transport->close(p->idle[i].connection);
    free(p->target.ca_file);
    memory_wipe(p->target.token, sizeof p->target.token);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
}

void pool_close(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->closed = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* An idle connection that seems usable, or NULL; may close others. Called locked: closing is quick. */
static void *take_idle(struct pool *p)
{
    uint64_t now = clock_ms();

    while (p->idle_count) {
        int   last = --p->idle_count;
        void *c = p->idle[last].connection;
        if (now - p->idle[last].since_ms < IDLE_CONNECTION_MS && p->transport->alive(c))
            return c;
        p->transport->close(c);
    }
    return NULL;
}

static gpurest_status acquire_connection(struct pool *p, const struct exchange *x, void **out)
{
    gpurest_status st = GPUREST_OK;

    pthread_mutex_lock(&p->lock);
    while (!p->closed && !x->beyond_pool && p->in_use >= p->max)
        pthread_cond_wait(&p->changed, &p->lock);
    if (p->closed) {
        st = fail(GPUREST_E_CANCELLED, NULL, "the client is closed");
    } else {
        *out = take_idle(p);
        p->in_use += !x->beyond_pool;
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

static void release_connection(struct pool *p, const struct exchange *x, void *c, bool keep)
{
    pthread_mutex_lock(&p->lock);
    p->in_use -= !x->beyond_pool;
    if (c && keep && !p->closed && p->idle_count < CONNECTIONS_MAX) {
        p->idle[p->idle_count].connection = c;
        p->idle[p->idle_count++].since_ms = clock_ms();
        c = NULL;
    }
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (c)
        p->transport->close(c);
}

gpurest_status pool_perform(struct pool *p, struct exchange *x)
{
    void          *c = NULL;
    bool           keep = false;
    gpurest_status st = acquire_connection(p, x, &c);

    if (st)
        return st;
    if (!c)
        st = p->transport->connect(&p->target, x->cancel, &c);
    if (!st)
        st = p->transport->perform(c, &p->target, x, &keep);
    release_connection(p, x, c, keep);
    return st;
}

gpurest_status pool_perform_apart(struct pool *p, struct exchange *x)
{
    void          *c;
    bool           keep;
    gpurest_status st = p->transport->connect(&p->target, x->cancel, &c);

    if (st)
        return st;
    st = p->transport->perform(c, &p->target, x, &keep);
    p->transport->close(c);
    return st;
}
