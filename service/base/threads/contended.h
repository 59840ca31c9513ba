/* Mutexes that several threads want at the same moment, each for less time than it takes to sleep and be woken. */
#pragma once

#include <pthread.h>

/* As pthread_mutex_init(): who finds it taken tries for a moment before it sleeps, where there is more than one CPU. For the locks on a launch's way:
 * 16 connections on one session of an H200 do 102,000 launches/s so, and 85,000 without (medians of four turns, 2026-11-29). */
void contended_init(pthread_mutex_t *m);
