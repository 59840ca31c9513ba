/* Giving up what another thread does: a flag, and a way to interrupt what it waits in. */
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
/* Any thread. Calls interrupt under the lock. */
void cancel_ask(struct cancel *c);
/* c may be NULL: never asked. */
bool cancel_asked(struct cancel *c);
/* From now on cancel_ask interrupts by this; false when it has been asked already. c may be NULL. */
bool cancel_enter(struct cancel *c, void (*interrupt)(void *arg), void *arg);
/* Afterwards interrupt is not called any more. */
void cancel_leave(struct cancel *c);
/* Sleeps; false when asked meanwhile. */
bool cancel_sleep(struct cancel *c, int ms);

#endif
