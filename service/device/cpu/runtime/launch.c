/* Launches: checks a configuration, deals the blocks of a grid to a few host threads, collects the first fault. */
#include "device/cpu/runtime/launch.h"
#include "device/cpu/bounds.h"

#include <stdlib.h>

#include "base/deadline.h"
#include "base/log/crash.h"
#include "device/cpu/interp/variants.h"
#include "device/cpu/jit/jit.h"
#include "device/cpu/jit/native.h"
#include "device/cpu/ptx/ir.h"
#include "device/cpu/runtime/cooperative.h"
#include "device/cpu/runtime/heap.h"
#include "device/cpu/runtime/memcheck.h"
#include "device/cpu/vendor/vendor.h"

/* Launches of fewer threads begin on the caller alone: waking a helper costs more than most of them take. Helpers are called when a
 * launch turns out to take longer. */
enum { SMALL_GRID_THREADS = 4096, HELPER_WAKE_US = 50 };
/* Launches that will take less than this, by what blocks of the kernel took before, are small, too; and how many kernels are remembered. */
enum { WORTH_HELPERS_US = 2 * HELPER_WAKE_US, PACES = 64 };
/* Host threads take several blocks at once where there are many, but at most so many, and leave so many turns to each thread: taking them
 * one by one, two threads wait longer for the counter than a short block runs. Compiled code goes from block to block by itself: with calls for two
 * blocks each, saxpy took 1.06 times plain C's time, with all in one call 1.03 (A/B in turns, 2026-11-29). It looks at the clock at each call, so after
 * as many threads as 64 blocks can have. */
enum { BLOCKS_AT_ONCE = 64, TURNS = 64, THREADS_AT_ONCE = BLOCKS_AT_ONCE * CPU_BLOCK_THREADS_MAX };
/* Of compiled blocks of one row, each of several threads takes a quarter of its share of those that are left; of strips across blocks it leaves so many turns. */
enum { SHARES = 4, TURNS_OF_STRIPS = 16 };
/* Blocks whose atomics meet in the same cache lines may take longer on several threads than on one, where atomics also need no lock. So
 * kernels with such atomics begin on the caller alone. Helpers are sent away if, a while after they came, blocks do not end in less than
 * this many tenths of the time that they took alone. */
enum { ALONE_US = 100, TOGETHER_US = 150, WORTH_TENTHS = 9 };
/* How often a launch in the interpreter looks whether its compiled code is ready. */
enum { LOOK_FOR_CODE_US = 500 };
/* Processors pass memory between them in lines of this many bytes. */
enum { CACHE_LINE = 64 };
/* What CUDA's headers expect of the memory where blocks meet: its size in the first 4 bytes, the barrier in the next. */
enum { WORKSPACE_BYTES = 256 };

struct helper {
    struct cpu_engine *engine;
    pthread_t          thread;
    struct block_run   run;
    bool               started;
};

/* The caller's: how fast blocks end alone and with helpers. */
struct pace {
    uint64_t began;
    uint64_t call_at; /* when it calls helpers after all, or DEADLINE_NEVER */
    uint64_t look_at; /* when it checks whether they help, or DEADLINE_NEVER */
    uint64_t called;  /* when it called them, */
    uint64_t before;  /* how many blocks had been taken by then */
    bool     leaving; /* they were sent away, and some may still be at work */
    uint64_t code_at; /* when it looks for compiled code, or DEADLINE_NEVER */
};

/* What the caller's blocks of a kernel took the last time. A hint: another kernel may have taken the place of one that is gone. */
struct known_pace {
    const struct code *code;
    uint64_t           ns_per_block;
};

