/* For asserts: whether the calling thread holds that mutex. A few instructions. */
#ifndef GPUREST_BASE_HELD_H
#define GPUREST_BASE_HELD_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

/* Not in a child between fork and exec. */
bool held(const pthread_mutex_t *m);

#endif
