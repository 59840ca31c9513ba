/* For asserts: whether the calling thread holds that mutex. A few instructions. */
#pragma once

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>

/* Not in a child between fork and exec. */
bool held(const pthread_mutex_t *m);