struct cpu_engine {
    struct cpu_memory         *memory;
    const struct cpu_textures *textures; /* NULL: none */
    struct cpu_output          output;
    struct cpu_heap            heap;
    unsigned                   threads; /* the caller included */
    struct helper             *helpers; /* [threads]; the first is the caller's own */
    pthread_mutex_t            lock;    /* guards all below but atomics */
    pthread_cond_t             start;
    pthread_cond_t             done;
    _Atomic(struct grid_run *) grid;     /* of the running launch; written by the caller, with the lock held */
    struct grid_run            compiled; /* what `grid` is once the launch has gone over to compiled code */
    uint64_t                   told;     /* until when the compiler knows what the launch took; DEADLINE_NEVER: it need not know */
    unsigned                   wanted;   /* helpers that still may join */
    unsigned                   busy;
    bool                       ending;
    struct problem             problem; /* the first fault of the launch */
    bool                       failed;
    uint64_t                   shared_bytes;
    uint64_t                   blocks;
    atomic_int                 stop;
    atomic_bool                cancelled;
    atomic_bool                sent_away; /* helpers take no more blocks */
    struct pace                pace;
    uint64_t                   own_blocks;   /* that the caller ran in this launch */
    struct known_pace          known[PACES]; /* the caller's; by the code's address */
    _Alignas(CACHE_LINE) atomic_ullong
        next; /* the next block to take: ascending, so that waiting for lower blocks makes progress. In a cache line of its own, away from what other threads read all the time */
    _Alignas(CACHE_LINE) uint64_t workspace; /* device memory for cooperative launches; 0 until the first */
};

static void record_problem(struct cpu_engine *e, const struct problem *p)
{
    pthread_mutex_lock(&e->lock);
    if (!e->failed) {
        e->failed = true;
        e->problem = *p;
    }
    pthread_mutex_unlock(&e->lock);
    atomic_compare_exchange_strong(&e->stop, &(int){STOP_NONE}, STOP_FAILED);
}

/* Calls as many as there is work for. From now on other threads access the grid's memory. */
static void call_helpers(struct cpu_engine *e)
{
    e->pace.call_at = DEADLINE_NEVER;
    pthread_mutex_lock(&e->lock);
    e->grid->contended = true;
    e->wanted = e->threads - 1 < e->blocks - 1 ? e->threads - 1 : (unsigned)(e->blocks - 1);
    if (e->wanted)
        pthread_cond_broadcast(&e->start);
    pthread_mutex_unlock(&e->lock);
}

/* They finish their current blocks. */
static void send_away(struct cpu_engine *e)
{
    atomic_store(&e->sent_away, true);
    pthread_mutex_lock(&e->lock);
    e->wanted = 0;
    pthread_mutex_unlock(&e->lock);
    e->pace.leaving = true;
}

/* When the last has left, only the caller accesses the grid's memory again. */
static void see_off(struct cpu_engine *e)
{
    pthread_mutex_lock(&e->lock);
    if (!e->busy) {
        e->grid->contended = false;
        e->pace.leaving = false;
    }
    pthread_mutex_unlock(&e->lock);
}

static uint32_t local_bytes_of(const struct code *code)
{
    return code->local_bytes + (code->calls || code->allocates ? CPU_STACK_BYTES : 0);
}

/* Each thread goes over before its next blocks. */
static void change_over(struct cpu_engine *e, const struct code *code)
{
    pthread_mutex_lock(&e->lock);
    e->compiled = *e->grid;
    e->compiled.code = code;
    e->compiled.local_bytes = local_bytes_of(code);
    atomic_store(&e->grid, &e->compiled);
    pthread_mutex_unlock(&e->lock);
}

/* Of the interpreter's time. Whether the compiler wants to know more of it, since compiled code may still come. */
static bool tell_compiler(struct cpu_engine *e, const struct cpu_launch *l, uint64_t now)
{
    bool more = jit_spent(l, now - e->told);

    e->told = more ? now : DEADLINE_NEVER;
    return more;
}

static void look_for_code(struct cpu_engine *e, uint64_t now)
{
    const struct cpu_launch *l = e->grid->launch;
    bool                     later = tell_compiler(e, l, now);
    const struct code       *code = jit_code_for(l, &later);

    e->pace.code_at = later ? now + LOOK_FOR_CODE_US * NS_PER_US : DEADLINE_NEVER;
    if (code->native) {
        e->told = DEADLINE_NEVER;
        change_over(e, code);
    }
}

