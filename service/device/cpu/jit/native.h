/* What compiled code and the interpreter share. A compiled kernel runs some lanes of a block, a chunk, from one of its entry blocks until
 * each of them stands before a basic block that only the interpreter can run. Registers stay in the interpreter's arrays in between. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/cpu/bounds.h"

enum {
    NATIVE_LANES_MAX = 32,
    NATIVE_ELEMENTS_MAX = 8,  /* of a vector access */
    NATIVE_BLOCKS_MAX = 256,  /* basic blocks of a kernel that can be compiled */
    NATIVE_BACK_EDGES = 2048, /* of a chunk, before the interpreter looks at the clock */
    NATIVE_SPIN_COST = 8,     /* back edges that one counts for that closes a loop in which a lane may be waiting */
    NATIVE_STRIP_INSNS = 64,  /* instructions of a kernel that may run in strips */
};

enum { PASSES_BARRIER = 1, PASSES_RETURN = 2 };

struct block_run;
struct ptx_function;

/* No lane alone takes part in that way. */
enum { NATIVE_STRIP = 0 };
/* A step from lane to lane that is none: each lane's address is in addresses[]. */
enum { NATIVE_EACH = INT64_MIN };

/* The state of one host thread. Compiled code reads and writes the members by their offsets. */
struct native_call {
    uint8_t       *frame;  /* the interpreter's register file */
    uint64_t       stride; /* of an array of bytes in it */
    const uint8_t *params;
    uint64_t       memory_base, memory_span;
    uint8_t       *shared;
    uint64_t       shared_bytes;
    uint8_t       *local;
    uint64_t       local_bytes; /* of a lane */
    uint32_t      *tid[3];      /* of each lane; the first owns all three */
    uint32_t       ntid[3], ctaid[3], nctaid[3];
    uint32_t       first_x, end_x; /* blocks of the grid's row that run() goes on with; ctaid[0], which it changes, is one of them */
    uint32_t       across;         /* 1: a chunk of each of them, then the next chunk; 0: one block after the other */
    uint32_t       budget;         /* back edges left to this chunk */
    const bool    *contended;      /* other host threads may access device memory */

    /* The last access to device memory, for its faults; and, for access(), an access that needs a look at each lane. */
    uint32_t insn;    /* index in the function */
    uint32_t lanes;   /* bit i: lane + i takes part; NATIVE_STRIP: all of a strip do */
    uint32_t lane;    /* the chunk's first */
    uint64_t address; /* of the first lane; NATIVE_EACH: in addresses[] */
    /* access(): lane i's address is line_address + i * line_step, and from lane line_turn on line_wrapped more; or addresses[i]. */
    uint64_t line_address;
    int64_t  line_step, line_wrapped;
    uint32_t line_turn;
    uint64_t addresses[NATIVE_LANES_MAX];
    uint64_t values[NATIVE_ELEMENTS_MAX][NATIVE_LANES_MAX]; /* of each element one after the other, as wide as it is */
    uint64_t nowhere;                                       /* what no lane reads or writes */

    /* Makes the access of addresses[] and values[], lane by lane; faults as the interpreter does. */
    void (*access)(struct native_call *c);
    /* Runs the interpreter's operations of `insn` for `lanes`, on its arrays. */
    void (*operate)(struct native_call *c);
    /* Fills the arrays of the chunk's lanes from the first one's numbers, if they are held. */
    void (*settle)(struct native_call *c);
    uint8_t *mask; /* owned: [stride] lanes for operations; 0 between them */
    uint32_t live; /* bit i: lane + i had not returned when the chunk began */

