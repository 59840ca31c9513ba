/* One request and its answer, independent of the transport. */
#ifndef GPUREST_SDK_EXCHANGE_H
#define GPUREST_SDK_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "base/failure.h"
#include "base/platform.h"

/* Progress of a transfer, shared by its connections. */
struct progress {
    gpurest_progress_cb report; /* NULL: no reports */
    void               *arg;
    pthread_mutex_t     lock;
    uint64_t            done, total, reported;
    bool                given_up;
};

struct pool;

struct exchange {
    /* The request. All pointers are borrowed. */
    const char         *method, *path;
    const char         *headers;      /* further header lines with their CRLFs; NULL: none */
    uint64_t            generation;   /* of its session, which must not be another one; 0: any */
    const char         *content_type; /* NULL: no body */
    const struct piece *upload;
    size_t              upload_count;
    /* In place of `upload`: the next part of the body, once. 0: it fails, with the thread's error set, before the peer has all of it. */
    size_t (*source)(void *arg, void *to, size_t room);
    void            *source_arg;
    uint64_t         source_bytes; /* how many it will be */
    bool             repeatable;   /* may be sent again if it is unknown whether it took effect */
    int              idle_ms;      /* after so long without data in either direction it ends, or asks whether the service lives */
    bool             bounded;      /* ends then in any case: who waits has other things to do, or leaves */
    int              spin_us;      /* looks for an answer so long before it sleeps: a wake-up takes several */
    bool             beyond_pool;  /* not counted against max_connections: for long polls */
    struct cancel   *cancel;       /* NULL: cannot be cancelled */
    struct progress *sending;      /* NULL, as below */
    struct progress *receiving;

    bool (*lives)(void *arg, const struct exchange *x); /* asks that, on another connection; NULL: nobody does */
    void *lives_arg;

    /* Where the body of a successful answer goes: the first that is set, else x->body. */
    void  *into; /* must be into_bytes long, else GPUREST_E_PROTO */
    size_t into_bytes;
    bool (*sink)(void *arg, const void *data, size_t bytes); /* false: stop, with the thread's error set */
    void *sink_arg;
    bool  sink_any; /* also for bodies of other statuses but 421, which may be followed */

    struct pool *through; /* the connections that it takes; NULL: the client's */
    bool         stays;   /* not sent on to where its session has gone */
    bool         hurries; /* not asked again and again while its session stands still for a move */

    bool takes_descriptor; /* the answer brings a file descriptor, over a Unix socket */

    /* The answer. */
    int        status;
    int        descriptor; /* -1: none. Who takes it sets -1; otherwise it is closed */
    struct buf head;       /* header lines, each ending in CRLF */
    struct buf body;       /* collected bodies, and all problems */
    size_t     into_done;
    bool       sent;     /* the service may have received something */
    bool       followed; /* by another node, where its session is now */
    bool       resent;   /* sent again although it may have taken effect */
};

void exchange_init(struct exchange *x, const char *method, const char *path);
void exchange_finish(struct exchange *x);
/* Discards the answer, for another try. */
void     exchange_reset(struct exchange *x);
uint64_t exchange_body_bytes(const struct exchange *x);
/* Copies a header's value; false: absent or too long. */
bool exchange_header(const struct exchange *x, const char *name, char *out, size_t room);

/* Takes a part of the answer's body. */
gpurest_status exchange_take(struct exchange *x, const void *data, size_t bytes);
/* Where to receive up to *room body bytes directly; NULL: use exchange_take. */
void *exchange_place(struct exchange *x, size_t *room);
/* `bytes` were received at exchange_place. */
gpurest_status exchange_placed(struct exchange *x, size_t bytes);
/* No data came or went for idle_ms, while `interrupt` of `arg` is what x->cancel calls: a failure unless the wait goes on. */
gpurest_status exchange_stalled(struct exchange *x, void (*interrupt)(void *arg), void *arg);
/* Checks the length of a complete answer. */
gpurest_status exchange_end(struct exchange *x);

void progress_init(struct progress *p, gpurest_progress_cb report, void *arg, uint64_t total);
void progress_finish(struct progress *p);
/* p may be NULL. GPUREST_E_CANCELLED: the callback cancelled. */
gpurest_status progress_add(struct progress *p, uint64_t bytes);

#endif
