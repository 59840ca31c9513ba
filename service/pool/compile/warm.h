/* A compile worker that waits for its one job: loaded, locked down, and warm from a source of our own. Thread-safe. */
#ifndef GPUREST_POOL_COMPILE_SPARE_H
#define GPUREST_POOL_COMPILE_SPARE_H

#include "pool/compile/child.h"

struct warm_compiler;

/* Starts a thread, by which all spare workers are started: workers die with the thread that started them. `c` is borrowed. */
enum status warm_compiler_create(struct warm_compiler **out, const struct compile_command *c);
/* Ends the worker that waits. NULL is a no-op. */
void warm_compiler_destroy(struct warm_compiler *s);
/* True: *out is the caller's. False when none is there. NULL has none. */
bool warm_compiler_take(struct warm_compiler *s, struct compile_child *out);
/* Nothing compiles at the moment: another one is started, unless one waits. `arch` is what the next job is likely to want ("" = not
 * known). NULL is a no-op. */
void warm_compiler_refill(struct warm_compiler *s, struct span arch);

#endif
