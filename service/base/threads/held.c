/* The C library notes the owner of every mutex for its own checks. */
#include "base/threads/held.h"

#include <unistd.h>

bool held(const pthread_mutex_t *m)
{
    static _Thread_local pid_t own;

    if (own == 0)
        own = gettid();
    return __atomic_load_n(&m->__data.__owner, __ATOMIC_RELAXED) == own;
}
