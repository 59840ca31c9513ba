/* One host thread per block, for blocks that wait for each other. A waiting block yields its core at the back edges of its loop. */
#include "device/cpu/runtime/cooperative.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/log/crash.h"
#include "device/cpu/interp/cluster.h"
#include "device/cpu/interp/variants.h"
#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/launch.h"

enum { NO_CLUSTER = -1 };

struct gang;

struct member {
    pthread_t        thread;
    struct gang     *gang;
    uint32_t         rank; /* of its block in the cluster */
    struct block_run run;
};

/* Threads that run the blocks of one cluster, and then of another. A block alone is a cluster, too. */
struct gang {
    struct company   *company;
    struct member    *members; /* [company->size] */
    struct cluster    cluster;
    pthread_barrier_t meet;   /* its members, between clusters */
    int64_t           number; /* of the running cluster, or NO_CLUSTER: there is none for it; written by the member of rank 0 */
};

/* All gangs of a launch. */
struct company {
    struct grid_run      *grid;
    uint64_t              shared_bytes;
    cooperative_failed_fn failed;
    void                 *context;
    uint32_t              size;     /* of a cluster, in blocks */
    uint64_t              clusters; /* of the grid */
    atomic_ullong         next;     /* to be run */
    struct gang          *gangs;
    pthread_mutex_t       lock; /* guards `state` */
    pthread_cond_t        start;
    enum { FORMING, MARCHING, DISMISSED } state; /* nobody runs before all threads are there */
};

static unsigned threads_set; /* 0: one per core */

void cpu_host_threads_choose(unsigned threads)
{
    threads_set = threads < CPU_POOL_THREADS_MAX ? threads : CPU_POOL_THREADS_MAX;
}

uint32_t cpu_host_threads(void)
{
    cpu_set_t set;
    int       n = threads_set ? (int)threads_set : sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < 1 ? 1 : n > CPU_POOL_THREADS_MAX ? CPU_POOL_THREADS_MAX : (uint32_t)n;
}

uint32_t cpu_resident_blocks(void)
{
    return cpu_host_threads() * CPU_RESIDENT_BLOCKS_PER_CORE;
}

static void fail_launch(const struct company *c)
{
    struct problem why;

    problem_set(&why, STATUS_OUT_OF_MEMORY, "not enough host memory for blocks that run together");
    c->failed(c->context, &why);
}

static bool wait_for_start(struct company *c)
{
    bool marching;

    pthread_mutex_lock(&c->lock);
    while (c->state == FORMING)
        pthread_cond_wait(&c->start, &c->lock);
    marching = c->state == MARCHING;
    pthread_mutex_unlock(&c->lock);
    return marching;
}

static void start_all(struct company *c, bool complete)
{
    pthread_mutex_lock(&c->lock);
    c->state = complete ? MARCHING : DISMISSED;
    pthread_cond_broadcast(&c->start);
    pthread_mutex_unlock(&c->lock);
}

/* The number of the block of that rank. */
static uint64_t block_number(const struct cpu_launch *l, uint64_t cluster, uint32_t rank)
{
    const uint32_t *g = l->grid, *c = l->kernel->cluster;
    uint64_t        columns = g[0] / c[0], rows = g[1] / c[1];
    uint64_t        x = cluster % columns * c[0] + rank % c[0];
    uint64_t        y = cluster / columns % rows * c[1] + rank / c[0] % c[1];
    uint64_t        z = cluster / columns / rows * c[2] + rank / c[0] / c[1];

    return (z * g[1] + y) * g[0] + x;
}

/* By the member of rank 0, while the others wait. */
static void take_cluster(struct gang *g)
{
    struct company *c = g->company;
    uint64_t        number = atomic_load(c->grid->stop) == STOP_NONE ? atomic_fetch_add(&c->next, 1) : c->clusters;

    g->number = number < c->clusters ? (int64_t)number : NO_CLUSTER;
    if (c->size > 1 && g->number != NO_CLUSTER)
        cluster_begin(&g->cluster);
}

/* False: there is no more. */
static bool next_cluster(struct member *m)
{
    pthread_barrier_wait(&m->gang->meet);
    if (m->rank == 0)
        take_cluster(m->gang);
    pthread_barrier_wait(&m->gang->meet);
    return m->gang->number != NO_CLUSTER;
}

