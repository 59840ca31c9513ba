/* A queue and the thread that empties it. */
#include "base/threads/reaper.h"

#include <assert.h>

static struct reap_item *next_item(struct reaper *r)
{
    struct reap_item *item = STAILQ_FIRST(&r->items);

    if (item) {
        STAILQ_REMOVE_HEAD(&r->items, next);
        item->posted = false;
    }
    return item;
}

static void *reaper_main(void *argument)
{
    struct reaper    *r = argument;
    struct reap_item *item;

    pthread_mutex_lock(&r->lock);
    while ((item = next_item(r)) != NULL || !r->stopping) {
        if (!item) {
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        item->run(item);
        pthread_mutex_lock(&r->lock);
        r->done_count++;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

bool reaper_start(struct reaper *r)
{
    *r = (struct reaper){0};
    STAILQ_INIT(&r->items);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    if (pthread_create(&r->thread, NULL, reaper_main, r) == 0)
        return true;
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    return false;
}

void reaper_stop(struct reaper *r)
{
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    assert(STAILQ_EMPTY(&r->items));
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
}

bool reaper_post(struct reaper *r, struct reap_item *item)
{
    bool fresh;

    pthread_mutex_lock(&r->lock);
    fresh = !item->posted;
    if (fresh) {
        item->posted = true;
        STAILQ_INSERT_TAIL(&r->items, item, next);
        r->posted_count++;
        pthread_cond_broadcast(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return fresh;
}

void reaper_flush(struct reaper *r)
{
    uint64_t posted;

    pthread_mutex_lock(&r->lock);
    assert(!pthread_equal(r->thread, pthread_self()));
    posted = r->posted_count;
    while (r->done_count < posted)
        pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
}
