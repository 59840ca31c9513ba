/* A client: its connections, its threads, and requests with retries. */
#ifndef GPUREST_SDK_CLIENT_H
#define GPUREST_SDK_CLIENT_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/workers.h"
#include "client/heartbeats.h"
#include "client/moves.h"
#include "transport/pool.h"

/* What gpurest_close cancels: an asynchronous operation that is not done. */
struct pending {
    struct cancel   cancel;
    struct pending *next, *previous; /* in the client's list, under its lock */
};

struct gpurest_client {
    atomic_uint           references; /* the user's, and one per session and operation */
    pid_t                 owner;
    struct pool           pool;
    struct moves          moves;
    struct workers        transfers, followers;
    struct heartbeats     heartbeats;
    int                   idle_ms, max_retries, bulk_connections;
    struct log            log;
    char                 *version;  /* JSON */
    atomic_uint_least64_t requests; /* sent so far, their retries included */
    atomic_int            spin_us;  /* of its exchanges; 0 unless who compiles this in sets it */
    pthread_mutex_t       lock;
    gpurest_progress_cb   progress; /* under lock, with its arg */
    void                 *progress_arg;
    gpurest_output_cb     output; /* under lock, with its arg */
    void                 *output_arg;
    struct pending       *pending; /* under lock */
    bool                  closed;
};

void client_hold(gpurest_client *c);
void client_drop(gpurest_client *c);
/* GPUREST_E_INVAL for NULL, GPUREST_E_FORK in another process. */
gpurest_status client_check(const gpurest_client *c);
/* Whether gpurest_close has begun. */
bool client_closed(gpurest_client *c);
/* Adds it to the client's list; false: the client is closed. */
bool client_add_pending(gpurest_client *c, struct pending *p);
void client_remove_pending(gpurest_client *c, struct pending *p);
/* Performs an exchange with retries; an answer other than 2xx is a failure. x->idle_ms 0: the client's. */
gpurest_status client_perform(gpurest_client *c, struct exchange *x);
/* One try, and again at other nodes if its session has gone there; answers of any status are a success. */
gpurest_status client_once(gpurest_client *c, struct exchange *x);
/* As client_perform, with `json` as the body unless NULL. */
gpurest_status client_json(gpurest_client *c, struct exchange *x, const char *json);
/* Asks for an answer after `seconds` at the latest, in a line of `header`; the connection may be idle meanwhile. also: ", return=minimal" or "". */
void client_set_wait(const gpurest_client *c, struct exchange *x, int seconds, const char *also, char *header, size_t room);
/* Initializes p for a transfer of `total` bytes. */
void client_progress(gpurest_client *c, struct progress *p, uint64_t total);
/* Hands over what a kernel printed. */
void client_output(gpurest_client *c, const char *text, bool truncated);
/* Copies at most the size that the caller's struct has. */
void struct_copy_out(void *out, const void *ours, size_t ours_bytes);
/* Copies the members that the caller's struct has over the defaults. False: struct_size is invalid. */
bool struct_copy_in(void *ours, size_t ours_bytes, const void *theirs);
/* Never 0. */
uint64_t random_u64(void);

#endif
