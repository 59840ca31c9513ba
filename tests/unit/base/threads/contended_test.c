/* Mutexes for many threads keep them apart, and the owner is known as of every other. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "base/status.h"
#include "base/threads/contended.h"
#include "base/threads/held.h"

enum { THREADS = 8, TURNS = 20000 };

static pthread_mutex_t lock;
static unsigned        turns; /* under lock */

static void *take_turns(void *unused)
{
    for (unsigned i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&lock);
        turns++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

Test(contended, threads_take_turns)
{
    pthread_t threads[THREADS];

    contended_init(&lock);
    for (unsigned i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, take_turns, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(turns, THREADS * TURNS);
    cr_assert_eq(pthread_mutex_destroy(&lock), 0);
}

Test(contended, the_owner_is_known)
{
    contended_init(&lock);
    cr_assert(!held(&lock));
    pthread_mutex_lock(&lock);
    cr_assert(held(&lock));
    pthread_mutex_unlock(&lock);
    cr_assert(!held(&lock));
    pthread_mutex_destroy(&lock);
}
