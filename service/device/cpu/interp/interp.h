/* The interpreter: executes a decoded function for all threads of a block in lockstep.
 * A running block belongs to one host thread; nothing here is shared except device memory and the stop flag. */
#pragma once

#include <stdatomic.h>

#include "base/arena.h"
#include "base/problem.h"
#include "device/cpu/bounds.h"
#include "device/cpu/interp/lanes.h"
#include "device/cpu/runtime/fault.h"
#include "device/cpu/runtime/memory.h"
#include "device/cpu/runtime/texture.h"

struct interpreter;
struct ptx_module;
struct ptx_function;
struct affine_value;
struct code_native;
struct native_call;
struct cluster;

/* Generic addresses of the spaces that are not device memory lie above every host address. An address in the space is the offset from
 * its window. */
#define SHARED_WINDOW (1ull << 48)
#define LOCAL_WINDOW  (1ull << 49)
#define PARAM_WINDOW  (1ull << 50)
#define WINDOW_BYTES  (1ull << 32)

/* The last barrier is the cluster's; programs name the others. */
enum { BARRIERS = 17, CLUSTER_BARRIER = 16, NO_BARRIER = 255, NO_BLOCK = UINT32_MAX };

enum block_end { END_FALL, END_BRANCH, END_TABLE, END_RETURN, END_EXIT, END_BARRIER };

/* A basic block: its operations, then one way to leave. Barriers end a block, warp operations begin one. */
struct code_block {
    uint32_t        first, count;           /* of ops */
    uint32_t        insn_first, insn_count; /* of the function's instructions, the leaving one included */
    enum block_end  end;
    bool            warp_first; /* its first operation needs all named members of its warp */
    bool            spins;      /* leaving backwards closes a loop with an atomic or volatile read: a lane may be waiting in it */
    uint32_t        members;    /* warp_first: the place of that operation's member mask */
    uint32_t        target;
    struct op       last;         /* guard, operands and text of the leaving instruction */
    uint32_t        guard_affine; /* END_BRANCH: of the guard, or NO_AFFINE */
    const uint32_t *table;        /* END_TABLE: the targets, borrowed from code */
    uint32_t        table_count;
};

/* Values that fill an array before the function runs. */
struct code_constant {
    uint32_t place;
    uint32_t width;
    uint64_t value;
    uint32_t affine; /* or NO_AFFINE */
};

/* A special register that the function reads, and the place of its array. */
struct code_special {
    uint32_t place;
    uint32_t width;
    int      which;  /* enum special */
    uint32_t affine; /* or NO_AFFINE */
    bool     wanted; /* as an array, too */
};

/* A function ready to run, for any number of threads. Made at load, immutable. */
enum { GRID_LINE_OF_CALL = UINT32_MAX }; /* in the device's own functions, which have no lines */

struct code {
    const struct interpreter *by; /* runs it */
    struct op                *ops;
    uint32_t                  ops_count;
    struct op                *prologue; /* for all lanes, once per launch and host thread: results that do not depend on the block */
    uint32_t                  prologue_count;
    struct code_block        *blocks;
    uint32_t                  blocks_count;
    struct code_constant     *constants;
    uint32_t                  constants_count;
    struct code_special      *specials;
    uint32_t                  specials_count;
    uint32_t                  affine_count; /* of affine values (device/cpu/interp/affine.h) */
    uint32_t                  frame_bytes;  /* per lane: registers, constants, temporaries; places lie below it */
    uint32_t                  param_bytes;  /* per lane: .param variables of the function and of its calls */
    uint32_t                  local_bytes;  /* per lane */
    bool                      calls;        /* needs a stack */
    bool                      allocates;    /* alloca: of an entry, needs a stack */
    uint32_t                  stack_place;  /* allocates: 4 bytes, where calls keep the caller's stack_top */
    bool                      meets;        /* has atomics on memory that blocks share */
    uint32_t                  grid_line;    /* of the instruction that wants a cooperative launch, of a function's call of it, or 0 */
    bool                      plain;        /* see cpu_code_load_as */
    bool                      checked;      /* accesses to device memory go through memcheck */
    const uint32_t           *places;       /* [registers] of the function, borrowed from the arena; NULL unless decoded with CODE_NATIVE */
    const struct code_native *native;       /* compiled blocks (device/cpu/jit/native.h), or NULL */
    struct span               name;         /* borrowed from the module */
    struct arena              arena;        /* owns what `extra` and `table` point to */
};

