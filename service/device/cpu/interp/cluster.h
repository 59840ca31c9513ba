/* Clusters: blocks that run at the same time, each on a host thread of its own (device/cpu/runtime/cooperative.c), meet at a barrier and
 * access each other's shared memory. A block without others is a cluster, too, but has no struct cluster. */
#pragma once

#include <pthread.h>

#include "device/cpu/interp/interp.h"

/* An address of shared::cluster is an offset in a block's shared memory and, from this bit on, that block's rank + 1; or 0: the own. */
enum { CLUSTER_RANK_SHIFT = 24, CLUSTER_OFFSET_MASK = (1 << CLUSTER_RANK_SHIFT) - 1 };
static_assert((int)CPU_SHARED_BYTES_MAX <= (int)CLUSTER_OFFSET_MASK, "an offset leaves the bits of the rank alone");

struct cluster {
    uint32_t          blocks;
    struct block_run *members[CPU_CLUSTER_BLOCKS_MAX]; /* by rank; set, as what is above, before any block runs */
    pthread_mutex_t   lock;                            /* guards all below */
    pthread_cond_t    changed;                         /* the phase, or a block has ended */
    atomic_uint       phase;                           /* how often all have met; also read without the lock */
    uint32_t          running;                         /* blocks that have not ended, */
    uint32_t          arrived;                         /* and those of them whose threads have all arrived in this phase */
};

/* False: no memory. */
bool cluster_init(struct cluster *c, uint32_t blocks);
void cluster_finish(struct cluster *c);
/* Before its blocks run; none does. */
void cluster_begin(struct cluster *c);
/* A block has ended, by a fault or not. */
void cluster_leave(struct block_run *r);

/* The lanes of `a->current` wait; where all have arrived, some or all continue at once. */
void cluster_wait(struct block_run *r, struct activation *a, const struct op *o, uint32_t resume);
/* Lanes go on whose phase is over. True: any. */
bool cluster_open(struct block_run *r);
/* Those lanes left for good. */
void cluster_forget(struct block_run *r, const struct mask *m);
/* No lane of the block can run: sleeps until lanes can go on that wait for other blocks. False: no lane waits for another block. */
bool cluster_sleep(struct block_run *r);

/* That byte of shared memory of another block; NULL: there is none. `offset` is no place of the own memory. */
uint8_t *cluster_shared(const struct block_run *r, uint64_t offset, uint32_t bytes);
/* Whether an offset in the window of shared memory belongs to the own block. */
bool cluster_own(const struct block_run *r, uint64_t offset);
