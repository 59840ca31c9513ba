/* A request that no client has sent: the service itself takes snapshots and restores them. One thread at a time, which may block. */
#pragma once

#include <pthread.h>

#include "api/app.h"
#include "api/call.h"

struct player {
    struct request      r;
    struct request_port port;
    pthread_mutex_t     lock;
    pthread_cond_t      woken;
    bool                awake;
};

/* For a session of that caller. NULL: no memory. `id` outlives it. */
struct player *player_make(struct app *app, struct caller *caller, const char *id);
void           player_free(struct player *p);

typedef enum status player_put(void *context, struct span piece, struct problem *why);
/* Reads the answer, a body source, to its end. */
enum status player_receive(struct player *p, player_put *put, void *context);
/* Gives the request's sink a piece of its body. */
enum status player_send(struct player *p, struct span piece);
