/* Compiled kernels: which there are, and the thread that makes them. A kernel runs in the interpreter until it has cost as much there as
 * compiling it costs, and until its compiled form is ready; the launch under way and later ones go over to that. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code;
struct cpu_launch;
struct ptx_function;
struct ptx_module;

enum jit_mode {
    JIT_OFF,
    JIT_AUTO,  /* compiles in the background what has cost the interpreter enough */
    JIT_EAGER, /* compiles in the background what is launched */
    JIT_NOW,   /* compiles before a kernel's first launch begins: for tests and measurements */
};

/* Before the first launch. Default: JIT_OFF. */
void jit_choose(enum jit_mode mode);
/* Opens libLLVM if the mode asks for it: before the process gives up opening files. Whether kernels will be compiled. */
bool jit_open(void);
/* The code that this launch runs from now on. *later: it is the interpreter's, and the compiler wants to know what it costs. Any thread. */
const struct code *jit_code_for(const struct cpu_launch *l, bool *later);
/* The interpreter has spent so long on the launch since the last time. Whether compiled code may still come. Any thread. */
bool jit_spent(const struct cpu_launch *l, uint64_t ns);
/* Waits until the compiler is done with the module, and frees what it made. No launch of it may be unfinished. */
void jit_forget(struct ptx_module *m);
/* Calls end(m), which calls jit_forget(): now, or behind the compilation that is under way, on the compiler's thread. No launch of m may be
 * unfinished. */
void jit_leave(struct ptx_module *m, void (*end)(struct ptx_module *module));
/* Waits until nothing is being compiled, nor left to end. */
void jit_settle(void);
/* Whether a decoded kernel's launches change over to compiled code; and in a few words why, or why not. */
bool jit_engine(const struct ptx_module *m, const struct ptx_function *f, char *reason, size_t room);
