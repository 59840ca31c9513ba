/* The last words of a process that crashes: by which signal, where, as what and doing what, with a backtrace, as lines of the log. Then the
 * signal takes its course, to a core file where these are kept. Under sanitizers they report; only the log is flushed first. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/* Every role calls it first thing in its process, before threads start, and again when it knows its role better: then the name alone changes.
 * `role` is a static string. */
void crash_install(const char *role);

/* Starts a thread that leaves all signals to others but those of its own faults, and that can report even that its stack is full. */
bool crash_thread_start(pthread_t *out, void *(*run)(void *), void *argument);

/* What this thread does, as two static texts ("GET", "/v1/sessions"); NULL: nothing to speak of. Costs two stores. */
extern _Thread_local const char *crash_what, *crash_which;
static inline void               crash_doing(const char *what, const char *which)
{
    crash_what = what;
    crash_which = which;
}