/* The lanes that will run one block of an activation. */
struct activation {
    const struct code   *code;
    uint8_t             *memory; /* owned: frame, params, masks */
    size_t               room;
    uint8_t             *frame;
    uint8_t             *params;     /* [lanes][param_bytes] */
    struct affine_value *affine;     /* [affine_count] */
    uint32_t             local_base; /* of the function's local variables in each lane's local memory */
    struct mask          current;
    struct mask          side;    /* scratch of branches */
    struct mask          guard;   /* scratch of guarded operations */
    struct mask         *pending; /* [blocks_count] */
    uint64_t            *pending_bits;
    uint64_t            *deferred_bits; /* pending, but some members of the warp are missing */
    uint64_t            *reached;       /* pending since compiled code began to run, and not measured yet */
    uint32_t             words;
    uint32_t             turn; /* where the last turn out of order went */
    uint32_t             spins;
    uint64_t             filled_block; /* number + 1 of the block that the special registers are filled for */
    const struct code   *filled_code;
};

struct barrier {
    uint32_t arrived;
    uint32_t expected; /* 0: all live lanes */
    uint32_t line;
};

enum fault_code {
    FAULT_NONE,
    FAULT_ILLEGAL_ADDRESS,
    FAULT_MISALIGNED,
    FAULT_TRAP,
    FAULT_ASSERT,
    FAULT_TIMEOUT,
    FAULT_CANCELLED,
    FAULT_MEMORY,
    FAULT_UNINITIALISED
};

enum stop { STOP_NONE, STOP_FAILED, STOP_CANCEL };

/* What all blocks of one launch share. */
struct grid_run {
    const struct cpu_launch *launch;
    const struct code       *code;
    struct cpu_engine       *engine;
    void (*company)(struct cpu_engine *e); /* NULL, or host thread 0 calls it where its block waits: other blocks may run, too */
    struct cpu_memory         *memory;
    const struct cpu_textures *textures; /* that the kernel may name, or NULL */
    struct cpu_shadow         *shadow;   /* NULL unless memcheck is on */
    uint64_t                   memory_base;
    uint64_t                   memory_span;
    struct cpu_output         *output;
    struct cpu_heap           *heap;
    uint64_t                   deadline;
    atomic_int                *stop;        /* enum stop */
    uint32_t                   local_bytes; /* per lane, stack included */
    bool                       contended;   /* other host threads may run blocks of it at the same time */
    uint64_t                   workspace;   /* device memory of a cooperative launch, where blocks meet; 0: not cooperative */
};

/* One host thread's block; reused from block to block and launch to launch. */
struct block_run {
    struct lanes        lanes;
    struct grid_run    *grid;
    uint32_t            block[3];
    uint64_t            block_number;
    struct fault_guard  guard;
    uint8_t            *shared;
    uint32_t            shared_bytes, shared_room;
    uint8_t            *local; /* [lanes][local_bytes] */
    size_t              local_room;
    uint32_t            local_bytes;
    uint8_t            *lane_memory; /* owned: the arrays below */
    size_t              lane_room;
    uint8_t            *live;
    uint32_t            live_count;
    uint8_t            *waits; /* the barrier a lane waits at, or NO_BARRIER */
    uint8_t            *wait_depth;
    uint32_t           *resume;    /* where it goes on */
    uint8_t            *votes;     /* the value that it brought to a reducing barrier */
    uint32_t           *stack_top; /* alloca: a lane's local memory is free from its frames up to here */
    bool                stack_used;
    uint8_t            *passes;  /* 1: the next warp operation does not hold this lane up; its members wait elsewhere */
    uint32_t            passing; /* how many of those are set */
    struct barrier      barriers[BARRIERS];
    uint32_t            barriers_used; /* bit i: a lane arrived at barrier i */
    struct cluster     *cluster;       /* the other blocks of its cluster (device/cpu/interp/cluster.h); NULL: there are none */
    uint32_t            rank;          /* in its cluster */
    uint8_t            *arrivals;      /* of each lane at the cluster's barrier (device/cpu/interp/cluster.c) */
    uint32_t            arrived;       /* live lanes that arrived in the running phase */
    uint32_t            phase;         /* how often the block met there as a whole */
    bool                met;           /* a lane arrived there */
    uint32_t            depth;
    struct activation   activations[CPU_CALL_DEPTH_MAX];
    uint32_t            back_edges;
    uint32_t            waits_for_company; /* of this block: rounds in which no other path of it could continue */
    uint32_t            starts;            /* of blocks of threads and of calls */
    unsigned            host_thread;
    struct native_call *native; /* owned; NULL until compiled code runs here */
    bool                tired;  /* its chunks went round a loop that may wait for other lanes, and came out for them */
    enum fault_code     fault;
    struct problem      problem; /* valid when fault is set */
};

/* Decodes one function; MODULE_INVALID names the instruction that cannot be executed, with its line. Symbols must have addresses. */
enum status code_create(const struct ptx_module *m, const struct ptx_function *f, unsigned options, struct code **out, struct problem *why);
void        code_destroy(struct code *c);

/* Prepares for blocks of `threads` threads. OUT_OF_MEMORY. Once per launch and host thread. */
enum status block_run_prepare(struct block_run *r, struct grid_run *grid, uint64_t shared_bytes);
void        block_run_finish(struct block_run *r);
/* Runs `count` blocks from `number` on, fewer if the launch stops; false, with r->problem, when one faulted. */
bool blocks_run(struct block_run *r, uint64_t number, uint64_t count);

