/* Keeps one compile worker ready. */
#include "pool/compile/warm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/files/descriptor.h"
#include "base/log/log.h"
#include "base/threads/held.h"
#include "limits.h"

struct warm_compiler {
    const struct compile_command *command;
    pthread_t                     thread;
    pthread_mutex_t               lock; /* over all below */
    pthread_cond_t                changed;
    bool                          stopping;
    bool                          wanted; /* one is to be started */
    bool                          there;
    struct compile_child          child;
    char                          arch[COMPILE_ARCH_BYTES];
};

/* Under the lock: a dead one counts as none. */
static bool take_living(struct warm_compiler *s, struct compile_child *out)
{
    assert(held(&s->lock));
    if (!s->there)
        return false;
    s->there = false;
    *out = s->child;
    if (!descriptor_readable(out->process.pid_fd))
        return true;
    compile_child_end(out, false, 0);
    return false;
}

/* Under the lock, which it releases meanwhile. */
static void start_warm_compiler(struct warm_compiler *s)
{
    char                 argument[sizeof "--warm=" + COMPILE_ARCH_BYTES];
    struct compile_child fresh;
    enum status          st;

    assert(held(&s->lock));
    snprintf(argument, sizeof argument, "--warm=%s", s->arch);
    s->wanted = false;
    pthread_mutex_unlock(&s->lock);
    st = compile_child_start(s->command, argument, &fresh);
    pthread_mutex_lock(&s->lock);
    if (st) {
        log_debug("compile", "no warm compiler: %s", status_code(st));
        return;
    }
    s->child = fresh;
    s->there = true;
}

static void *keep_warm(void *argument)
{
    struct warm_compiler *s = argument;

    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        if (s->wanted && !s->there)
            start_warm_compiler(s);
        else
            pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

enum status warm_compiler_create(struct warm_compiler **out, const struct compile_command *c)
{
    struct warm_compiler *s = calloc(1, sizeof *s);

    if (!s)
        return STATUS_OUT_OF_MEMORY;
    s->command = c;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (pthread_create(&s->thread, NULL, keep_warm, s)) {
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->lock);
        free(s);
        return STATUS_OVERLOADED;
    }
    *out = s;
    return STATUS_OK;
}

void warm_compiler_destroy(struct warm_compiler *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    if (s->there)
        compile_child_end(&s->child, false, 0);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

bool warm_compiler_take(struct warm_compiler *s, struct compile_child *out)
{
    bool taken;

    if (!s)
        return false;
    pthread_mutex_lock(&s->lock);
    taken = take_living(s, out);
    pthread_mutex_unlock(&s->lock);
    return taken;
}

void warm_compiler_refill(struct warm_compiler *s, struct span arch)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    if (arch.bytes && !span_copy(arch, s->arch, sizeof s->arch))
        s->arch[0] = '\0';
    s->wanted = !s->there;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
