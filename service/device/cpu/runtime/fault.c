/* Catches SIGSEGV and SIGBUS that a kernel's access into device memory caused, and nothing else. */
#include "device/cpu/runtime/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNAL_STACK_BYTES = 64 * 1024 };

static _Thread_local struct fault_guard *guard_of_thread;
static bool                              installed;
static struct sigaction                  before_segv, before_bus;
static pthread_key_t                     stack_key; /* of the thread's alternate signal stack */
static bool                              have_key;

/* Whoever was there before is put back, and the access repeats on return; a signal that somebody sent would not. */
static void not_ours(int number, const siginfo_t *info)
{
    sigaction(number, number == SIGSEGV ? &before_segv : &before_bus, NULL);
    if (info->si_code <= 0)
        raise(number);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    struct fault_guard *g = guard_of_thread;
    uint64_t            at = (uint64_t)(uintptr_t)info->si_addr;

    (void)context;
    if (!g || !g->armed || info->si_code <= 0 || at - g->base >= g->span) {
        not_ours(number, info);
        return;
    }
    g->armed = false;
    g->address = at;
    siglongjmp(g->jump, 1);
}

/* SA_NODEFER: the handler is left by a jump that restores no signal mask (saving it would cost a system call per block). */
static void install_once(void)
{
    struct sigaction ours;

    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    installed = sigaction(SIGSEGV, &ours, &before_segv) == 0 && sigaction(SIGBUS, &ours, &before_bus) == 0;
}

bool fault_install(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_once);
    return installed;
}

/* The thread ends. */
static void drop_stack(void *stack)
{
    stack_t none = {.ss_flags = SS_DISABLE};

    sigaltstack(&none, NULL);
    free(stack);
}

static void make_key(void)
{
    have_key = pthread_key_create(&stack_key, drop_stack) == 0;
}

/* A thread keeps its stack: setting one costs a system call, which is long beside a small launch. */
static bool has_stack(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    stack_t               ours = {.ss_size = SIGNAL_STACK_BYTES};

    pthread_once(&once, make_key);
    if (!have_key)
        return false;
    if (pthread_getspecific(stack_key))
        return true;
    ours.ss_sp = malloc(SIGNAL_STACK_BYTES);
    if (!ours.ss_sp)
        return false;
    if (sigaltstack(&ours, NULL) == 0 && pthread_setspecific(stack_key, ours.ss_sp) == 0)
        return true;
    drop_stack(ours.ss_sp);
    return false;
}

bool fault_thread_start(struct fault_guard *g, uint64_t base, uint64_t span)
{
    *g = (struct fault_guard){.base = base, .span = span};
    if (!has_stack())
        return false;
    guard_of_thread = g;
    return true;
}

void fault_thread_end(void)
{
    guard_of_thread = NULL;
}