/* Leaves the block at once. `lane` < 0: no single thread caused it. */
_Noreturn void block_fault(struct lanes *l, enum fault_code code, int64_t lane, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for an access of the operation that runs, which is told in facts, too. */
struct bad_access {
    enum access_space space;
    uint64_t          address; /* as of struct problem_access */
    uint32_t          bytes;   /* 0: not known */
};
_Noreturn void block_fault_access(struct lanes *l, enum fault_code code, int64_t lane, const struct bad_access *a, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Fills r->fault and r->problem: the text, kernel, PTX line, block and thread. a: NULL: it was no access. */
void block_describe(struct block_run *r, enum fault_code code, int64_t lane, const struct bad_access *a, const char *text);

/* As block_describe, for an access that only the guard pages caught. */
void block_describe_guard(struct block_run *r);

/* device/cpu/interp/native*.c: compiled blocks. */
/* Whether compiled code can begin at `block`. */
bool native_begins(const struct code *c, uint32_t block);
/* Runs the lanes of `a->current` from there on. The block before which all of them stand then, still in current; or NO_BLOCK: they are
 * pending where the interpreter goes on, but for those that compiled code refused, which stay in current before *block. */
uint32_t native_run(struct block_run *r, struct activation *a, uint32_t *block);
/* From r->block on, so many whole blocks of threads of one row of the grid, by compiled code alone; of the first one, lanes from `lane` on. False:
 * some lanes stopped on their way, in the block that is r->block now; `start` has set it up, and lanes are where they stand. How far the
 * others are, *rest says. */
struct native_rest {
    uint32_t first_x, end_x; /* the blocks; r->block[0] is one of them */
    uint32_t before, after;  /* lanes that have returned, of the blocks before that one, and behind it */
};
bool native_run_whole(struct block_run *r, void (*start)(struct block_run *r), uint32_t blocks, uint32_t lane, struct native_rest *rest);
/* OUT_OF_MEMORY. Once per launch and host thread. */
enum status native_prepare(struct block_run *r);
void        native_begin_block(struct block_run *r); /* of threads */
void        native_finish(struct block_run *r);
/* After a fault in compiled code: makes the operation and its addresses what a handler would have left. */
void native_explain(struct block_run *r);
/* The arrays of special registers that are another for each block, for the block that runs. */
void fill_specials(struct block_run *r, struct activation *a);
/* Of a compiled code that ran out of rounds. */
void check_clock(struct block_run *r);

/* device/cpu/interp/mask.c */
/* Sets low, high and count from the bytes of [0, count). */
void mask_measure(struct mask *m, uint32_t count);
void mask_clear(struct mask *m);
void mask_add(struct mask *to, const struct mask *m);
/* The ones of m become 0 in an array of lanes. */
void mask_remove(uint8_t *lanes, const struct mask *m);
/* In how many lanes of m the predicate holds; `flip` 1 negates it. */
uint32_t mask_holds(const struct mask *m, const uint8_t *predicate, uint8_t flip);
/* Those lanes become `to`; or they move from m to `side`. */
void mask_pick(struct mask *to, const struct mask *m, const uint8_t *predicate, uint8_t flip);
void mask_split(struct mask *m, struct mask *side, const uint8_t *predicate, uint8_t flip);

/* For operations: */
void lanes_use(struct lanes *l, const struct mask *m);
/* Runs `function` for the active lanes until all have returned. `a`'s param memory holds the parameters. */
struct activation               *activation_enter(struct block_run *r, const struct code *code);
void                             activation_run(struct block_run *r, struct activation *a);
void                             activation_leave(struct block_run *r);
static inline struct activation *activation_now(struct block_run *r)
{
    return &r->activations[r->depth - 1];
}

/* device/cpu/interp/ops/barrier.c */
/* The lanes of `a->current` arrive. True: all are here and continue. False: they wait, and current is empty. */
bool barrier_arrive(struct block_run *r, struct activation *a, const struct op *o, uint32_t resume);
/* Lanes left: opens barriers that waited only for them. True: any opened. */
bool barriers_settle(struct block_run *r);
/* Whether any lane of the running activation waits. */
bool activation_waits(const struct block_run *r);
/* No lane can run and some still wait: a launch failure. */
_Noreturn void barriers_stuck(struct block_run *r);
void           pending_add_lane(struct activation *a, uint32_t block, uint32_t lane);

/* device/cpu/interp/ops/warp.c: lets lanes pass that wait at different bar.warp.sync but together are all members; false: none could. */
bool warp_release(struct block_run *r, struct activation *a);
/* No lane can run, and some wait for members of their warp that never come: a launch failure. */
_Noreturn void warp_stuck(struct block_run *r, struct activation *a);
/* Removes lanes from `a->current` whose named members of the warp have not arrived, and puts them back as deferred. */
void warp_gather(struct block_run *r, struct activation *a, uint32_t block);