static void run_clusters(struct member *m)
{
    struct company *c = m->gang->company;

    while (next_cluster(m)) {
        if (!c->grid->code->by->blocks_run(&m->run, block_number(c->grid->launch, (uint64_t)m->gang->number, m->rank), 1))
            c->failed(c->context, &m->run.problem);
        if (c->size > 1)
            cluster_leave(&m->run);
    }
}

static void *run_member(void *context)
{
    struct member  *m = context;
    struct company *c = m->gang->company;
    bool            guarded;

    if (!wait_for_start(c))
        return NULL;
    guarded = fault_thread_start(&m->run.guard, c->grid->memory_base, c->grid->memory_span);
    crash_doing("running a kernel", NULL);
    m->run.host_thread = (uint32_t)(m->gang - c->gangs) * c->size % CPU_POOL_THREADS_MAX;
    m->run.rank = m->rank;
    m->run.cluster = c->size > 1 ? &m->gang->cluster : NULL;
    if (!guarded || c->grid->code->by->block_run_prepare(&m->run, c->grid, c->shared_bytes))
        fail_launch(c);
    run_clusters(m); /* with the others, who wait for it: after a failure there is no cluster to run */
    if (guarded)
        fault_thread_end();
    return NULL;
}

static uint32_t start_members(struct company *c, uint32_t count)
{
    uint32_t started = 0;

    for (; started < count; started++) {
        struct gang   *g = &c->gangs[started / c->size];
        struct member *m = &g->members[started % c->size];

        m->gang = g;
        m->rank = started % c->size;
        g->cluster.members[m->rank] = &m->run;
        if (pthread_create(&m->thread, NULL, run_member, m) != 0)
            break;
    }
    return started;
}

/* The gangs that could be made, all of `count` or fewer. */
static uint32_t make_gangs(struct company *c, struct member *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct gang *g = &c->gangs[i];

        g->company = c;
        g->members = &members[i * c->size];
        if (pthread_barrier_init(&g->meet, NULL, c->size) != 0)
            return i;
        if (!cluster_init(&g->cluster, c->size)) {
            pthread_barrier_destroy(&g->meet);
            return i;
        }
    }
    return count;
}

static void run_company(struct company *c, struct member *members, uint32_t count)
{
    uint32_t made = make_gangs(c, members, count), all = count * c->size;
    uint32_t started = made == count ? start_members(c, all) : 0;

    if (started < all)
        fail_launch(c);
    start_all(c, started == all);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(members[i].thread, NULL);
    for (uint32_t i = 0; i < started; i++)
        block_run_finish(&members[i].run);
    for (uint32_t i = 0; i < made; i++) {
        cluster_finish(&c->gangs[i].cluster);
        pthread_barrier_destroy(&c->gangs[i].meet);
    }
}

/* In a cooperative launch all blocks run at once. Else there are as many as this launch's host threads, or a cluster of more. */
static uint32_t gangs_of(const struct company *c, uint32_t host_threads)
{
    uint32_t wanted = (host_threads + c->size - 1) / c->size;

    return c->grid->launch->cooperative || c->clusters < wanted ? (uint32_t)c->clusters : wanted;
}

void cooperative_run(struct grid_run *grid, uint64_t blocks, uint32_t host_threads, uint64_t shared_bytes, cooperative_failed_fn failed,
                     void *context)
{
    const uint32_t *cluster = grid->launch->kernel->cluster;
    struct company  c = {.grid = grid,
                         .shared_bytes = shared_bytes,
                         .failed = failed,
                         .context = context,
                         .size = cluster[0] * cluster[1] * cluster[2],
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .start = PTHREAD_COND_INITIALIZER};
    struct member  *members;
    uint32_t        count;

    c.clusters = blocks / c.size;
    count = gangs_of(&c, host_threads);
    c.gangs = calloc(count, sizeof *c.gangs);
    members = calloc((size_t)count * c.size, sizeof *members);
    if (c.gangs && members)
        run_company(&c, members, count);
    else
        fail_launch(&c);
    free(c.gangs);
    free(members);
}
