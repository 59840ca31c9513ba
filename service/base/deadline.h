/* Monotonic time in nanoseconds; a deadline is a time of that clock. Wall time is for display only. */
#pragma once

#include <stdint.h>
#include <time.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* A deadline that never passes. */
#define DEADLINE_NEVER UINT64_MAX

static inline uint64_t clock_ns(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

/* Wall time since 1970, UTC. */
static inline uint64_t wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

/* Saturates: a huge timeout is DEADLINE_NEVER. */
static inline uint64_t deadline_after_ns(uint64_t timeout_ns)
{
    uint64_t now = now_ns();
    return timeout_ns > DEADLINE_NEVER - now ? DEADLINE_NEVER : now + timeout_ns;
}

static inline uint64_t deadline_after_ms(uint64_t timeout_ms)
{
    return timeout_ms > DEADLINE_NEVER / NS_PER_MS ? DEADLINE_NEVER : deadline_after_ns(timeout_ms * NS_PER_MS);
}

/* 0 once it has passed. */
static inline uint64_t deadline_left_ns(uint64_t deadline)
{
    uint64_t now = now_ns();
    return deadline > now ? deadline - now : 0;
}

static inline struct timespec timespec_of_ns(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
}

/* A signal may end it earlier. */
static inline void sleep_ns(uint64_t ns)
{
    const struct timespec t = timespec_of_ns(ns);

    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}
