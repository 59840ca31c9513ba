/* Keeps compiled kernels, and compiles those that the interpreter has spent long enough on: the one that it has spent most on first. */
#include "device/cpu/jit/jit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "base/log/log.h"
#include "device/cpu/jit/compile.h"
#include "device/cpu/jit/llvm.h"
#include "device/cpu/runtime/launch.h"

enum { FORMS = 4 };
enum { LEAVING_MAX = 256 }; /* modules that wait for the end of a compilation; whoever unloads another one then waits, too */
/* How a kernel is compiled depends on the shape of its launch's blocks: for chunks of two vectors of one row, of the
 * rows of two vectors that it has several of, of one vector, or for any. */
enum { TWO_VECTORS, ROWS_OF_TWO, ONE_VECTOR, ANY_SHAPE };

/* Each form of a kernel is compiled at most once. */
struct jit_form {
    _Atomic(struct code *) code; /* owned; NULL until it is ready */
    enum { NOT_ASKED, ASKED, AT_WORK, READY, REFUSED } state;
    uint64_t spent_ns; /* by the interpreter */
};

struct jit_kernel {
    struct jit_kernel         *next; /* of all kernels that were launched */
    const struct ptx_module   *module;
    const struct ptx_function *function;
    bool                       warps; /* its chunks are warps, whatever the form */
    struct jit_form            forms[FORMS];
};

static enum jit_mode      mode;
static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER;     /* guards all below, but the codes */
static pthread_mutex_t    compiler = PTHREAD_MUTEX_INITIALIZER; /* one kernel at a time; taken before `lock` */
static pthread_cond_t     work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct jit_kernel *kernels;
static bool               started, at_work; /* the thread */

/* A module that was unloaded during a compilation, which may take LLVM a minute: nobody waits for that. */
static struct leaving {
    struct ptx_module *module;
    void (*end)(struct ptx_module *module);
} leaving[LEAVING_MAX];
static unsigned leaving_count;

void jit_choose(enum jit_mode m)
{
    mode = m;
}

bool jit_open(void)
{
    const char *why;

    return mode != JIT_OFF && llvm_open(&why);
}

static void compile(struct jit_kernel *k, unsigned form)
{
    struct problem why = {0};
    struct code   *c = NULL;
    uint64_t       began = now_ns();
    enum status    st;

    pthread_mutex_lock(&compiler);
    st = jit_compile(k->module, k->function, k->function->code,
                     k->warps              ? WARP_LANES
                     : form <= ROWS_OF_TWO ? 2 * llvm_lanes()
                                           : llvm_lanes(),
                     form != ANY_SHAPE, form == ROWS_OF_TWO || form == ONE_VECTOR, mode != JIT_NOW, &c, &why);
    pthread_mutex_unlock(&compiler);
    if (!st && mode != JIT_NOW)
        log_info("device", "compiled kernel %.*s in %llu ms", SPAN_ARG(span_first(k->function->name, 64)),
                 (unsigned long long)((now_ns() - began) / NS_PER_MS));
    pthread_mutex_lock(&lock);
    k->forms[form].state = st ? REFUSED : READY;
    if (st)
        log_debug("device", "%.*s stays with the interpreter: %s", SPAN_ARG(span_first(k->function->name, 64)), why.detail);
    atomic_store_explicit(&k->forms[form].code, c, memory_order_release);
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&lock);
}

/* With the lock held. The oldest kernel that is asked for: the hottest one first brought nothing (twelve kernels in turns, 2026-11-28). */
static struct jit_kernel *next_asked(unsigned *form)
{
    struct jit_kernel *oldest = NULL;

    for (struct jit_kernel *k = kernels; k; k = k->next) {
        for (unsigned i = 0; i < FORMS; i++) {
            if (k->forms[i].state == ASKED) {
                oldest = k;
                *form = i;
            }
        }
    }
    return oldest;
}

/* Ends what was unloaded meanwhile, with the lock held, which it gives up for each. */
static void end_leaving(void)
{
    while (leaving_count) {
        struct leaving l = leaving[--leaving_count];

        pthread_mutex_unlock(&lock);
        l.end(l.module);
        pthread_mutex_lock(&lock);
    }
}

static void *compile_all(void *context)
{
    (void)context;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct jit_kernel *k;
        unsigned           form = 0;

        while (!(k = next_asked(&form)))
            pthread_cond_wait(&work, &lock);
        k->forms[form].state = AT_WORK;
        at_work = true;
        pthread_mutex_unlock(&lock);
        compile(k, form);
        pthread_mutex_lock(&lock);
        at_work = false;
        end_leaving();
        pthread_cond_broadcast(&done);
    }
    return NULL;
}

/* With the lock held. False: there is no thread, and kernels stay in the interpreter. */
static bool start_thread(void)
{
    pthread_t thread;

    if (!started && pthread_create(&thread, NULL, compile_all, NULL) == 0) {
        pthread_detach(thread);
        started = true;
    }
    return started;
}

/* With the lock held. */
static struct jit_kernel *kernel_of(const struct cpu_launch *l)
{
    struct ptx_function *f = &l->module->functions[l->kernel - l->module->functions];

    if (!f->jit) {
        f->jit = calloc(1, sizeof *f->jit);
        if (!f->jit)
            return NULL;
        f->jit->module = l->module;
        f->jit->function = f;
        f->jit->warps = jit_meets_warp(l->module, f);
        f->jit->next = kernels;
        kernels = f->jit;
    }
    return f->jit;
}

/* About what compiling a kernel takes on one thread: what LLVM does for each value takes longer, the more blocks there are. Fitted to the benchmarks'
 * kernels (23 instructions in 5 blocks: 42 ms; 108 in 11: 157; 114 in 30: 300) and one with barrier objects (377 in 119: 12 s). */
