/* Sessions that have moved to another node: where each one is now. docs/design/moves.md has the steps. */
#ifndef GPUREST_SDK_MOVES_H
#define GPUREST_SDK_MOVES_H

#include <stdatomic.h>

#include "base/log.h"
#include "transport/pool.h"

struct moved_node;

/* A session that is at another node. */
struct moved {
    struct moved      *next;
    struct moved_node *node;
    unsigned           users;                     /* the list, and each request under way to it; under the lock of the list */
    atomic_bool        confirmed;                 /* the node was shown the secret */
    char               key[SESSION_ID_BYTES];     /* its id here, by which requests name it */
    char               id[SESSION_ID_BYTES];      /* its id there */
    char               secret[MOVE_SECRET_BYTES]; /* which makes the copy there the session */
};

struct moves {
    atomic_uint        count;
    pthread_mutex_t    lock;  /* of the members below */
    struct moved      *first; /* the one asked for last comes first */
    struct moved_node *nodes; /* each one once, with its connections */
    bool               closed;
};

void moves_init(struct moves *m);
void moves_finish(struct moves *m);
/* Requests to other nodes fail with GPUREST_E_CANCELLED from now on. */
void moves_close(struct moves *m);

/* The segment of a path that names a session; NULL: none. */
const char *moves_session(const char *path, size_t *chars);
/* Where the session of a path has gone; NULL: nowhere. Given back with moves_return. */
struct moved *moves_take(struct moves *m, const char *path);
void          moves_return(struct moves *m, struct moved *session);
struct pool  *moved_pool(struct moved *session);
/* The path there; freed by the caller. NULL: out of memory. */
char *moved_path(const struct moved *session, const char *path);

/* Whether the answer says where the session has gone. `main`: the client's own connections. */
bool           moves_told(const struct exchange *x);
gpurest_status moves_learn(struct moves *m, const struct pool *main, const struct log *log, const struct exchange *x);
/* Nobody asks for it any more; who does all the same is told again. */
void moves_forget(struct moves *m, const char *key);

#endif
