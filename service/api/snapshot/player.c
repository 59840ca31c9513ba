/* Plays the part of http/ to handlers: port, waker, source and sink. */
#include "api/snapshot/player.h"

#include <stdlib.h>

static struct span no_header(const struct request *r, const char *name)
{
    (void)r;
    (void)name;
    return (struct span){0};
}

static bool never_gone(const struct request *r)
{
    (void)r;
    return false;
}

static void wake(struct waker *w)
{
    struct player *p = (struct player *)((char *)w - offsetof(struct player, r.waker));

    pthread_mutex_lock(&p->lock);
    p->awake = true;
    pthread_cond_signal(&p->woken);
    pthread_mutex_unlock(&p->lock);
}

static void player_await(struct player *p)
{
    pthread_mutex_lock(&p->lock);
    while (!p->awake)
        pthread_cond_wait(&p->woken, &p->lock);
    p->awake = false;
    pthread_mutex_unlock(&p->lock);
}

struct player *player_make(struct app *app, struct caller *caller, const char *id)
{
    struct player *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->port = (struct request_port){.header = no_header, .gone = never_gone};
    p->r.app = app;
    p->r.caller = caller;
    p->r.params[0] = span_of(id);
    p->r.port = &p->port;
    p->r.waker.wake = wake;
    p->r.wake_at_ns = DEADLINE_NEVER;
    arena_init(&p->r.arena, REQUEST_ARENA_BYTES);
    reply_init(&p->r.reply);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->woken, NULL);
    return p;
}

void player_free(struct player *p)
{
    if (p->r.on_finish)
        p->r.on_finish(&p->r);
    reply_finish(&p->r.reply);
    arena_finish(&p->r.arena);
    pthread_cond_destroy(&p->woken);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

enum status player_receive(struct player *p, player_put *put, void *context)
{
    struct body_source *source = p->r.reply.source;
    uint64_t            left = p->r.reply.source_bytes;
    enum status         st = STATUS_OK;

    while (left && !st) {
        struct span piece;

        st = source->lend(source, &piece, &p->r.waker);
        if (st == STATUS_PENDING) {
            player_await(p);
            st = STATUS_OK;
            continue;
        }
        if (st)
            return problem_set(&p->r.problem, st, "the session was lost while it was read");
        st = put(context, piece, &p->r.problem);
        source->release(source, st ? 0 : piece.bytes);
        left -= piece.bytes;
    }
    return st;
}

static enum status run_prepare(struct player *p)
{
    enum status (*prepare)(struct request *) = p->r.prepare;

    p->r.prepare = NULL;
    if (prepare)
        return prepare(&p->r);
    player_await(p);
    return STATUS_OK;
}

enum status player_send(struct player *p, struct span rest)
{
    enum status st = STATUS_OK;

    while (rest.bytes && !st) {
        size_t consumed = 0;

        st = body_sink_write(p->r.sink, &p->r, rest, &consumed);
        rest = span_from(rest, consumed);
        if (st == STATUS_PENDING)
            st = run_prepare(p);
    }
    return st;
}
