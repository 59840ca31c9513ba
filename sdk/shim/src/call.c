/* What surrounds every call of a program: the lock, what the call needs, errors that stick, and the trace. */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int      owner; /* process that called cuInit; 0: none */
static _Atomic(int *)  here;  /* 1 in that process, 0 in its children; NULL: not known so */
static atomic_bool     ended; /* the process is exiting */

static _Thread_local bool forbidden; /* in a callback of a stream */

void tell(const char *format, ...)
{
    char    text[MESSAGE_ROOM];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "gpurest: %s\n", text);
}

uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The environment is read once: a program may change it while other threads call. */
bool call_traced(void)
{
    static atomic_int traced; /* 0: not known yet; 1: no; 2: yes */
    const char       *wanted;

    if (!atomic_load(&traced)) {
        wanted = getenv("GPUREST_TRACE");
        atomic_store(&traced, wanted && *wanted && strcmp(wanted, "0") != 0 ? 2 : 1);
    }
    return atomic_load(&traced) == 2;
}

void call_lock(void)
{
    pthread_mutex_lock(&lock);
}

void call_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void call_forbid(bool now)
{
    forbidden = now;
}

/* The kernel clears the page in every child; those before 4.14 refuse. getpid() and a clock that only the trace reads took 0.25 us of each call, and
 * a launch of a loop takes some 4 (one machine, load 12, 2026-11-28). */
static void mark_process(void)
{
    const size_t bytes = sizeof(int);
    int         *mark = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mark == MAP_FAILED)
        return;
    if (madvise(mark, bytes, MADV_WIPEONFORK)) {
        munmap(mark, bytes);
        return;
    }
    *mark = 1;
    atomic_store(&here, mark);
}

/* A child of fork() has neither the connections nor the threads of its parent, and its locks may be held for good. */
static CUresult check_process(void)
{
    const int *mark = atomic_load(&here);
    bool       ours = mark ? *mark : atomic_load(&owner) == (int)getpid();

    if (atomic_load(&ended))
        return CUDA_ERROR_DEINITIALIZED;
    return ours ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult check_context(void)
{
    const struct context *c = context_current();

    return c ? c->gpu->sticky : context_absent();
}

CUresult call_enter(struct call *c, const char *symbol, enum needs needs)
{
    CUresult r;

    *c = (struct call){.symbol = symbol, .begun_ns = call_traced() ? now_ns() : 0};
    if (needs == NEEDS_NOTHING)
        return CUDA_SUCCESS;
    r = forbidden ? CUDA_ERROR_NOT_PERMITTED : check_process();
    if (r)
        return r;
    call_lock();
    c->locked = true;
    c->messages = gpu_messages();
    return needs == NEEDS_CONTEXT ? check_context() : CUDA_SUCCESS;
}

CUresult call_leave(struct call *c, CUresult result)
{
    uint64_t messages = c->locked ? gpu_messages() - c->messages : 0;

    if (c->locked) {
        report_call(c->symbol, result);
        call_unlock();
    }
    if (call_traced()) {
        const char *name = "?";

        shim_cuGetErrorName(result, &name);
        tell("%s = %s, %.1f us, %llu requests", c->symbol, name ? name : "?", (double)(now_ns() - c->begun_ns) / 1e3,
             (unsigned long long)messages);
    }
    return result;
}

/* Needs no service: programs ask for the error's text next. Again is fine, also in a child of fork() whose parent did not call it. */
CUresult call_init(unsigned flags)
{
    int nobody = 0;

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (atomic_load(&ended))
        return CUDA_ERROR_DEINITIALIZED;
    if (atomic_compare_exchange_strong(&owner, &nobody, (int)getpid())) {
        mark_process();
        return CUDA_SUCCESS;
    }
    return nobody == (int)getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/* The service would end the sessions by their leases; this is sooner. A thread that is in a call keeps the lock: then they are left to that. */
__attribute__((destructor)) static void end_of_process(void)
{
    bool locked;

    if (atomic_load(&owner) != (int)getpid() || atomic_exchange(&ended, true))
        return;
    locked = pthread_mutex_trylock(&lock) == 0;
    if (locked)
        gpus_close();
    report_end(locked);
    if (locked)
        pthread_mutex_unlock(&lock);
}
