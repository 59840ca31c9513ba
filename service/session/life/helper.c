/* The helper thread: submits what the events of calls make possible, which they may not do themselves. */
#include "session/life/parts.h"

void helper_kick(struct worker_session *c)
{
    struct registry *r = c->session->registry;

    pthread_mutex_lock(&r->lock);
    if (!c->work_queued) {
        c->work_queued = true;
        c->work_next = NULL;
        c->refs++;
        c->session->pins++;
        if (r->work)
            r->work_last->work_next = c;
        else
            r->work = c;
        r->work_last = c;
        pthread_cond_signal(&r->helper_kick);
    }
    pthread_mutex_unlock(&r->lock);
}

static void help(struct worker_session *c)
{
    struct session *s = c->session;

    if (worker_session_use(c)) {
        pthread_mutex_lock(&c->submit_lock);
        launch_pump(c);
        pthread_mutex_unlock(&c->submit_lock);
        launch_fetch_outputs(c);
        module_unload_some(c);
        temp_buffer_free_some(c);
        janitor_ping(c);
        worker_session_leave(c);
    }
    pthread_mutex_lock(&s->lock);
    worker_session_unref(c);
    pthread_mutex_unlock(&s->lock);
    session_unpin(s, false);
}

static void *helper_main(void *argument)
{
    struct registry *r = argument;

    pthread_mutex_lock(&r->lock);
    for (;;) {
        struct worker_session *c = r->work;
        if (c) {
            r->work = c->work_next;
            c->work_queued = false;
            pthread_mutex_unlock(&r->lock);
            help(c);
            pthread_mutex_lock(&r->lock);
        } else if (r->helper_stop) {
            break;
        } else {
            pthread_cond_wait(&r->helper_kick, &r->lock);
        }
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

bool helper_start(struct registry *r)
{
    return pthread_create(&r->helper, NULL, helper_main, r) == 0;
}

void helper_stop(struct registry *r)
{
    pthread_mutex_lock(&r->lock);
    r->helper_stop = true;
    pthread_cond_signal(&r->helper_kick);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->helper, NULL);
}
