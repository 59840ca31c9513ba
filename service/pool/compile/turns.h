/* Whose turn it is to compile. The next turn goes to the caller with the fewest compilations under way, then to the one served longest
 * ago, and within a caller in order of arrival. Built-in kernels go before callers' sources and have COMPILE_BUILTIN_TURNS of their own,
 * so that no source delays them. Thread-safe. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/status.h"
#include "pool/bounds.h"

/* For whom something is compiled. */
struct compile_for {
    const char *caller;  /* callers are distinguished by name; NULL: nobody's */
    bool        builtin; /* a source of the service's own */
};

/* One that waits or compiles; the caller owns the storage until it gives the turn back. */
struct compile_turn {
    struct compile_for whom;
    bool               running;
    uint64_t           served; /* when its caller last got a turn, counted in turns; 0 = not since it has a turn here */
    TAILQ_ENTRY(compile_turn) listed;
};

struct compile_turns {
    pthread_mutex_t lock; /* over all below */
    pthread_cond_t  dealt;
    unsigned        turns;           /* of sources and built-in kernels together */
    unsigned        turns_of_caller; /* most turns that one caller's sources have at once */
    uint64_t        served;
    bool            closed;
    TAILQ_HEAD(, compile_turn) all; /* in order of arrival */
};

void compile_turns_init(struct compile_turns *t, unsigned turns, unsigned turns_of_caller);
void compile_turns_finish(struct compile_turns *t);
/* Blocks until its turn. TOO_MANY_IN_FLIGHT at once when too many sources of the caller wait already; OVERLOADED at the deadline;
 * DRAINING once turns are closed. After OK call compile_turn_give(). */
enum status compile_turn_take(struct compile_turns *t, struct compile_turn *turn, struct compile_for whom, uint64_t deadline_ns);
/* Deals no more turns: those who wait return at once. */
void compile_turns_close(struct compile_turns *t);
/* Sources of that caller that wait for their turn. */
unsigned compile_turns_waiting(struct compile_turns *t, const char *caller);
/* True: nothing compiles now. */
bool compile_turn_give(struct compile_turns *t, struct compile_turn *turn);
