/* Programs: batches that are checked and resolved once, and run many times. No HTTP, no CUDA.
 *
 * A program has its buffers ("$names") and its modules as long as it lives; a run gives it segments, and maybe other scalars. Sequences of
 * launches that follow each other on one stream are prepared in the worker as graphs. Runs of one program follow each other. A program
 * ends with its worker session: a reset voids it. */
#pragma once

#include "base/digests/digest.h"
#include "session/batch/batch.h"

/* What the operations were decoded into; lives as long as the program. */
struct program_text {
    struct batch_spec spec;                 /* no keep, no FREE of a buffer of the session; `program` unused */
    unsigned char     digest[SHA256_BYTES]; /* by program_digest(): equal ones are the same program */
    void (*destroy)(struct program_text *t);
};

/* Of everything that the operations say. `names`: what else tells programs apart, such as the segments' names. */
void program_digest(const struct batch_spec *spec, struct span names, unsigned char out[SHA256_BYTES]);

/* Makes the module, the buffers and the graphs; blocks. *text is taken over, on failure too. A program of that name and digest that is
 * there already: *created = false; of another digest: SPEC_CONFLICT. *out is borrowed until program_return(). A failure that concerns an
 * operation has its op_index. */
enum status program_put(struct session *s, struct span name, struct program_text *text, struct arena *arena, struct program **out,
                        bool *created, struct problem *why);
/* PROGRAM_NOT_FOUND. */
enum status program_borrow(struct session *s, struct span name, struct program **out, struct problem *why);
void        program_return(struct program *p);
/* The same by the service itself, which is no use of the session. */
void program_return_unnoticed(struct program *p);
/* Waits for a run that is under way. Its buffers and graphs are gone then. */
enum status program_delete(struct session *s, struct span name, struct problem *why);

struct program_info {
    char     name[ID_BYTES];
    unsigned ops, segments, launches, graphs, prepared_launches; /* the last: those that are in graphs */
    uint64_t memory_bytes;                                       /* of its buffers */
    uint64_t created_wall_ns;
    uint64_t runs; /* begun */
};
void                       program_info_of(struct program *p, struct program_info *out);
const struct program_text *program_text_of(const struct program *p);
/* It has nothing but launches that are one graph: a run may begin on a thread that must not wait (batch_begin()). */
bool program_is_one_graph(const struct program *p);
/* Up to page->limit, over the session's present generation. */
unsigned program_list(struct session *s, struct page *page, struct program_info *items);
