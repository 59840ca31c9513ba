/* A registry on a pool of workers of the fake device with one session in it. */
#ifndef GPUREST_TESTS_SESSION_FIXTURE_H
#define GPUREST_TESTS_SESSION_FIXTURE_H

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "session/launch/internal.h"
#include "support/fake_pool.h"

enum { FIXTURE_SHARED_BYTES = 104 << 20 };

struct fixture {
    struct registry   *registry;
    struct code_cache *cache;
    struct tenant      tenant;
    struct session    *session;
    struct arena       arena;
    struct problem     why;
};

/* `slices` of staging per worker. */
void fixture_start(struct fixture *f, unsigned slices);
/* Checks that nothing is left. */
void            fixture_end(struct fixture *f);
struct session *fixture_session(struct fixture *f, const char *id, uint64_t memory_limit);
/* Blocks until the workers that resets took away are back. */
void settle(struct fixture *f);
/* Waits until a session that the janitor has ended counts no longer. It is pinned. */
void await_closed(struct session *s);
void make_buffer(struct fixture *f, const char *id, uint64_t bytes);
void make_module(struct fixture *f, const char *id, const char *source);
/* The module "m" must exist. */
struct launch     *launch_of(struct fixture *f, const char *id, const char *kernel);
struct launch_info info_of(struct launch *l);
void               upload(struct fixture *f, const char *buffer, struct span bytes);
/* Blocks until the launch has finished, by a waker. */
void await_end(struct launch *l);

/* A waker somebody can sleep on. */
struct bell {
    struct waker    waker;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    unsigned        rung;
};
void     bell_init(struct bell *b);
void     bell_wait(struct bell *b);
unsigned bell_rung(struct bell *b);

#endif
