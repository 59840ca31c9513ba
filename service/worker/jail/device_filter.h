/* The lists of system calls of device workers. */
#pragma once

#include <stdbool.h>

/* 1: built with a sanitizer, whose run-time library makes calls that no list has. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEVICE_JAIL_RELAXED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DEVICE_JAIL_RELAXED 1
#endif
#endif
#ifndef DEVICE_JAIL_RELAXED
#define DEVICE_JAIL_RELAXED 0
#endif

enum device_filter {
    DEVICE_FILTER_PLAIN,  /* device_calls_plain.def; all other calls kill */
    DEVICE_FILTER_DRIVER, /* the driver's rows of device_calls_driver.def; all other calls are refused, those that lead out kill */
    DEVICE_FILTER_DENY,   /* device_calls_denied.def is refused, all other calls are allowed */
    DEVICE_FILTER_CLIENT, /* as DENY, and the sockets that are connected now may be written to: the driver's to its server */
};

/* Additional calls for sharing memory with other processes. */
enum device_filter_sharing {
    FILTER_SHARES_NOTHING,
    FILTER_SHARES_GIVEN, /* receive descriptors on WORKER_SHARE_FD, map them, send some there */
    FILTER_SHARES_MADE,  /* and open files, as a driver does to make one: only where something else guards the files */
};

/* For all threads of the process; cannot be undone. Needs NO_NEW_PRIVS. `driver` counts for DEVICE_FILTER_DRIVER only; `makes_code` for
 * DEVICE_FILTER_PLAIN: memory may become executable, if it is not writable any more. False with errno. */
bool device_filter_enter(enum device_filter f, const char *driver, enum device_filter_sharing sharing, bool makes_code);
/* Whether there are rows for this build of the driver's library. */
bool device_filter_knows(const char *driver);
