/* The warm compiler: a compile worker ready for its one job, loaded, locked down, and warmed by a source of our own. Thread-safe. */
#pragma once

#include "pool/compile/child.h"

struct warm_compiler;

/* Starts a thread that starts all warm workers: workers die with the thread that started them. `c` is borrowed. */
enum status warm_compiler_create(struct warm_compiler **out, const struct compile_command *c);
/* Ends the warm worker. NULL is a no-op. */
void warm_compiler_destroy(struct warm_compiler *s);
/* True: *out is the caller's. False: none is ready. NULL has none. */
bool warm_compiler_take(struct warm_compiler *s, struct compile_child *out);
/* Nothing compiles at the moment: starts another one, unless one is ready. `arch`: the likely target of the next job ("" = unknown).
 * NULL is a no-op. */
void warm_compiler_refill(struct warm_compiler *s, struct span arch);
