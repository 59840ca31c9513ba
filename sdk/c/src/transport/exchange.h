/* One request and its answer, whatever carries them. */
#ifndef GPUREST_SDK_EXCHANGE_H
#define GPUREST_SDK_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "base/failure.h"

struct piece {
    const void *data;
    size_t      bytes;
};

/* How far a transfer is; shared by the connections that carry parts of it. */
struct progress {
    gpurest_progress_cb report; /* NULL: nobody wants to know */
    void               *arg;
    pthread_mutex_t     lock;
    uint64_t            done, total, reported;
    bool                given_up;
};

struct exchange {
    /* The request; all borrowed. */
    const char         *method, *path;
    const char         *headers;      /* further lines with their CRLFs; NULL: none */
    const char         *content_type; /* NULL: no body */
    const struct piece *upload;
    size_t              upload_count;
    bool                repeatable;  /* may be sent again when it is not known whether it was acted upon */
    int                 idle_ms;     /* longest time without a byte in either direction */
    bool                beyond_pool; /* does not count among the connections: long polls */
    struct cancel      *cancel;      /* NULL: cannot be cancelled */
    struct progress    *sending;     /* NULL, as below */
    struct progress    *receiving;

    /* Where the body of a successful answer goes: the first that is set. None: it is collected. */
    void  *into; /* exactly into_bytes, else GPUREST_E_PROTO */
    size_t into_bytes;
    bool (*sink)(void *arg, const void *data, size_t bytes); /* false: give up, with the thread's error set */
    void *sink_arg;
    bool  sink_any; /* the sink takes bodies of any status */

    bool takes_descriptor; /* one comes with the answer, over a Unix socket of our own */

    /* The answer. */
    int        status;
    int        descriptor; /* -1: none has come; whoever takes it puts -1 here, what is left is closed */
    struct buf head;       /* header lines, each ending in CRLF */
    struct buf body;       /* of what is collected; problems always are */
    size_t     into_done;
    bool       sent;   /* something may have reached the service */
    bool       resent; /* it was sent again after it was not known whether it had been acted upon */
};

void exchange_init(struct exchange *x, const char *method, const char *path);
void exchange_finish(struct exchange *x);
/* Forgets the answer; for another try. */
void     exchange_reset(struct exchange *x);
uint64_t exchange_body_bytes(const struct exchange *x);
/* The value of an answer's header, into out; false when it is absent or does not fit. */
bool exchange_header(const struct exchange *x, const char *name, char *out, size_t room);

/* A part of the answer's body. Fails with the thread's error set. */
gpurest_status exchange_take(struct exchange *x, const void *data, size_t bytes);
/* Where the next body bytes may be received directly: *room bytes; NULL: only through exchange_take. */
void *exchange_place(struct exchange *x, size_t *room);
/* `bytes` are in that place. */
gpurest_status exchange_placed(struct exchange *x, size_t bytes);
/* The answer is complete: was it as long as it had to be? */
gpurest_status exchange_end(struct exchange *x);

void progress_init(struct progress *p, gpurest_progress_cb report, void *arg, uint64_t total);
void progress_finish(struct progress *p);
/* p may be NULL. Fails with GPUREST_E_CANCELLED when the caller gives up. */
gpurest_status progress_add(struct progress *p, uint64_t bytes);

#endif
