/* The pool's part of a fault domain whose sessions share an MPS server: the server, and the workers that wait in it. All but the take under
 * the pool's lock. */
#pragma once

#include "pool/domains/server.h"

struct pool;

struct pool_domain {
    const void        *key; /* names it; compared, never followed. NULL: the place is free */
    unsigned           device;
    struct mps_server *server;   /* NULL: none, or the last one is ending */
    bool               ended;    /* it ended by itself, and its sessions do not know yet: no other one is started */
    struct worker     *warm;     /* a list: STARTING and READY ones that nobody owns */
    bool               starting; /* a warm worker is being made and not on the list yet */
    unsigned           demand;   /* takers that wait for a worker */
    unsigned           failures; /* consecutive starts that failed, of the server or of workers */
    uint64_t           failed_starts;
    uint64_t           next_try_ns;
    struct problem     last_problem;
};

struct pool_domains {
    struct pool_domain slots[FAULT_DOMAINS_MAX];
    struct mps_server *ending; /* a list: told to end */
    unsigned           ending_count;
    uint64_t           numbers;
    char               base[SERVER_PATH_BYTES]; /* the folder of all servers; "" = none */
    int                lock_fd;
};

/* Before the threads start. Without a folder there are no servers. */
void domains_create(struct pool *p);
/* No worker is left. Blocks until all servers have ended; no lock held. */
void domains_destroy(struct pool *p);
/* Refiller: one step for each domain. True: something was done. */
bool     domains_care(struct pool *p);
uint64_t domains_next_look(const struct pool *p);
/* The workers that wait in a domain that nobody waits for, and that is not `but`; NULL: there are none. */
struct worker **domains_spare(struct pool *p, const struct pool_domain *but);
/* The device is about to be reset: ends its servers and what waits in them. True: there was one. */
bool domains_leave_device(struct pool *p, unsigned device);
bool domains_on_device(const struct pool *p, unsigned device);
/* Any worker that waits, taken out; NULL: none. */
struct worker *domains_any_worker(struct pool *p);
