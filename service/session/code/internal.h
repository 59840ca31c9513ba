/* Modules of a worker session: what was compiled for it and is loaded there. */
#pragma once

#include "session/code/compile_module.h"
#include "session/memory/internal.h"

/* Threads of a block as the device advises them for so many bytes of shared memory: bytes << 32 | threads; 0: not yet asked. */
typedef _Atomic uint64_t best_block;

struct module {
    struct entry           entry;
    struct worker_session *worker_session; /* a reference */
    unsigned               refs;           /* the table, borrowers and unfinished launches */
    bool                   ready;
    bool                   loaded;
    uint64_t               used;             /* of ours: when, counted by worker_session.builtins_used */
    bool                   failed;           /* of ours: it will not be ready */
    bool                   ours;             /* of the built-in kernels: counted against nobody's quota, its code kept by nobody */
    bool                   refused;          /* of a library's plan: ready, but it cannot be launched */
    bool                   plan;             /* ours, and what a library prepared */
    uint32_t               params_bytes_max; /* of its kernels, of the one that takes most */
    uint64_t               workspace_bytes;  /* of a plan: what each launch has for itself */
    uint32_t               remote;
    unsigned char          digest[SHA256_BYTES];
    char                   code_hash[SHA256_HEX_BYTES];
    char                   arch[COMPILE_ARCH_BYTES];
    struct kernel_table    table;
    struct compiled        compiled;               /* its output is kept for log and code */
    struct arena           made_of;                /* what `spec` points to, unless that is in `compiled` */
    struct module_spec     spec;                   /* what it was made from; nothing for ours */
    char                 **expressions, **lowered; /* [expressions_count], owned */
    unsigned               expressions_count;
    best_block            *best; /* [kernels_count] */
    uint64_t               kept_bytes;
    uint64_t               created_wall_ns;
    struct buffer         *globals;      /* [table.globals_count], owned: its variables, as buffers; NULL: not loaded yet, or ours */
    uint64_t               unload_order; /* launches up to this number may use its variables, and are submitted before it is unloaded */
    struct module         *unload_next;
    struct call            unload;
};

/* ---- module.c ---- with session.lock held */
/* MODULE_NOT_FOUND, or *out with one more reference. */
enum status module_find(struct worker_session *c, struct span id, struct module **out, struct problem *why);
/* The last one has it unloaded behind the caller; it is freed then. */
void module_unref(struct module *m);
/* The loaded module of a built-in kernel, made at its first use (spec is checked then), with one more reference. Where that would
 * have to be waited for and `at_once`: PENDING. */
enum status module_builtin(struct worker_session *c, struct span id, const struct module_spec *spec, bool at_once, struct module **out,
                           struct problem *why);
/* No device has it any more. */
void module_free(struct module *m);
/* ---- global.c ---- */
/* Makes the variables of a module that was loaded. No lock held. */
enum status globals_make(struct module *m, struct problem *why);
/* The module becomes ready: its variables get their numbers. With session.lock held. */
void globals_number(struct module *m);
/* One of them, by its place in the list, its name in the source, a name expression or its mangled name; NULL: none. */
struct buffer *module_global(struct module *m, struct span name);
/* module_load.c: gives the image to the device and reads the kernel table. Needs a use of m->worker_session. */
enum status module_load(struct module *m, struct span image, struct problem *why);