/* The caller's block waits, perhaps for a block that nobody has taken yet: helpers are needed. */
static void call_company(struct cpu_engine *e)
{
    if (e->pace.call_at == DEADLINE_NEVER && !atomic_load(&e->sent_away))
        return;
    e->pace.look_at = DEADLINE_NEVER;
    e->pace.leaving = false;
    atomic_store(&e->sent_away, false);
    call_helpers(e);
}

static double ns_per_block(uint64_t ns, uint64_t blocks)
{
    return (double)ns / (double)blocks;
}

/* After each of the caller's blocks. */
static void keep_pace(struct cpu_engine *e)
{
    struct pace *p = &e->pace;
    uint64_t     now, taken;

    if (p->leaving)
        see_off(e);
    if (p->call_at == DEADLINE_NEVER && p->look_at == DEADLINE_NEVER && p->code_at == DEADLINE_NEVER)
        return;
    now = now_ns();
    if (now >= p->code_at)
        look_for_code(e, now);
    taken = atomic_load(&e->next);
    if (p->call_at != DEADLINE_NEVER && now >= p->call_at) {
        p->called = now;
        p->before = taken;
        p->look_at = e->grid->code->meets ? now + TOGETHER_US * NS_PER_US : DEADLINE_NEVER;
        call_helpers(e);
    } else if (p->look_at != DEADLINE_NEVER && now >= p->look_at && taken > p->before + e->threads && taken < e->blocks) {
        p->look_at = DEADLINE_NEVER;
        if (ns_per_block(now - p->called, taken - p->before) * 10 >= ns_per_block(p->called - p->began, p->before) * WORTH_TENTHS)
            send_away(e);
    }
}

/* For the blocks of that grid. */
static bool prepare(struct cpu_engine *e, struct helper *h, struct grid_run *grid)
{
    enum status    st = grid->code->by->block_run_prepare(&h->run, grid, e->shared_bytes);
    struct problem why;

    if (!st)
        return true;
    problem_set(&why, st, "not enough host memory for a block of threads");
    record_problem(e, &why);
    return false;
}

static uint64_t between(uint64_t n, uint64_t least, uint64_t most)
{
    return n < least ? least : n > most ? most : n;
}

/* How many blocks are taken together. Of compiled blocks of one row, ever fewer towards the end, so that threads end together. Those of several rows go
 * through compiled code chunk by chunk, and a fault is the first one of all that were taken: many of them only where they run as strips. */
static uint64_t blocks_at_once(const struct cpu_engine *e, const struct grid_run *grid)
{
    const struct code_native *native = grid->code->native;
    const uint32_t           *b = grid->launch->block;
    uint64_t                  threads = e->threads, taken = atomic_load_explicit(&e->next, memory_order_relaxed);
    uint64_t                  left = taken < e->blocks ? e->blocks - taken : 0;

    if (native && native->many && b[1] == 1)
        return between(threads > 1 ? left / (threads * SHARES) : left, 1, THREADS_AT_ONCE / (b[0] * b[2]));
    if (native && native->many && native->strip && native->across && b[0] == native->lanes)
        return between(threads > 1 ? e->blocks / (threads * TURNS_OF_STRIPS) : e->blocks, 1, BLOCKS_AT_ONCE);
    return between(e->blocks / (threads * TURNS), 1, BLOCKS_AT_ONCE);
}

