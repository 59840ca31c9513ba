/* What a test and the library it preloads into the front-end share: one page of a file, mapped by both. All counters are relaxed atomics. */
#ifndef GPUREST_TESTS_FAULT_SHIM_H
#define GPUREST_TESTS_FAULT_SHIM_H

#include <stdint.h>

/* FUNCTION(name): its number is its place. tests/fault/shim.py reads this list. ALLOCATE stands for every function that gives memory. */
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
    uint32_t function;       /* which one fails */
    int32_t  error;          /* errno; 0: a short count, where there is one */
    int64_t  countdown;      /* calls of it that still go well */
    int64_t  times;          /* so many fail then; 0: nothing is armed */
    int64_t  hits;           /* calls that have failed */
    int64_t  live;           /* allocations that were not freed */
    int64_t  wall_offset_ns; /* added to the time of day */
    int64_t  shutdown_us;    /* shutdown() takes so long */
    int64_t  calls[FAULT_COUNT];
};

#endif
