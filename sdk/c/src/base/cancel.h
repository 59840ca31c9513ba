/* Cancellation from another thread: a flag and a function that interrupts the wait. */
#ifndef GPUREST_SDK_CANCEL_H
#define GPUREST_SDK_CANCEL_H

#include <pthread.h>
#include <stdbool.h>

struct cancel {
    pthread_mutex_t lock;
    pthread_cond_t  asked_changed;
    bool            asked;
    void (*interrupt)(void *arg); /* NULL: nothing to interrupt now */
    void *arg;
};

void cancel_init(struct cancel *c);
void cancel_finish(struct cancel *c);
/* Requests cancellation, from any thread. Calls interrupt under the lock. */
void cancel_ask(struct cancel *c);
/* c NULL: never. */
bool cancel_asked(struct cancel *c);
/* Sets the interrupt function; false if already cancelled. c may be NULL. */
bool cancel_enter(struct cancel *c, void (*interrupt)(void *arg), void *arg);
/* interrupt is not called after this. */
void cancel_leave(struct cancel *c);
/* Sleeps; false if cancelled. */
bool cancel_sleep(struct cancel *c, int ms);

#endif
