/* What fake_worker.c and fake_pool.c share. Everything under fake.lock unless it says otherwise. */
#ifndef GPUREST_TESTS_FAKE_STATE_H
#define GPUREST_TESTS_FAKE_STATE_H

#include <pthread.h>

#include "base/waitlist.h"
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
    size_t             mapped; /* of a shared one; 0: it is malloc'ed */
    int                fd;
    struct allocation *next;
};

/* Memory of a client's. */
struct host {
    unsigned char *data;
    size_t         bytes;
    uint64_t       beside;
    uint32_t       id;
    struct host   *next;
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
    uint64_t           numbers;
    uint64_t           done[256]; /* the last calls whose ends were told, each at the place of its number */
    bool               dead;
    struct waker      *end_waker;
    struct worker     *next_watched;
    bool               lingers; /* though dead it is not gone before fake.linger_over */
    struct problem     end;
    struct allocation *allocations;
    unsigned           cached;                  /* freed and kept */
    bool               image_bad, image_prints; /* of the one loader */
    struct graph      *graphs;
    uint32_t           graph_number;
    struct host       *hosts;
    uint32_t           host_number;
    uint32_t           modules, streams;
    pthread_mutex_t    staging_lock; /* of the next three */
    bool               used[FAKE_SLICES_MAX];
    struct waitlist    waiters;
    unsigned           slices;
    unsigned char     *staging;
};

struct fake_state {
    struct worker       *watched; /* whose ends are to be told */
    pthread_mutex_t      lock;
    pthread_cond_t       changed;
    int                  fail_at, die_at;
    enum status          fail_status, fail_take;
    bool                 released, held;
    unsigned             running, queued, allocations, workers, modules_loaded, slices, graphs;
    unsigned             slices_used; /* atomic */
    uint64_t             compiles;
    bool                 no_spare, returns_held;
    uint32_t             sharing;         /* enum device_sharing */
    unsigned             hosts;           /* mapped */
    bool                 lies;            /* about the size of shared allocations */
    unsigned             allocations_max; /* 0: no bound */
    unsigned             late, late_left; /* refusals after memory was given back, in all and still to come */
    bool                 caches;
    bool                 linger, linger_over; /* workers that are killed now are not gone; they all are */
    bool                 take_failed;
    unsigned             cached;  /* allocations freed and kept, of all workers */
    bool                 room;    /* for one more worker */
    unsigned             refused; /* allocations for that bound */
    float                gpu_us;  /* what kernels took */
    struct device_memory memory;  /* what MEMORY_INFO tells; MEM_TRIM makes reserved what is allocated */
};

extern struct fake_state fake;

void *fake_worker_main(void *worker);

/* ---- fake_share.c ---- */
enum status fake_share_allocate(struct worker *w, const struct msg_mem_alloc_shared *m, struct msg_mem_alloc_shared_reply *reply);
enum status fake_host_map(struct worker *w, const struct msg_host_map *m, uint32_t *id);
/* The one of that id, if that is not 0, and those that belong to that allocation. */
void           fake_host_unmap(struct worker *w, uint32_t id, uint64_t beside);
unsigned char *fake_piece(struct worker *w, uint32_t host, uint64_t offset);
/* Under fake.lock: whether one more fits, and what a free leaves. */
bool fake_fits(struct worker *w);
void fake_freed(struct worker *w);
void fake_trim(struct worker *w);
/* Under fake.lock. */
void fake_allocation_free(struct allocation *a);
void fake_hosts_drop(struct worker *w);

#endif
