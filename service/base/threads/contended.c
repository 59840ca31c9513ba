/* The mutexes' kind. */
#include "base/threads/contended.h"

#include <assert.h>

void contended_init(pthread_mutex_t *m)
{
    pthread_mutexattr_t attributes;
    int                 failed = pthread_mutexattr_init(&attributes);

    failed = failed ? failed : pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    failed = failed ? failed : pthread_mutex_init(m, &attributes);
    assert(!failed); /* none of them allocates */
    pthread_mutexattr_destroy(&attributes);
}
