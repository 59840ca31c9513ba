/* All that a handler calls here is async-signal-safe: texts are put together by hand, the unwinder is loaded beforehand, and modules are found
 * by the C library's lock-free table. */
#include "base/log/crash.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/deadline.h"
#include "base/digits.h"
#include "base/log/log_lines.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { FRAMES_MAX = 48, STACK_BYTES = 64 * 1024 };

static const struct {
    int         number;
    const char *name;
} faults[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}, {SIGABRT, "SIGABRT"}, {SIGSYS, "SIGSYS"}};

static struct sigaction before[COUNT(faults)];
static const char      *crash_role;
static atomic_flag      crashed = ATOMIC_FLAG_INIT; /* one thread reports */
static atomic_bool      reported;

_Thread_local const char *crash_what, *crash_which;

/* ---- texts ---- */

struct text {
    char   data[LOG_MESSAGE_BYTES];
    size_t bytes;
};

static void add_span(struct text *t, struct span s)
{
    for (size_t i = 0; i < s.bytes && t->bytes < sizeof t->data - 1; i++)
        t->data[t->bytes++] = s.data[i];
    t->data[t->bytes] = '\0';
}

static void add(struct text *t, const char *s)
{
    add_span(t, span_of(s));
}

static void add_number(struct text *t, uint64_t n, unsigned base)
{
    char room[DIGITS_MAX];

    add(t, base == 16 ? "0x" : "");
    add_span(t, digits_of(n, base, room));
}

/* ---- the report ---- */

static void say(const char *message)
{
    bool worker = strcmp(crash_role, "worker") == 0 || strcmp(crash_role, "device-monitor") == 0 || strcmp(crash_role, "count") == 0;
    enum log_category category = worker                                      ? LOG_CATEGORY_WORKER
                                 : strcmp(crash_role, "compile-worker") == 0 ? LOG_CATEGORY_COMPILE
                                                                             : LOG_CATEGORY_FRONTEND;

    log_crash_line(crash_role, category, message);
}

static void say_cause(int number, const siginfo_t *info)
{
    static struct text t; /* of the one thread that reports */

    add(&t, crash_role);
    add(&t, " crashed: ");
    for (size_t i = 0; i < COUNT(faults); i++)
        if (faults[i].number == number)
            add(&t, faults[i].name);
    if (info->si_code > 0) {
        add(&t, " at address ");
        add_number(&t, (uint64_t)(uintptr_t)info->si_addr, 16);
    } else if (info->si_pid == getpid()) {
        add(&t, " raised by itself");
    } else {
        add(&t, " sent by process ");
        add_number(&t, (uint64_t)info->si_pid, 10);
    }
    add(&t, ", thread ");
    add_number(&t, (uint64_t)gettid(), 10);
    add(&t, ", doing: ");
    add(&t, crash_what ? crash_what : "nothing in particular");
    if (crash_which)
        add(&t, " ");
    add(&t, crash_which ? crash_which : "");
    say(t.data);
}

/* As addr2line takes it: the module, and where in its file. */
static void say_frame(unsigned number, void *pc)
{
    static struct text    t;
    struct dl_find_object found;
    const char           *name, *slash;

    t.bytes = 0;
    add(&t, "frame ");
    add_number(&t, number, 10);
    add(&t, ": ");
    if (_dl_find_object(pc, &found)) {
        add_number(&t, (uint64_t)(uintptr_t)pc, 16);
    } else {
        name = found.dlfo_link_map->l_name;
        slash = strrchr(name, '/');
        add(&t, name[0] == '\0' ? "gpurestd" : slash ? slash + 1 : name);
        add(&t, "+");
        add_number(&t, (uint64_t)(uintptr_t)pc - (uint64_t)found.dlfo_link_map->l_addr, 16);
    }
    say(t.data);
}

/* The cause first: on a damaged stack the unwinder may crash, too, which ends the process. */
static void report(int number, const siginfo_t *info)
{
    static void *frames[FRAMES_MAX];
    int          count;

    say_cause(number, info);
    count = backtrace(frames, FRAMES_MAX);
    for (int i = 0; i < count; i++)
        say_frame((unsigned)i, frames[i]);
}

/* ---- signals ---- */

static void await_report(void)
{
    for (unsigned i = 0; i < LOG_CRASH_FLUSH_MS && !atomic_load(&reported); i++)
        sleep_ns(NS_PER_MS);
}

/* On return the fault happens again, to whoever was there before; one that somebody sent, or a refused call, would not. */
static void on_fault(int number, siginfo_t *info, void *unused)
{
    (void)unused;
    if (!atomic_flag_test_and_set(&crashed)) {
        log_crash_flush();
        if (!SANITIZED)
            report(number, info);
        atomic_store(&reported, true);
    } else {
        await_report();
    }
    for (size_t i = 0; i < COUNT(faults); i++)
        if (faults[i].number == number)
            sigaction(number, &before[i], NULL);
    if (info->si_code <= 0 || number == SIGSYS)
        raise(number);
}

static void take_faults(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    for (size_t i = 0; i < COUNT(faults); i++)
        sigaddset(&action.sa_mask, faults[i].number);
    for (size_t i = 0; i < COUNT(faults); i++)
        sigaction(faults[i].number, &action, &before[i]);
}

/* A sanitizer has such stacks of its own, and frees what it finds in their place. */
static void use_stack(void *stack)
{
    if (!SANITIZED)
        sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = STACK_BYTES}, NULL);
}

void crash_install(const char *role)
{
    static char stack[STACK_BYTES];
    void       *frame;
    bool        installed = crash_role != NULL;

    crash_role = role;
    if (installed)
        return;
    backtrace(&frame, 1); /* loads the unwinder, which allocates */
    use_stack(stack);
    take_faults();
}

/* ---- threads ---- */

struct start {
    void *(*run)(void *);
    void *argument;
    char  stack[STACK_BYTES];
};

static void *run_thread(void *context)
{
    struct start *s = context;
    void         *result;

    use_stack(s->stack);
    result = s->run(s->argument);
    if (!SANITIZED)
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    free(s);
    return result;
}

bool crash_thread_start(pthread_t *out, void *(*run)(void *), void *argument)
{
    struct start *s = malloc(sizeof *s);
    sigset_t      others, mask;
    bool          started;

    if (!s)
        return false;
    s->run = run;
    s->argument = argument;
    sigfillset(&others);
    for (size_t i = 0; i < COUNT(faults); i++)
        sigdelset(&others, faults[i].number);
    pthread_sigmask(SIG_SETMASK, &others, &mask);
    started = pthread_create(out, NULL, run_thread, s) == 0;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (!started)
        free(s);
    return started;
}