static void run_blocks(struct cpu_engine *e, struct helper *h)
{
    struct grid_run *grid = NULL;

    while (atomic_load_explicit(&e->stop, memory_order_relaxed) == STOP_NONE) {
        struct grid_run *now = atomic_load_explicit(&e->grid, memory_order_acquire);
        bool             own = h == &e->helpers[0];
        uint64_t         number, end, at_once;

        if (!own && atomic_load_explicit(&e->sent_away, memory_order_relaxed))
            return;
        if (now != grid && !prepare(e, h, now))
            return;
        grid = now;
        at_once = blocks_at_once(e, grid);
        number = atomic_fetch_add(&e->next, at_once);
        if (number >= e->blocks)
            return;
        end = number + at_once < e->blocks ? number + at_once : e->blocks;
        if (!grid->code->by->blocks_run(&h->run, number, end - number)) {
            record_problem(e, &h->run.problem);
            return;
        }
        if (own) {
            e->own_blocks += end - number;
            keep_pace(e);
        }
    }
}

static void *run_helper(void *context)
{
    struct helper     *h = context;
    struct cpu_engine *e = h->engine;

    if (!fault_thread_start(&h->run.guard, cpu_memory_base(e->memory), cpu_memory_span(e->memory)))
        return NULL;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        while (!e->ending && !e->wanted)
            pthread_cond_wait(&e->start, &e->lock);
        if (e->ending)
            break;
        e->wanted--;
        e->busy++;
        pthread_mutex_unlock(&e->lock);
        crash_doing("running a kernel", NULL);
        run_blocks(e, h);
        crash_doing(NULL, NULL);
        pthread_mutex_lock(&e->lock);
        if (--e->busy == 0)
            pthread_cond_signal(&e->done);
    }
    pthread_mutex_unlock(&e->lock);
    fault_thread_end();
    return NULL;
}

static unsigned host_threads(unsigned asked)
{
    return !asked ? cpu_host_threads() : asked > CPU_POOL_THREADS_MAX ? CPU_POOL_THREADS_MAX : asked;
}

static void start_helpers(struct cpu_engine *e)
{
    for (unsigned i = 0; i < e->threads; i++) {
        e->helpers[i].engine = e;
        e->helpers[i].run.host_thread = i;
        if (i > 0)
            e->helpers[i].started = pthread_create(&e->helpers[i].thread, NULL, run_helper, &e->helpers[i]) == 0;
    }
}

enum status cpu_engine_create(struct cpu_memory *memory, unsigned threads, struct cpu_engine **out)
{
    struct cpu_engine *e = fault_install() ? aligned_alloc(CACHE_LINE, sizeof *e) : NULL;

    if (!e)
        return STATUS_OUT_OF_MEMORY;
    memset(e, 0, sizeof *e);
    e->memory = memory;
    e->threads = host_threads(threads);
    e->helpers = calloc(e->threads, sizeof *e->helpers);
    if (!e->helpers) {
        free(e);
        return STATUS_OUT_OF_MEMORY;
    }
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->start, NULL);
    pthread_cond_init(&e->done, NULL);
    pthread_mutex_init(&e->output.lock, NULL);
    buf_init(&e->output.text, KERNEL_OUTPUT_BYTES_MAX);
    cpu_heap_init(&e->heap, memory);
    start_helpers(e);
    *out = e;
    return STATUS_OK;
}

void cpu_engine_use_textures(struct cpu_engine *e, const struct cpu_textures *textures)
{
    e->textures = textures;
}

void cpu_engine_destroy(struct cpu_engine *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->ending = true;
    pthread_cond_broadcast(&e->start);
    pthread_mutex_unlock(&e->lock);
    for (unsigned i = 0; i < e->threads; i++) {
        if (e->helpers[i].started)
            pthread_join(e->helpers[i].thread, NULL);
        block_run_finish(&e->helpers[i].run);
    }
    cpu_heap_finish(&e->heap);
    if (e->workspace)
        cpu_memory_free(e->memory, e->workspace);
    buf_finish(&e->output.text);
    pthread_mutex_destroy(&e->output.lock);
    pthread_cond_destroy(&e->done);
    pthread_cond_destroy(&e->start);
    pthread_mutex_destroy(&e->lock);
    free(e->helpers);
    free(e);
}

static uint64_t shared_total(const struct cpu_launch *l)
{
    return l->shared_bytes ? (uint64_t)l->module->dynamic_shared_offset + l->shared_bytes : l->kernel->shared_bytes;
}