    struct block_run *run;
    bool              active;  /* compiled code runs */
    uint32_t          trusted; /* 1: the lanes left compiled code together, and nothing else has run: their registers have their shapes */
    bool              doubted; /* a line wrapped, or the interpreter ran or parted lanes, since these threads began: they are not trusted */
    uint32_t          entered; /* the block that lanes come in at */
    uint32_t          leaves;  /* how often lanes of the chunk left compiled code; */
    uint32_t          mixed;   /* 1: not always for the same block, or with a line that has wrapped; */
    uint32_t          last;    /* for this block, the last time */
    uint32_t          same;    /* for this block all chunks before left as one */
    uint32_t          tired;   /* 1: a chunk used up its back edges */
    uint32_t          strips;  /* 1: run() may take several chunks at once, a strip, from block 0 on; */
    uint32_t          strip_align; /* at lanes that have none of these bits */
    uint32_t          strip_left; /* so many strips, from the returned lane on, have left: all their lanes stand before block strip_block */
    uint32_t          strip_block;
    uint32_t          strip_first, strip_end; /* the lanes of a strip that run it */
    uint32_t          strip_now;              /* which strip of a band runs: `lane` and `ctaid` are the first one's */
    /* The accesses of the block that it runs, in their order. */
    uint32_t strip_accesses;
    struct strip_access {
        uint64_t address; /* of the first strip's first lane */
        uint64_t insn;
    } strip_access[NATIVE_STRIP_INSNS];
    /* Of a chunk's first lane: 0, or its lanes' registers are held: of those that are the same in all lanes, or a line, only the first lane's number is in
     * the arrays. Then it is 1 + the block at whose end the chunk left. */
    uint16_t held[CPU_BLOCK_THREADS_MAX];
    uint64_t touched[NATIVE_BLOCKS_MAX / 64]; /* bit b: lanes stand before block b: */
    uint32_t pending[NATIVE_BLOCKS_MAX];      /* bit i: lane + i; 0 between calls */
};

/* Runs the lanes lane + i whose bit is set in `lanes`, from `block` on; then, chunk by chunk, all lanes below `end`, and those of further
 * blocks of threads, as long as each chunk leaves as one for block `same`, or, if that is NO_BLOCK, for the same block as those before. Returns the first lane of the last chunk that
 * ran; those before it went to call->same. With NATIVE_REFUSED, that one did not: its registers are not what the compiler took for
 * granted (the same in all lanes, or evenly growing), and the interpreter runs it. */
typedef uint32_t (*native_fn)(struct native_call *c, uint32_t lane, uint32_t lanes, uint32_t block, uint32_t end, uint32_t same);
#define NATIVE_REFUSED (1u << 31)

/* The interpreter's operations of one instruction. */
struct native_ops {
    uint32_t first, count;
    int64_t  step;       /* of its accesses to device memory: bytes from lane to lane, or NATIVE_EACH */
    int64_t  strip_step; /* of those of a strip */
};

/* A register that is one number for all lanes of a chunk, or grows by `stride` from lane to lane. */
struct native_line {
    uint32_t reg, place, bytes;
    int64_t  stride;
};

/* Registers by basic block, one bit each: [blocks_count][words]. */
struct native_sets {
    const uint64_t *live, *changed; /* see struct jit_plan: changed_later */
    size_t          words;
};

struct code_native {
    native_fn      run;
    unsigned       lanes; /* of a chunk */
    const uint8_t *entry; /* [blocks_count] 1: run() can begin there */
    const uint8_t
            *passes;  /* [blocks_count] PASSES_BARRIER: a barrier and nothing else, which lets all lanes through when they come at once */
    bool     whole;   /* all but plain returns is compiled */
    uint32_t returns; /* the first block with PASSES_RETURN; blocks_count: there is none */
    bool     spins;   /* some loop may wait for other lanes or blocks */
    bool     warps;   /* a chunk is a warp, and some of its operations wait for members */
    bool     fills;   /* its borrowed operations read special registers */
    bool     many;    /* whole, and may run several blocks in turns */
    uint32_t strip;   /* so many lanes may run as one where nothing parts them; 0: never more than a chunk */
    bool     across;  /* they are the rows of several blocks, else of one */
    const struct native_line  *lines;
    uint32_t                   lines_count;
    struct native_sets         sets;
    const struct native_ops   *ops; /* [insns_count] of the function */
    const struct ptx_function *function;
};