static uint64_t compiling_ns(const struct code *c)
{
    uint64_t insns = 0;

    for (uint32_t i = 0; i < c->blocks_count; i++)
        insns += c->blocks[i].insn_count;
    return (30 + insns * c->blocks_count / 8) * NS_PER_MS;
}

static unsigned form_of(const struct cpu_launch *l, bool warps)
{
    bool     one_row = l->block[1] == 1 && l->block[2] == 1;
    unsigned most = warps ? WARP_LANES : 2 * llvm_lanes();

    if (one_row || l->block[0] % most == 0)
        return one_row || warps || l->block[0] != most ? TWO_VECTORS : ROWS_OF_TWO;
    if (warps)
        return ANY_SHAPE;
    return l->block[0] % llvm_lanes() == 0 ? ONE_VECTOR : ANY_SHAPE;
}

static bool is_compiled(const struct code *plain)
{
    const char *missing;

    return mode != JIT_OFF && !plain->checked && !plain->plain && llvm_open(&missing);
}

/* With the lock held. NULL: out of memory. */
static struct jit_form *form_for(const struct cpu_launch *l, struct jit_kernel **k, unsigned *form)
{
    *k = kernel_of(l);
    *form = form_of(l, *k && (*k)->warps);
    return *k ? &(*k)->forms[*form] : NULL;
}

const struct code *jit_code_for(const struct cpu_launch *l, bool *later)
{
    const struct code *plain = l->kernel->code, *ready;
    struct jit_kernel *k;
    struct jit_form   *f;
    bool               now = false;
    unsigned           form;

    *later = false;
    if (!is_compiled(plain))
        return plain;
    pthread_mutex_lock(&lock);
    f = form_for(l, &k, &form);
    if (f && f->state == NOT_ASKED && mode == JIT_NOW) {
        f->state = AT_WORK;
        now = true;
    }
    *later = f && f->state < READY && mode != JIT_NOW;
    pthread_mutex_unlock(&lock);
    if (now)
        compile(k, form);
    ready = f ? atomic_load_explicit(&f->code, memory_order_acquire) : NULL;
    return ready ? ready : plain;
}

bool jit_spent(const struct cpu_launch *l, uint64_t ns)
{
    struct jit_kernel *k;
    struct jit_form   *f;
    unsigned           form;
    bool               more;

    if (!is_compiled(l->kernel->code))
        return false;
    pthread_mutex_lock(&lock);
    f = form_for(l, &k, &form);
    if (f)
        f->spent_ns += ns;
    /* A kernel that will not run for longer than it already has costs at most twice what it needs to. */
    if (f && f->state == NOT_ASKED && (mode == JIT_EAGER || f->spent_ns >= compiling_ns(k->function->code)) && start_thread()) {
        f->state = ASKED;
        pthread_cond_signal(&work);
    }
    more = f && f->state < READY;
    pthread_mutex_unlock(&lock);
    return more;
}

/* With the lock held. */
static void unlink_kernel(struct jit_kernel *k)
{
    struct jit_kernel **at = &kernels;

    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
}

static void free_kernel(struct jit_kernel *k)
{
    pthread_mutex_lock(&compiler);
    for (unsigned i = 0; i < FORMS; i++)
        jit_release(atomic_load(&k->forms[i].code));
    pthread_mutex_unlock(&compiler);
    free(k);
}

void jit_forget(struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->functions_count; i++) {
        struct jit_kernel *k = m->functions[i].jit;

        if (!k)
            continue;
        pthread_mutex_lock(&lock);
        for (unsigned form = 0; form < FORMS; form++) {
            while (k->forms[form].state == AT_WORK)
                pthread_cond_wait(&done, &lock);
            if (k->forms[form].state == ASKED)
                k->forms[form].state = REFUSED;
        }
        unlink_kernel(k);
        pthread_mutex_unlock(&lock);
        m->functions[i].jit = NULL;
        free_kernel(k);
    }
}

/* With the lock held. */
static bool was_launched(const struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->functions_count; i++)
        if (m->functions[i].jit)
            return true;
    return false;
}

/* With the lock held. */
static void ask_no_more(struct ptx_module *m)
{
    for (struct jit_kernel *k = kernels; k; k = k->next)
        for (unsigned form = 0; form < FORMS && k->module == m; form++)
            if (k->forms[form].state == ASKED)
                k->forms[form].state = REFUSED;
}

void jit_leave(struct ptx_module *m, void (*end)(struct ptx_module *module))
{
    bool later;

    pthread_mutex_lock(&lock);
    later = at_work && leaving_count < LEAVING_MAX && was_launched(m);
    if (later) {
        ask_no_more(m);
        leaving[leaving_count++] = (struct leaving){m, end};
    }
    pthread_mutex_unlock(&lock);
    if (!later)
        end(m);
}

void jit_settle(void)
{
    pthread_mutex_lock(&lock);
    while (at_work || leaving_count)
        pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
}

bool jit_engine(const struct ptx_module *m, const struct ptx_function *f, char *reason, size_t room)
{
    const struct code *plain = f->code;
    const char        *missing = NULL;
    struct problem     why = {0};

    if (mode == JIT_OFF)
        snprintf(reason, room, "compiling is off: cpu_jit");
    else if (plain->checked)
        snprintf(reason, room, "the session has memcheck");
    else if (!llvm_open(&missing))
        snprintf(reason, room, "%s", missing);
    else if (jit_survey(m, f, plain, &why))
        span_copy(span_first(span_of(why.detail), room - 1), reason, room);
    else {
        snprintf(reason, room, "launches change over to compiled code when it is ready");
        return true;
    }
    return false;
}
