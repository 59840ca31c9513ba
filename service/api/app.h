/* Shared by the handlers: created by frontend.c, reached through request.app. All parts outlive the server. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/random.h"
#include "config/config.h"
#include "http/engine/server.h"
#include "pool/compile/compile.h"
#include "pool/pool.h"
#include "session/session.h"

struct app {
    const struct config     *config;
    struct pool             *pool;
    struct compile_service  *compiler;
    struct code_cache       *cache;
    struct registry         *registry;
    struct auth             *auth;
    struct idempotency      *idempotency;
    struct state            *state;                         /* api/snapshot/state.h; NULL: none */
    _Atomic(struct server *) server;                        /* NULL while the server starts */
    char                     instance[RANDOM_ID_CHARS + 1]; /* names this process: what another one had in memory is unknown to it */
    uint64_t                 started_wall_ns;
    pthread_mutex_t          phase_lock; /* serializes changes of the two below and of the registry's state; outer to registry.lock */
    atomic_bool              draining, leaving; /* no new sessions; and the process will end. Changed by drain.c */
};
