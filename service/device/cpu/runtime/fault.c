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

bool fault_thread_start(struct fault_guard *g, uint64_t base, uint64_t span)
{
    stack_t ours = {.ss_size = SIGNAL_STACK_BYTES};

    *g = (struct fault_guard){.base = base, .span = span};
    g->stack = malloc(SIGNAL_STACK_BYTES);
    if (!g->stack)
        return false;
    ours.ss_sp = g->stack;
    if (sigaltstack(&ours, NULL) != 0) {
        free(g->stack);
        g->stack = NULL;
        return false;
    }
    guard_of_thread = g;
    return true;
}

void fault_thread_end(struct fault_guard *g)
{
    stack_t none = {.ss_flags = SS_DISABLE};

    guard_of_thread = NULL;
    if (g->stack)
        sigaltstack(&none, NULL);
    free(g->stack);
    g->stack = NULL;
}