static uint32_t cluster_blocks(const struct cpu_launch *l)
{
    return l->kernel->cluster[0] * l->kernel->cluster[1] * l->kernel->cluster[2];
}

static bool runs_together(const struct cpu_launch *l)
{
    return l->cooperative || cluster_blocks(l) > 1;
}

static enum status check_clusters(const struct cpu_launch *l, struct problem *why)
{
    const uint32_t *c = l->kernel->cluster;

    if (cluster_blocks(l) > CPU_CLUSTER_BLOCKS_MAX)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the kernel has clusters of %u blocks; at most %d are possible",
                           cluster_blocks(l), CPU_CLUSTER_BLOCKS_MAX);
    for (unsigned i = 0; i < 3; i++) {
        if (l->grid[i] % c[i])
            return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID,
                               "grid dimension %u is %u; the kernel's clusters of %u x %u x %u blocks need a multiple of %u", i, l->grid[i],
                               c[0], c[1], c[2], c[i]);
    }
    return STATUS_OK;
}

static enum status check_cooperation(const struct cpu_launch *l, struct problem *why)
{
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    uint32_t line = l->kernel->code ? ((const struct code *)l->kernel->code)->grid_line : 0;

    if (l->cooperative && blocks > cpu_resident_blocks())
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID,
                           "the cooperative launch has %llu blocks; at most %u run at once on this device", (unsigned long long)blocks,
                           cpu_resident_blocks());
    if (!l->cooperative && line)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID,
                           "the kernel waits for its whole grid (PTX line %u): the launch must be cooperative", line);
    return STATUS_OK;
}

enum status cpu_launch_check(const struct cpu_launch *l, struct problem *why)
{
    static const uint32_t grid_max[3] = {INT32_MAX, 65535, 65535}, block_max[3] = {1024, 1024, 64};
    const uint32_t       *required = l->kernel->required_block;
    uint64_t              threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];

    for (unsigned i = 0; i < 3; i++) {
        if (l->grid[i] < 1 || l->grid[i] > grid_max[i])
            return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "grid dimension %u must be 1 to %u", i, grid_max[i]);
        if (l->block[i] < 1 || l->block[i] > block_max[i])
            return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "block dimension %u must be 1 to %u", i, block_max[i]);
    }
    if (threads > CPU_BLOCK_THREADS_MAX || threads > l->kernel->max_threads)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the block has %llu threads; this kernel allows at most %u",
                           (unsigned long long)threads,
                           l->kernel->max_threads < CPU_BLOCK_THREADS_MAX ? l->kernel->max_threads : CPU_BLOCK_THREADS_MAX);
    if (required[0] && memcmp(required, l->block, sizeof l->block) != 0)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "this kernel allows blocks of %u x %u x %u threads only", required[0],
                           required[1], required[2]);
    if (shared_total(l) > CPU_SHARED_BYTES_MAX)
        return problem_set(why, STATUS_LAUNCH_CONFIG_INVALID, "the block needs %llu bytes of shared memory; at most %d are possible",
                           (unsigned long long)shared_total(l), CPU_SHARED_BYTES_MAX);
    if (!l->kernel->code || l->params_bytes < l->kernel->params_bytes)
        return problem_set(why, STATUS_ARGUMENT_MISMATCH, "got %u bytes of parameters; the kernel needs %u", l->params_bytes,
                           l->kernel->params_bytes);
    return check_clusters(l, why) ? STATUS_LAUNCH_CONFIG_INVALID : check_cooperation(l, why);
}

static bool is_small(const struct cpu_launch *l, uint64_t blocks)
{
    return blocks < 2 || blocks * l->block[0] * l->block[1] * l->block[2] < SMALL_GRID_THREADS;
}

static struct known_pace *pace_of(struct cpu_engine *e, const struct code *code)
{
    return &e->known[(uintptr_t)code / sizeof *code % PACES];
}

