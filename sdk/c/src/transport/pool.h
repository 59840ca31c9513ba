/* A pool of connections; reuses the most recent one first. */
#ifndef GPUREST_SDK_POOL_H
#define GPUREST_SDK_POOL_H

#include "transport/transport.h"

struct pool {
    const struct transport *transport;
    struct target           target;
    pthread_mutex_t         lock;
    pthread_cond_t          changed;
    struct {
        void    *connection;
        uint64_t since_ms;
    } idle[CONNECTIONS_MAX];
    int  idle_count, in_use, max;
    bool closed;
};

/* Takes ownership of target->ca_file. */
void pool_init(struct pool *p, const struct transport *t, const struct target *target, int max);
/* The same client's at another URL, with its token. Fails, with nothing to finish, where that would go without TLS and main's does not. */
gpurest_status pool_init_beside(struct pool *p, const struct pool *main, const char *url);
void           pool_finish(struct pool *p);
/* Later exchanges fail with GPUREST_E_CANCELLED. */
void pool_close(struct pool *p);
/* One try. */
gpurest_status pool_perform(struct pool *p, struct exchange *x);
/* As pool_perform, on a new connection that ends with it and is not counted. */
gpurest_status pool_perform_apart(struct pool *p, struct exchange *x);

#endif
