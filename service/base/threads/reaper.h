/* A thread that runs what is posted to it, in order: for ends and follow-ups that the posting thread may not do itself, because it holds locks or
 * must not wait. After nng's core/reap.h. Thread-safe. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded in the object; zeroed but for `run`. run() holds no lock, may free the object and may post it again. */
struct reap_item {
    void (*run)(struct reap_item *item);
    STAILQ_ENTRY(reap_item) next; /* under reaper.lock, as the next */
    bool posted;                  /* it has not begun to run since */
};

struct reaper {
    pthread_t       thread;
    pthread_mutex_t lock; /* inner to all others */
    pthread_cond_t  changed;
    STAILQ_HEAD(, reap_item) items;
    uint64_t posted_count, done_count;
    bool     stopping;
};

/* False: no thread. */
bool reaper_start(struct reaper *r);
/* Runs what is posted first. */
void reaper_stop(struct reaper *r);
/* False when it is posted already: it then runs once. Any lock may be held. */
bool reaper_post(struct reaper *r, struct reap_item *item);
/* Blocks until everything that was posted before has run. Not from run(). */
void reaper_flush(struct reaper *r);