/* By what its blocks took before. */
static bool is_short(struct cpu_engine *e, const struct code *code)
{
    const struct known_pace *p = pace_of(e, code);

    return p->code == code && p->ns_per_block < WORTH_HELPERS_US * NS_PER_US / e->blocks;
}

static void remember_pace(struct cpu_engine *e, const struct code *code)
{
    if (e->own_blocks)
        *pace_of(e, code) = (struct known_pace){code, (now_ns() - e->pace.began) / e->own_blocks};
}

static void deal_blocks(struct cpu_engine *e, struct grid_run *grid)
{
    bool alone = e->threads == 1 || e->blocks == 1, brief = !alone && is_short(e, grid->code),
         later = !alone && (is_small(grid->launch, e->blocks) || grid->code->meets || brief);
    uint64_t first_us = brief ? WORTH_HELPERS_US : grid->code->meets ? ALONE_US : HELPER_WAKE_US;

    pthread_mutex_lock(&e->lock);
    atomic_store(&e->grid, grid);
    e->wanted = 0;
    pthread_mutex_unlock(&e->lock);
    atomic_store(&e->sent_away, false);
    e->pace = (struct pace){.began = now_ns(),
                            .call_at = later ? deadline_after_ns(first_us * NS_PER_US) : DEADLINE_NEVER,
                            .look_at = DEADLINE_NEVER,
                            .code_at = e->told == DEADLINE_NEVER ? DEADLINE_NEVER : e->told + LOOK_FOR_CODE_US * NS_PER_US};
    if (!alone && !later)
        call_helpers(e);
    crash_doing("running a kernel", NULL);
    run_blocks(e, &e->helpers[0]);
    crash_doing(NULL, NULL);
    if (!alone)
        remember_pace(e, grid->code);
    pthread_mutex_lock(&e->lock);
    e->wanted = 0;
    while (e->busy)
        pthread_cond_wait(&e->done, &e->lock);
    atomic_store(&e->grid, NULL);
    pthread_mutex_unlock(&e->lock);
}

static void start_launch(struct cpu_engine *e, const struct cpu_launch *l, struct grid_run *grid)
{
    bool               later;
    const struct code *code = jit_code_for(l, &later);

    *grid = (struct grid_run){
        .launch = l,
        .code = code,
        .engine = e,
        .output = &e->output,
        .heap = &e->heap,
        .stop = &e->stop,
        .company = runs_together(l) || e->threads == 1 ? NULL : call_company,
        .memory = e->memory,
        .textures = e->textures,
        .shadow = cpu_memory_shadow(e->memory),
        .memory_base = cpu_memory_base(e->memory),
        .memory_span = cpu_memory_span(e->memory),
        .deadline = l->deadline_ms ? deadline_after_ms(l->deadline_ms) : DEADLINE_NEVER,
        .local_bytes = local_bytes_of(code),
    };
    e->shared_bytes = shared_total(l);
    e->blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    grid->contended = e->blocks > 1 && runs_together(l);
    e->failed = false;
    e->told = later ? now_ns() : DEADLINE_NEVER;
    atomic_store(&e->next, 0);
    e->own_blocks = 0;
    atomic_store(&e->stop, atomic_load(&e->cancelled) ? STOP_CANCEL : STOP_NONE);
}

static enum status take_workspace(struct cpu_engine *e, struct grid_run *grid, struct problem *why)
{
    uint32_t size = WORKSPACE_BYTES;

    if (!e->workspace && cpu_memory_alloc(e->memory, WORKSPACE_BYTES, &e->workspace))
        return problem_set(why, STATUS_DEVICE_MEMORY_EXHAUSTED, "cannot allocate device memory for a cooperative launch");
    grid->workspace = e->workspace;
    cpu_shadow_set(grid->shadow, e->workspace, WORKSPACE_BYTES, SHADOW_WRITTEN);
    memset((void *)(uintptr_t)e->workspace, 0, WORKSPACE_BYTES);
    memcpy((void *)(uintptr_t)e->workspace, &size, sizeof size);
    return STATUS_OK;
}

