/* Cancellation. */
#include "base/cancel.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/platform.h"

void cancel_init(struct cancel *c)
{
    c->asked = false;
    c->interrupt = NULL;
    pthread_mutex_init(&c->lock, NULL);
    condition_init(&c->asked_changed);
}

void cancel_finish(struct cancel *c)
{
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->asked_changed);
}

void cancel_ask(struct cancel *c)
{
    pthread_mutex_lock(&c->lock);
    c->asked = true;
    if (c->interrupt)
        c->interrupt(c->arg);
    pthread_cond_broadcast(&c->asked_changed);
    pthread_mutex_unlock(&c->lock);
}

bool cancel_asked(struct cancel *c)
{
    bool asked;

    if (!c)
        return false;
    pthread_mutex_lock(&c->lock);
    asked = c->asked;
    pthread_mutex_unlock(&c->lock);
    return asked;
}

bool cancel_enter(struct cancel *c, void (*interrupt)(void *arg), void *arg)
{
    bool asked;

    if (!c)
        return true;
    pthread_mutex_lock(&c->lock);
    asked = c->asked;
    if (!asked) {
        c->interrupt = interrupt;
        c->arg = arg;
    }
    pthread_mutex_unlock(&c->lock);
    return !asked;
}

void cancel_leave(struct cancel *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->interrupt = NULL;
    pthread_mutex_unlock(&c->lock);
}

bool cancel_sleep(struct cancel *c, int ms)
{
    struct timespec until = clock_after_ms(ms);
    bool            asked;

    if (!c) {
        clock_sleep_ms(ms);
        return true;
    }
    pthread_mutex_lock(&c->lock);
    while (!c->asked && condition_wait_until(&c->asked_changed, &c->lock, &until))
        continue;
    asked = c->asked;
    pthread_mutex_unlock(&c->lock);
    return !asked;
}
