/* What fake_worker.c and fake_pool.c share. Everything under fake.lock unless it says otherwise. */
#ifndef GPUREST_TESTS_FAKE_STATE_H
#define GPUREST_TESTS_FAKE_STATE_H

#include <pthread.h>

#include "support/fake_worker.h"

struct job {
    enum message       kind;
    union message_body body;
    struct call       *call;
    enum status        forced;
    struct job        *next;
};

struct allocation {
    void              *data;
    struct allocation *next;
};

struct graph {
    unsigned char *bytes; /* the list */
    size_t         size;
    uint32_t       id;
    struct graph  *next;
};

enum { FAKE_SLICES_MAX = 64 };

struct worker {
    pthread_t          thread;
    pthread_mutex_t    drain; /* held around events */
    struct job        *first;
    unsigned           unfinished;
    uint64_t           numbers, events;
    bool               dead;
    struct problem     end;
    struct allocation *allocations;
    bool               image_bad, image_prints; /* of the one loader */
    struct graph      *graphs;
    uint32_t           graph_number;
    uint32_t           modules, streams;
    pthread_mutex_t    staging_lock; /* of the next three */
    bool               used[FAKE_SLICES_MAX];
    struct waker      *waiters;
    unsigned           slices;
    unsigned char     *staging;
};

struct fake_state {
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    int             fail_at, die_at;
    enum status     fail_status, fail_take;
    bool            released, held;
    unsigned        running, queued, allocations, workers, modules_loaded, slices, graphs;
    unsigned        slices_used; /* atomic */
    uint64_t        compiles;
    bool            no_spare, returns_held;
    unsigned        allocations_max; /* 0: no bound */
    unsigned        refused;         /* allocations for that bound */
    struct device_memory memory; /* what MEMORY_INFO tells; MEM_TRIM makes reserved what is allocated */
};

extern struct fake_state fake;

void *fake_worker_main(void *worker);

#endif