static void block_failed(void *context, const struct problem *p)
{
    record_problem(context, p);
}

/* On the caller's thread and helpers, or, where blocks wait for each other, on a thread per block. */
static enum status run_grid(struct cpu_engine *e, struct grid_run *grid, struct problem *why)
{
    struct helper *own = &e->helpers[0];
    enum status    st = grid->launch->cooperative ? take_workspace(e, grid, why) : STATUS_OK;

    if (st)
        return st;
    if (runs_together(grid->launch)) {
        cooperative_run(grid, e->blocks, e->threads, e->shared_bytes, block_failed, e);
        return STATUS_OK;
    }
    if (!fault_thread_start(&own->run.guard, grid->memory_base, grid->memory_span))
        return problem_set(why, STATUS_OUT_OF_MEMORY, "cannot allocate a signal stack");
    deal_blocks(e, grid);
    fault_thread_end();
    return STATUS_OK;
}

static enum status run_plan(struct cpu_engine *e, const struct cpu_launch *l, struct problem *why)
{
    struct cpu_plan_watch watch = {.stop = &e->stop, .deadline = l->deadline_ms ? deadline_after_ms(l->deadline_ms) : DEADLINE_NEVER};
    enum status           st;

    atomic_store(&e->stop, atomic_load(&e->cancelled) ? STOP_CANCEL : STOP_NONE);
    crash_doing("running a library", NULL);
    st = cpu_plan_run(l->plan, l->params, &watch, why);
    crash_doing(NULL, NULL);
    return st;
}

enum status cpu_engine_run(struct cpu_engine *e, const struct cpu_launch *l, struct problem *why)
{
    struct grid_run grid;
    enum status     st;

    if (l->plan)
        return run_plan(e, l, why);
    st = cpu_launch_check(l, why);
    if (st)
        return st;
    start_launch(e, l, &grid);
    st = run_grid(e, &grid, why);
    if (st)
        return st;
    if (e->told != DEADLINE_NEVER)
        tell_compiler(e, l, now_ns());
    if (e->failed) {
        if (why)
            *why = e->problem;
        return e->problem.status;
    }
    return atomic_load(&e->stop) == STOP_CANCEL ? problem_set(why, STATUS_CANCELLED, "cancelled") : STATUS_OK;
}

void cpu_engine_cancel(struct cpu_engine *e)
{
    atomic_store(&e->cancelled, true);
    atomic_store(&e->stop, STOP_CANCEL);
}

void cpu_engine_take_output(struct cpu_engine *e, struct buf *out)
{
    struct span text;

    pthread_mutex_lock(&e->output.lock);
    text = buf_span(&e->output.text);
    if (text.bytes > out->max - out->bytes)
        text = span_first(text, out->max - out->bytes);
    buf_add_span(out, text);
    buf_finish(&e->output.text);
    buf_init(&e->output.text, KERNEL_OUTPUT_BYTES_MAX);
    pthread_mutex_unlock(&e->output.lock);
}

enum status cpu_code_load_as(struct ptx_module *m, const struct interpreter *by, unsigned options, struct problem *why)
{
    enum status st;

    by = by ? by : interpreter_best();
    for (uint32_t i = 0; i < m->functions_count; i++) {
        struct code *code = NULL;

        st = m->functions[i].defined ? by->code_create(m, &m->functions[i], options, &code, why) : STATUS_OK;
        if (st) {
            cpu_code_unload(m);
            return st;
        }
        if (code)
            code->by = by;
        m->functions[i].code = code;
    }
    st = grid_lines_find(m, why);
    if (st)
        cpu_code_unload(m);
    return st;
}

void cpu_code_unload(struct ptx_module *m)
{
    jit_forget(m);
    for (uint32_t i = 0; i < m->functions_count; i++) {
        code_destroy((struct code *)(uintptr_t)m->functions[i].code);
        m->functions[i].code = NULL;
    }
}
