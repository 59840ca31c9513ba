/* The page that a test and the workers on its fake device share: what the device is to do, and what it holds. A worker maps the file that --script
 * names. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "ipc/message.h"
#include "pool/pool.h"

enum {
    FAKE_MAX_GRID = 65535,
    FAKE_MAX_THREADS = 1024,
    FAKE_MAX_SHARED = 48 * 1024,
    FAKE_BEST_BLOCK = 128,
    FAKE_SHARING_UNIT = 4096,
    FAKE_KERNELS = 19,
    FAKE_GLOBALS = 2, /* of each module */
    FAKE_GLOBAL_BYTES = 64,
    FAKE_WORKERS_MAX = 64
};

/* What the device holds for one worker that serves a session. */
struct fake_holdings {
    _Atomic int      pid; /* 0: free */
    _Atomic unsigned allocations, cached, modules, graphs, hosts;
    _Atomic unsigned events; /* recorded so far */
    _Atomic bool     waits;  /* a "wait" kernel runs */
};

/* Changes count from the next call on. */
struct fake_script {
    char                words[256];      /* of fake_device.c, as they are when a worker starts */
    _Atomic int         fail_at, die_at; /* the n-th call from now (0: the next) fails, or the worker dies at it; -1: none */
    _Atomic enum status fail_status;
    _Atomic bool        released; /* every "wait" kernel ends */
    _Atomic bool        held;     /* copies, fills, MEM_TRIM and compiles stand still */
    _Atomic bool  caches; /* what is freed is kept, out of others' reach: until MEM_TRIM, or until the worker finds no memory itself */
    _Atomic bool  lies;   /* about the size of shared allocations */
    _Atomic bool  told;   /* times and figures are the next two */
    _Atomic float gpu_us; /* of each kernel */
    struct device_memory memory;          /* MEM_TRIM makes reserved what is allocated */
    _Atomic unsigned     allocations_max; /* of all workers that are not yet gone; 0: any number */
    _Atomic unsigned     late, late_left; /* so many allocations are refused after memory was given back, in all and still to come */
    _Atomic unsigned     refused;         /* allocations, so far */
    _Atomic unsigned     sharing;         /* enum device_sharing */
    struct fake_holdings workers[FAKE_WORKERS_MAX];
};

/* The test's own page. */
struct fake_script *fake_script(void);
/* Changes what workers do from their next start on; words of fake_device.c, "" = behave. */
void steer(const char *words);
/* A pool of real workers on the fake device; what *with leaves open is chosen. */
enum status fake_pool_create(struct pool **out, struct pool_config with, struct problem *why);
