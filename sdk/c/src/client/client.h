/* A client from within: its pool, its threads, its way of doing a request with retries. */
#ifndef GPUREST_SDK_CLIENT_H
#define GPUREST_SDK_CLIENT_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/workers.h"
#include "transport/pool.h"

/* What gpurest_close cancels: an asynchronous operation that is not done. */
struct pending {
    struct cancel   cancel;
    struct pending *next, *previous; /* in the client's list, under its lock */
};

struct gpurest_client {
    atomic_uint    references; /* the user's, and one per session and operation */
    pid_t          owner;
    struct pool    pool;
    struct workers transfers, followers;
    int            idle_ms, max_retries, bulk_connections;
    void (*log)(void *arg, int level, const char *message);
    void               *log_arg;
    char               *version; /* JSON */
    pthread_mutex_t     lock;
    gpurest_progress_cb progress; /* under lock, with its arg */
    void               *progress_arg;
    struct pending     *pending; /* under lock */
    bool                closed;
};

void client_hold(gpurest_client *c);
void client_drop(gpurest_client *c);
/* Is it ours to use? GPUREST_E_INVAL for NULL, GPUREST_E_FORK. */
gpurest_status client_check(const gpurest_client *c);
/* Into the client's list; false: the client is closed. */
bool client_add_pending(gpurest_client *c, struct pending *p);
void client_remove_pending(gpurest_client *c, struct pending *p);
/* An exchange with retries; any answer but a success is a failure. x->idle_ms 0: the client's. */
gpurest_status client_perform(gpurest_client *c, struct exchange *x);
/* One try; answers of any status are a success. */
gpurest_status client_try(gpurest_client *c, struct exchange *x);
/* A request with an optional JSON body, its answer's text in x->body. */
gpurest_status client_json(gpurest_client *c, struct exchange *x, const char *json);
/* Asks for an answer after `seconds` at the latest, in a line of `header`; the connection may be idle meanwhile. */
void client_set_wait(const gpurest_client *c, struct exchange *x, int seconds, char *header, size_t room);
/* For a transfer of so many bytes; p->report stays NULL when nobody wants to know. */
void client_progress(gpurest_client *c, struct progress *p, uint64_t total);
/* Into *out, its size first as always: at most what the caller's version of the struct has. */
void struct_copy_out(void *out, const void *ours, size_t ours_bytes);
/* `ours` holds defaults; members that the caller's version has replace them. False: struct_size is impossible. */
bool struct_copy_in(void *ours, size_t ours_bytes, const void *theirs);
/* 62 random bits or so; never 0. */
uint64_t random_u64(void);

#endif
