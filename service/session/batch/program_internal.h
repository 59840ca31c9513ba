/* What program.c, program_graph.c and the files of batches share. */
#pragma once

#include "session/batch/batch_internal.h"
#include "session/batch/program.h"

/* Launches that follow each other, as the worker has them. */
struct program_graph {
    uint32_t       number; /* the worker's */
    uint32_t       stream;
    unsigned       first, end; /* operations: its launches are those from `first` to before `end` */
    unsigned char *held;       /* the list of entries that it stands at; owned. Each launch's tag is its place, its timeout 0 */
    size_t         bytes;
    uint32_t       count;
    bool           stale; /* a run failed: what the worker has is not known */
    bool           fixed; /* what is held follows from the program alone, and from what its names meant ... */
    uint64_t       names; /* ... when worker_session.names_ended was this */
};

struct program {
    struct entry           entry;
    struct worker_session *worker_session; /* a reference */
    struct program_text   *text;
    struct temp_buffer   **temp_buffers; /* [ops_count], of ALLOCs; of LAUNCHes their scratch memory. Each a reference */
    struct module        **modules; /* [ops_count], of LAUNCHes; of built-in kernels only those that a library does. Each a reference */
    struct module         *made;    /* from source; a reference */
    struct program_graph  *graphs;  /* [GRAPHS_PER_PROGRAM_MAX]; from here whose turn it is */
    unsigned               graphs_count;
    unsigned char         *scratch; /* a list of the greatest size */
    /* under session.lock */
    unsigned       refs;    /* the table's and the borrowers' */
    bool           taken;   /* it is the turn of a run, or of the program's end */
    unsigned       waiting; /* for their turn */
    pthread_cond_t turn;    /* it is over */
    bool           gone;    /* not to be run any more */
    uint64_t       runs;
    uint64_t       created_wall_ns;
};

/* ---- program.c ---- */
/* The scratch memory of that LAUNCH, which stays for all runs. In one's turn, or while the program is made. */
enum status program_scratch(struct program *p, unsigned op, uint64_t bytes, struct temp_buffer **out, struct problem *why);
/* While it is made: that LAUNCH is of this plan of a library, in every run; takes a reference. */
void program_keep_plan(struct program *p, unsigned op, struct module *plan);
/* Who does that LAUNCH of a built-in kernel, as it was when the program was made: graphs keep the kinds of their nodes. */
enum launch_engine program_engine(const struct program *p, unsigned op);
/* Before a run: waits for its turn, which program_leave() ends, on whichever thread. Fails when the program has ended. */
enum status program_enter(struct program *p, struct problem *why);
/* The same without waiting, also for who waits already. False: not now. */
bool program_try_enter(struct program *p);
/* `ran` is false after program_try_enter(), when no run has begun after all. */
void program_leave(struct program *p, bool ran);

/* ---- program_graph.c ---- in one's turn */
/* May this operation stand in a graph? Lists hold either such or others, so that every run makes the same lists. */
bool program_graphable(const struct batch_item *item);
/* Sends the collected launches, at least two, as the next graph of the program; or makes that graph, when the batch prepares it. */
enum status program_graph_send(struct batch *b, struct problem *why);
/* The next graph, when it begins with that operation and the run changes nothing of it: no launch is looked at. NULL: not so, as far as is known
 * without a lock. */
const struct program_graph *program_graph_fixed(const struct batch *b, unsigned op);
/* Sends that graph as it is; *sent false: a name means something else now, and its launches are to be looked at. Takes the slice over, of
 * sizeof(struct run_state). */
enum status program_graph_repeat(struct batch *b, const struct program_graph *g, struct slice *state, bool *sent, struct problem *why);
size_t      program_scratch_bytes(void);
/* A run failed. */
void program_graphs_doubt(struct program *p);
/* Blocks. Needs a use of the worker session. */
void program_graphs_end(struct program *p);
void program_graphs_free(struct program *p);
