/* A compile worker that waits for its one job: loaded, locked down, and warm from a source of our own. Thread-safe. */
#ifndef GPUREST_POOL_COMPILE_SPARE_H
#define GPUREST_POOL_COMPILE_SPARE_H

#include "pool/compile/child.h"

struct compile_spare;

/* Starts a thread, by which all spare workers are started: workers die with the thread that started them. `c` is borrowed. */
enum status compile_spare_create(struct compile_spare **out, const struct compile_command *c);
/* Ends the worker that waits. NULL is a no-op. */
void compile_spare_destroy(struct compile_spare *s);
/* True: *out is the caller's. False when none is there. NULL has none. */
bool compile_spare_take(struct compile_spare *s, struct compile_child *out);
/* Nothing compiles at the moment: another one is started, unless one waits. `arch` is what the next job is likely to want ("" = not
 * known). NULL is a no-op. */
void compile_spare_refill(struct compile_spare *s, struct span arch);

#endif
