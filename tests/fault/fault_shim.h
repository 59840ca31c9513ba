/* Shared by a test and the library that it preloads into the front-end: one page of a file, mapped by both. All counters are relaxed
 * atomics. */
#pragma once

#include <stdint.h>

/* FUNCTION(name): the position is the function's number. tests/fault/shim.py reads this list. ALLOCATE stands for every allocating
 * function. */
#define FAULT_FUNCTIONS(FUNCTION) \
    FUNCTION(allocate)            \
    FUNCTION(recv)                \
    FUNCTION(send)                \
    FUNCTION(sendmsg)             \
    FUNCTION(accept4)             \
    FUNCTION(epoll_wait)          \
    FUNCTION(poll)                \
    FUNCTION(mmap)                \
    FUNCTION(memfd_create)        \
    FUNCTION(ftruncate)           \
    FUNCTION(socketpair)          \
    FUNCTION(pipe2)               \
    FUNCTION(eventfd)             \
    FUNCTION(openat)              \
    FUNCTION(open)                \
    FUNCTION(read)                \
    FUNCTION(write)               \
    FUNCTION(fsync)               \
    FUNCTION(renameat)            \
    FUNCTION(unlinkat)            \
    FUNCTION(mkdirat)             \
    FUNCTION(pread)               \
    FUNCTION(pwrite)              \
    FUNCTION(posix_fallocate)     \
    FUNCTION(execve)              \
    FUNCTION(waitpid)             \
    FUNCTION(posix_spawn)         \
    FUNCTION(pthread_create)      \
    FUNCTION(getrandom)

enum fault_function {
#define FUNCTION(name) FAULT_##name,
    FAULT_FUNCTIONS(FUNCTION)
#undef FUNCTION
    FAULT_COUNT
};

/* Fixed sizes, in this order: shim.py has the same. */
struct fault_control {
    uint32_t function;       /* the one that fails */
    int32_t  error;          /* errno; 0: a short count, if there is one */
    int64_t  countdown;      /* calls of it that still succeed */
    int64_t  times;          /* how many calls then fail; 0: not armed */
    int64_t  hits;           /* calls that have failed */
    int64_t  live;           /* allocations that were not freed */
    int64_t  wall_offset_ns; /* added to the time of day */
    int64_t  shutdown_us;    /* duration of shutdown() */
    int64_t  calls[FAULT_COUNT];
};
