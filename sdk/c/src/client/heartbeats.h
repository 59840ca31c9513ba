/* A client's thread that keeps what has a lease alive: a request now and then, where no other was made. */
#ifndef GPUREST_SDK_HEARTBEATS_H
#define GPUREST_SDK_HEARTBEATS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cancel.h"

/* What has a lease: a session. */
struct leased {
    uint64_t              lease_ms; /* 0: none, then all functions do nothing */
    atomic_uint_least64_t asked_ms; /* when the last request was made, by clock_ms() */
    uint64_t              beaten_ms;
    /* Makes the request. False: no more are needed. *failed: the next one is to come sooner. */
    bool (*beat)(struct leased *l, struct cancel *cancel, bool *failed);
    struct leased *next; /* in the list, as below */
    bool           listed, busy;
};

/* The thread starts with the first lease and ends with the client; without a lease it sleeps. */
struct heartbeats {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    pthread_t       thread;
    struct leased  *first;
    struct cancel   cancel;
    bool            started, stopping;
};

void heartbeats_init(struct heartbeats *h);
/* False: no thread can be created, or the client is being closed; the lease is then renewed by the caller's requests alone. */
bool heartbeats_add(struct heartbeats *h, struct leased *l);
/* Waits for a heartbeat of it that is under way. Again is fine. */
void heartbeats_remove(struct heartbeats *h, struct leased *l);
/* Ends the thread. */
void heartbeats_stop(struct heartbeats *h);
void heartbeats_finish(struct heartbeats *h);
/* A request is made now: the next heartbeat can wait. */
void leased_note(struct leased *l);

#endif
