/* Keeps compiled kernels, and compiles those that are launched: the one with the most launches first. */
#include "device/cpu/jit/jit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/jit/compile.h"
#include "device/cpu/jit/llvm.h"
#include "device/cpu/runtime/launch.h"

enum { FORMS = 2, REASON_BYTES = 160 }; /* for blocks whose rows are whole chunks; and for others */

/* A kernel, or one form of it, is compiled at most once. */
struct jit_form {
    _Atomic(struct code *) code; /* owned; NULL until it is ready */
    enum { NOT_ASKED, ASKED, AT_WORK, READY, REFUSED } state;
    uint64_t launches; /* since it was asked for */
};

struct jit_kernel {
    struct jit_kernel         *next; /* of all kernels that were launched */
    const struct ptx_module   *module;
    const struct ptx_function *function;
    struct jit_form            forms[FORMS];
    char                       reason[REASON_BYTES]; /* of a refusal */
};

static enum jit_mode      mode;
static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below, but the codes */
static pthread_mutex_t    compiler = PTHREAD_MUTEX_INITIALIZER; /* one kernel at a time; taken before `lock` */
static pthread_cond_t     work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static struct jit_kernel *kernels;
static bool               started;

void jit_choose(enum jit_mode m)
{
    mode = m;
}

void jit_open(void)
{
    const char *why;

    if (mode != JIT_OFF)
        llvm_open(&why);
}

static void compile(struct jit_kernel *k, unsigned form)
{
    struct problem why = {0};
    struct code   *c = NULL;
    enum status    st;

    pthread_mutex_lock(&compiler);
    st = jit_compile(k->module, k->function, k->function->code, form == 0, &c, &why);
    pthread_mutex_unlock(&compiler);
    pthread_mutex_lock(&lock);
    k->forms[form].state = st ? REFUSED : READY;
    if (st)
        span_copy(span_first(span_of(why.detail), sizeof k->reason - 1), k->reason, sizeof k->reason);
    atomic_store_explicit(&k->forms[form].code, c, memory_order_release);
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&lock);
}

/* With the lock held. */
static struct jit_kernel *hottest(unsigned *form)
{
    struct jit_kernel *best = NULL;
    uint64_t           most = 0;

    for (struct jit_kernel *k = kernels; k; k = k->next) {
        for (unsigned i = 0; i < FORMS; i++) {
            if (k->forms[i].state != ASKED || k->forms[i].launches <= most)
                continue;
            best = k;
            most = k->forms[i].launches;
            *form = i;
        }
    }
    return best;
}

static void *compile_all(void *context)
{
    (void)context;
    for (;;) {
        struct jit_kernel *k;
        unsigned           form = 0;

        pthread_mutex_lock(&lock);
        while (!(k = hottest(&form)))
            pthread_cond_wait(&work, &lock);
        k->forms[form].state = AT_WORK;
        pthread_mutex_unlock(&lock);
        compile(k, form);
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
        f->jit->next = kernels;
        kernels = f->jit;
    }
    return f->jit;
}

static bool whole_rows(const struct cpu_launch *l)
{
    return l->block[0] % llvm_lanes() == 0 || (l->block[1] == 1 && l->block[2] == 1);
}

const struct code *jit_code_for(const struct cpu_launch *l)
{
    const struct code *plain = l->kernel->code, *ready;
    struct jit_kernel *k;
    struct jit_form   *f = NULL;
    const char        *missing;
    bool               now = false;
    unsigned           form;

    if (mode == JIT_OFF || plain->checked || plain->plain || !llvm_open(&missing))
        return plain;
    form = whole_rows(l) ? 0 : 1;
    pthread_mutex_lock(&lock);
    k = kernel_of(l);
    f = k ? &k->forms[form] : NULL;
    if (f && f->state == NOT_ASKED && (mode == JIT_NOW || start_thread())) {
        f->state = mode == JIT_NOW ? AT_WORK : ASKED;
        now = mode == JIT_NOW;
        pthread_cond_signal(&work);
    }
    if (f)
        f->launches++;
    pthread_mutex_unlock(&lock);
    if (now)
        compile(k, form);
    ready = f ? atomic_load_explicit(&f->code, memory_order_acquire) : NULL;
    return ready ? ready : plain;
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

static bool form_engine(const struct jit_kernel *k, char *reason, size_t room)
{
    for (unsigned i = 0; i < FORMS; i++) {
        const struct code *c = atomic_load(&k->forms[i].code);

        if (c) {
            jit_describe(c, reason, room);
            return true;
        }
    }
    for (unsigned i = 0; i < FORMS; i++) {
        if (k->forms[i].state == REFUSED) {
            span_copy(span_of(k->reason), reason, room);
            return false;
        }
    }
    snprintf(reason, room, "it is being compiled");
    return false;
}

bool jit_engine(const struct ptx_function *f, bool checked, char *reason, size_t room)
{
    const char *missing = NULL;
    bool        ready = false;

    if (mode == JIT_OFF)
        snprintf(reason, room, "compiling is off (cpu_jit)");
    else if (checked)
        snprintf(reason, room, "the session has memcheck");
    else if (!llvm_open(&missing))
        snprintf(reason, room, "%s", missing);
    else if (!f->jit)
        snprintf(reason, room, "it is compiled when it is launched");
    else {
        pthread_mutex_lock(&lock);
        ready = form_engine(f->jit, reason, room);
        pthread_mutex_unlock(&lock);
    }
    return ready;
}
